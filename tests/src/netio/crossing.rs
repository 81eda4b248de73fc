//! Each kind of port to each other: what is sent arrives, byte for byte and in order.
use super::frames::{frame, open, receive, receive_until, send};
use super::veth;
use anyhow::{Result, ensure};
use hopscope_netio::Direction;
use hopscope_tests::counts;

pub(super) const PAIRS: [(&str, &str); 6] = [
    ("packet", "packet"),
    ("packet", "xdp"),
    ("packet", "xdp-native"),
    ("xdp", "packet"),
    ("xdp", "xdp"),
    ("xdp-native", "xdp-native"),
];

pub(super) fn run(from: &str, to: &str) -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    let mut there = open(&format!("{from}:left"), Direction::Both)?;
    let mut here = open(&format!("{to}:right"), Direction::Both)?;
    // More than a ring holds: each of its places is used again.
    let count = counts().pick(10_000, 100_000) as u32;
    let mut frames = Vec::new();
    send(&mut *there, 0..count, || {
        receive(&mut *here, &mut frames).map(drop)
    })?;
    receive_until(&mut *here, &mut frames, count as usize)?;
    let (sent, received) = (there.counters()?, here.counters()?);
    ensure!(
        frames.len() == count as usize,
        "{} of {count} frames: {sent:?} {received:?}",
        frames.len()
    );
    for (number, arrived) in frames.iter().enumerate() {
        let expected = frame(number as u32);
        ensure!(
            *arrived == expected,
            "frame {number}:\n{arrived:x?}\ninstead of\n{expected:x?}"
        );
    }
    ensure!(
        sent.sent_bytes == received.received_bytes && sent.send_failed == 0,
        "{sent:?} {received:?}"
    );
    // What it sends itself, it does not receive.
    ensure!(sent.received == 0, "{sent:?}");
    Ok(())
}
