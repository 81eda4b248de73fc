//! Frames a second from one port to another, both in one thread and each in its own:
//! `pps 1000000 mem:` (a pair), `pps 1000000 packet:v0 packet:v1`.
use hopscope_netio::{
    Direction, MemoryOptions, OpenOptions, Outgoing, PacketIo, PortName, memory_pair,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Ends = (Box<dyn PacketIo>, Box<dyn PacketIo>);
const BURST: usize = 64;

fn fill(slot: &mut [u8]) -> Outgoing {
    // To nobody: the kernel's own stack drops it early.
    slot[..64].fill(0x02);
    slot[12..14].copy_from_slice(&0x88b5u16.to_be_bytes());
    Outgoing {
        len: 64,
        ..Outgoing::default()
    }
}

fn ports(names: &[String]) -> Result<Ends, Failure> {
    let open = |name: &str, direction| -> Result<_, Failure> {
        let options = OpenOptions {
            direction,
            ..OpenOptions::default()
        };
        Ok(name.parse::<PortName>()?.open(options)?)
    };
    match names {
        [name] if name == "mem:" => {
            let (a, b) = memory_pair(MemoryOptions::default());
            Ok((Box::new(a), Box::new(b)))
        }
        [from, to] => Ok((open(from, Direction::Send)?, open(to, Direction::Receive)?)),
        _ => Err("give FRAMES FROM TO, or FRAMES mem:".into()),
    }
}

fn send(port: &mut dyn PacketIo, left: u64) -> Result<u64, Failure> {
    let sent = port.send(BURST.min(left as usize), &mut fill)?;
    port.flush()?;
    Ok(sent as u64)
}

fn receive(port: &mut dyn PacketIo) -> Result<u64, Failure> {
    let seen = &mut |frame: hopscope_netio::Frame<'_>| {
        std::hint::black_box(frame.bytes[63]);
    };
    Ok(port.receive(BURST, seen)? as u64)
}

/// On a machine that others use too, processor time says more than the clock.
struct Started {
    at: Instant,
    busy: f64,
}

impl Started {
    fn now() -> Started {
        Started {
            at: Instant::now(),
            busy: thread_seconds(),
        }
    }
}

fn thread_seconds() -> f64 {
    let used = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    let used = used.expect("a clock that every Linux has");
    used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9
}

fn say(what: &str, started: Started, a: &mut dyn PacketIo, b: &mut dyn PacketIo) {
    let seconds = started.at.elapsed().as_secs_f64();
    let busy = thread_seconds() - started.busy;
    let (from, to) = (a.counters(), b.counters());
    if let (Ok(from), Ok(to)) = (from, to) {
        println!(
            "{what}: sent {:.3} M/s, received {:.3} M/s, failed {}, dropped {}; \
             this thread {:.3} M per second of processor time",
            from.sent as f64 / seconds / 1e6,
            to.received as f64 / seconds / 1e6,
            from.send_failed,
            to.receive_dropped,
            from.sent as f64 / busy / 1e6
        );
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [frames, names @ ..] = &arguments[..] else {
        return Err("give FRAMES FROM TO, or FRAMES mem:".into());
    };
    let frames: u64 = frames.parse()?;

    if names.len() == 2 {
        let (mut a, mut b) = ports(names)?;
        drop(b);
        b = Box::new(hopscope_netio::memory_loop(MemoryOptions::default()));
        let started = Started::now();
        let mut sent = 0;
        while sent < frames {
            sent += send(&mut *a, frames - sent)?;
        }
        say("nobody receives", started, &mut *a, &mut *b);
    }

    let (mut a, mut b) = ports(names)?;
    let started = Started::now();
    let (mut sent, mut idle) = (0, 0);
    while sent < frames || idle < 1000 {
        sent += send(&mut *a, frames - sent)?;
        idle = if receive(&mut *b)? == 0 { idle + 1 } else { 0 };
    }
    say("one thread", started, &mut *a, &mut *b);
    // A device's queue is free again only when its port is gone.
    drop((a, b));

    let (mut a, mut b) = ports(names)?;
    let started = Started::now();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| -> Result<(), Failure> {
            let mut sent = 0;
            while sent < frames {
                let now = send(&mut *a, frames - sent)?;
                if now == 0 {
                    std::thread::yield_now();
                }
                sent += now;
            }
            done.store(true, Ordering::Release);
            Ok(())
        });
        loop {
            let last = done.load(Ordering::Acquire) || sender.is_finished();
            if receive(&mut *b)? == 0 {
                if last {
                    break sender.join().expect("no panic");
                }
                std::thread::yield_now();
            }
        }
    })?;
    say("two threads", started, &mut *a, &mut *b);
    Ok(())
}
