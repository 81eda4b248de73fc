//! Frames a second through a port: `cargo run --release --example pps -- mem 10000000`.
use hopscope_netio::{MemoryOptions, Outgoing, PacketIo, PortError, memory_pair};
use std::time::Instant;

const BURST: usize = 64;

fn fill(slot: &mut [u8]) -> Outgoing {
    slot[..64].fill(0x5a);
    Outgoing {
        len: 64,
        ..Outgoing::default()
    }
}

fn main() -> Result<(), PortError> {
    let frames = 10_000_000u64;
    let (mut a, mut b) = memory_pair(MemoryOptions::default());
    let start = Instant::now();
    let mut received = 0;
    while received < frames {
        a.send(BURST, &mut fill)?;
        a.flush()?;
        received += b.receive(BURST, &mut |frame| {
            std::hint::black_box(frame.bytes[63]);
        })? as u64;
    }
    println!(
        "mem, one thread: {:.1} M/s",
        received as f64 / start.elapsed().as_secs_f64() / 1e6
    );
    let start = Instant::now();
    let sender = std::thread::spawn(move || -> Result<(), PortError> {
        let mut sent = 0;
        while sent < frames {
            sent += a.send(BURST.min((frames - sent) as usize), &mut fill)? as u64;
            a.flush()?;
        }
        Ok(())
    });
    let mut received = 0;
    while received < frames {
        received += b.receive(BURST, &mut |frame| {
            std::hint::black_box(frame.bytes[63]);
        })? as u64;
    }
    println!(
        "mem, two threads: {:.1} M/s",
        received as f64 / start.elapsed().as_secs_f64() / 1e6
    );
    sender.join().expect("no panic")
}
