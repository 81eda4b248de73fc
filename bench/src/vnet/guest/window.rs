//! One window: traffic over one device, and what both ends of its queues counted meanwhile.
use super::device::Device;
use super::traffic::Traffic;
use crate::error::{Error, Result};
use crate::said::last_line;
use crate::vnet::cpu_usage::Thread;
use crate::vnet::load::{self, Load, microseconds};
use crate::vnet::process::number;
use serde::Serialize;
use serde_json::Value;

/// Of `virtio-net-pci`: as many packets as the driver may have sent and not yet looked at again.
const RING: f64 = 1024.0;
/// Packets may still be under way when a client has ended.
const LOOKS: usize = 10;

/// One queue in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Queue {
    /// What one header stands before: with segmentation left undone, up to 64 KiB.
    pub(super) packets: f64,
    pub(super) kicks: f64,
    pub(super) calls: f64,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Run {
    pub(super) value: f64,
    /// Of a round trip or transaction; of a stream, until the socket took a message. `None` where none was done.
    pub(super) p50_us: Option<f64>,
    pub(super) p99_us: Option<f64>,
    /// From the guest, and to it.
    pub(super) tx: Queue,
    pub(super) rx: Queue,
    /// Of the device's line, in the guest.
    pub(super) interrupts: f64,
    pub(super) back: Thread,
    /// Requests or connections that failed, answers with other bytes, and one where nothing went in the window.
    pub(super) failed: f64,
    /// Segments, by the client's kernel: a window with many had a queue that overflowed, or a machine that stood still.
    pub(super) retransmitted: Option<f64>,
    pub(super) ends_agree: bool,
}

/// What the guest says of a device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Look {
    received: f64,
    sent: f64,
    interrupts: f64,
}

impl Look {
    /// Of `driver RECEIVED SENT` and lines of /proc/interrupts.
    pub(super) fn of(said: &[String]) -> Result<Look> {
        let wrong = || Error::no_summary("the guest", said.join(" / "));
        let (first, lines) = said.split_first().ok_or_else(wrong)?;
        let counts = first.strip_prefix("driver ").ok_or_else(wrong)?;
        let counts: Vec<f64> = numbers(counts);
        let &[received, sent] = counts.as_slice() else {
            return Err(wrong());
        };
        // `NUMBER: COUNT… CONTROLLER … virtioN`, a count for each processor.
        let line = |line: &String| Some(numbers(line.split_once(':')?.1).iter().sum::<f64>());
        let interrupts: Option<Vec<f64>> = lines.iter().map(line).collect();
        let interrupts = interrupts.filter(|all| !all.is_empty()).ok_or_else(wrong)?;
        Ok(Look {
            received,
            sent,
            interrupts: interrupts.iter().sum(),
        })
    }
}

/// As many as come before the first word that is none.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split_whitespace().map(str::parse);
    words.map_while(|number| number.ok()).collect()
}

/// Both ends at one moment.
#[derive(Debug, Clone)]
pub(super) struct Both {
    pub(super) guest: Look,
    pub(super) counts: Value,
}

impl Both {
    /// All packets of both ends since they began: what the guest received is what it was given. Of those that it
    /// sent it counts what it has taken back.
    fn agree(&self) -> Result<bool> {
        let packets = |queue: &str| number(&self.counts, &format!("pairs.0.{queue}.packets"));
        let unseen = packets("tx")? - self.guest.sent;
        Ok(packets("rx")? == self.guest.received && (0.0..=RING).contains(&unseen))
    }
}

/// Until both ends count the same, or it is clear that they do not.
pub(super) fn settled(
    device: &Device,
    mut guest: impl FnMut() -> Result<Look>,
) -> Result<(Both, bool)> {
    let mut looks = 0;
    loop {
        let guest = guest()?;
        let counts = device.counts()?;
        let both = Both { guest, counts };
        looks += 1;
        match both.agree()? {
            true => return Ok((both, true)),
            false if looks == LOOKS => return Ok((both, false)),
            false => {}
        }
    }
}

