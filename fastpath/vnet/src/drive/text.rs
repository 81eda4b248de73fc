//! What a front end did, for people.
use super::{DriveCounts, DriveQueueCounts};
use crate::Ns;
use std::io::{self, Write};

/// `None` without packets.
pub fn per_packet(count: u64, packets: u64) -> Option<f64> {
    (packets > 0).then(|| count as f64 / packets as f64)
}

impl DriveCounts {
    /// Of the direction that this end is there for.
    pub fn main(&self, sink: bool) -> &DriveQueueCounts {
        if sink { &self.rx } else { &self.tx }
    }

    fn elapsed_s(&self) -> f64 {
        self.spent.elapsed.0 as f64 / 1e9
    }

    pub fn packets_per_s(&self, sink: bool) -> f64 {
        self.main(sink).packets as f64 / self.elapsed_s()
    }

    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write, sink: bool) -> io::Result<()> {
        queue(out, "tx", &self.tx)?;
        queue(out, "rx", &self.rx)?;
        let (elapsed_s, packets_per_s) = (self.elapsed_s(), self.packets_per_s(sink));
        let (spent, latency) = (&self.spent, &self.latency);
        let us = |ns: Ns| ns.0 as f64 / 1e3;
        writeln!(
            out,
            "{packets_per_s:.0} packets/s in {elapsed_s:.3} s; latency p50 {:.1} us, p99 {:.1} us, max {:.1} us; cpu {:.3} s, \
         switches {} voluntary, {} not",
            us(latency.p50),
            us(latency.p99),
            us(latency.max),
            spent.cpu.0 as f64 / 1e9,
            spent.voluntary_switches,
            spent.involuntary_switches
        )?;
        let came = &self.came;
        writeln!(
            out,
            "came: ours {} ({} out of order, {} with other bytes), others {}, dropped {}",
            came.own, came.disordered, came.wrong, came.others, came.dropped
        )?;
        if let Some(port) = &self.port {
            writeln!(
                out,
                "port: sent {} ({} failed), received {}, dropped before it {}",
                port.sent, port.send_failed, port.received, port.receive_dropped
            )?;
        }
        Ok(())
    }
}

fn queue(out: &mut impl Write, name: &str, q: &DriveQueueCounts) -> io::Result<()> {
    let per = |n| per_packet(n, q.packets).map_or("-".to_owned(), |per| format!("{per:.4}"));
    writeln!(
        out,
        "{name}: packets {} ({} B), kicks {} ({} a packet), calls {} ({}), suppressed {}, full {}, held {} (at most {:.1} us)",
        q.packets,
        q.bytes,
        q.kicks,
        per(q.kicks),
        q.calls,
        per(q.calls),
        q.kick_policy.suppressed,
        q.full,
        q.kick_policy.holds,
        q.kick_policy.hold_max.0 as f64 / 1e3
    )
}