/// Of what is between two moments, and of the client's summary.
pub(super) fn run(
    traffic: Traffic,
    said: &Value,
    (before, after): (&Both, &Both),
    back: Thread,
    agreed: bool,
) -> Result<Run> {
    let queue = |name: &str| {
        let grown = |what: &str| {
            let path = format!("pairs.0.{name}.{what}");
            Ok::<_, Error>(number(&after.counts, &path)? - number(&before.counts, &path)?)
        };
        Ok::<_, Error>(Queue {
            packets: grown("packets")?,
            kicks: grown("kicks")?,
            calls: grown("calls")?,
        })
    };
    let (tx, rx) = (queue("tx")?, queue("rx")?);
    let value = traffic.load.value(said, tx.packets)?;
    let all_came = match traffic.load {
        // Nothing else went that way, and no datagram waits for another.
        Load::Steady(_) => number(said, "done")? == tx.packets,
        _ => true,
    };
    Ok(Run {
        value,
        p50_us: microseconds(said, "p50_ns"),
        p99_us: microseconds(said, "p99_ns"),
        tx,
        rx,
        interrupts: after.guest.interrupts - before.guest.interrupts,
        back,
        failed: load::failed(said, value)?,
        retransmitted: said["kernel"]["Tcp.RetransSegs"].as_f64(),
        ends_agree: agreed && all_came,
    })
}

/// What `load` of the guest's shell printed: a look, and the client's summary.
pub(super) fn of_the_guest(said: &[String]) -> Result<(Look, Value)> {
    let at = said.iter().position(|line| line.starts_with('{'));
    let at = at.ok_or_else(|| Error::no_summary("the client in the guest", said.join(" / ")))?;
    Ok((
        Look::of(&said[..at])?,
        last_line("hopscope load", &said[at])?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vnet::guest::traffic::{STEADY, out};
    use serde_json::json;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(String::from).collect()
    }

    const LINE: &str = " 20:        900         12   IO-APIC  20-fasteoi   virtio0, virtio4";

    #[test]
    fn a_look_is_counts_and_interrupts() {
        let look = Look::of(&lines(&format!("driver 17 4\n{LINE}"))).unwrap();
        let wanted = Look {
            received: 17.0,
            sent: 4.0,
            interrupts: 912.0,
        };
        assert_eq!(look, wanted);
        let msi = "driver 0 0\n24: 1 PCI-MSI 1 virtio0-config\n25: 5 PCI-MSI 2 virtio0-input.0";
        assert_eq!(Look::of(&lines(msi)).unwrap().interrupts, 6.0);
        for bad in [
            "",
            "driver 17",
            "driver 1 2",
            "17 4\n20: 1",
            "driver 1 2\nnothing",
        ] {
            assert!(Look::of(&lines(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_client_comes_after_a_look() {
        let text = format!("driver 1 4\n{LINE}\n{{\"done\":3}}");
        let (before, said) = of_the_guest(&lines(&text)).unwrap();
        assert_eq!((before.received, before.sent), (1.0, 4.0));
        assert_eq!(said["done"], 3);
        assert!(of_the_guest(&lines("driver 1 1\nconnect: refused")).is_err());
    }

    fn both(given: u64, taken: u64, received: f64, sent: f64) -> Both {
        let queue = |packets: u64| json!({"packets": packets, "kicks": packets, "calls": 1});
        Both {
            guest: Look {
                received,
                sent,
                interrupts: 7.0,
            },
            counts: json!({"pairs": [{"rx": queue(given), "tx": queue(taken)}]}),
        }
    }

    #[test]
    fn ends_agree_on_every_packet_but_those_not_looked_at() {
        assert!(both(10, 20, 10.0, 20.0).agree().unwrap());
        assert!(both(10, 1044, 10.0, 20.0).agree().unwrap());
        assert!(!both(10, 1045, 10.0, 20.0).agree().unwrap());
        assert!(!both(10, 19, 10.0, 20.0).agree().unwrap());
        assert!(!both(11, 20, 10.0, 20.0).agree().unwrap());
    }

    #[test]
    fn datagrams_that_did_not_come_are_no_agreement() {
        let (before, after) = (both(0, 5, 0.0, 5.0), both(0, 65, 0.0, 65.0));
        let of = |done: u64| {
            let said = json!({"done": done, "failed": 1, "corrupt": 2, "elapsed_s": 0.5,
                "latency": {"p50_ns": 2000, "p99_ns": 9000}});
            let ends = (&before, &after);
            run(out(STEADY), &said, ends, Thread::default(), true).unwrap()
        };
        let run = of(60);
        assert!(run.ends_agree && !of(61).ends_agree);
        assert_eq!((run.value, run.p50_us, run.failed), (120.0, Some(2.0), 3.0));
        let queue = Queue {
            packets: 60.0,
            kicks: 60.0,
            calls: 0.0,
        };
        assert_eq!(run.tx, queue);
    }
}
