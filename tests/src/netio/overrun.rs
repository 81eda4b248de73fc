//! Nobody receives: each frame is either received later or counted as lost.
use super::frames::{number, open, receive_until, send};
use super::veth;
use anyhow::{Result, ensure};
use hopscope_netio::{
    Direction, PacketIo, PacketOptions, PacketPort, TapOptions, TapPort, XdpMode, XdpOptions,
    XdpPort,
};

const FRAMES: u32 = 3_000;
const RING: u32 = 64;

pub(super) fn device(kind: &str) -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    let mut here: Box<dyn PacketIo> = match kind {
        "packet" => Box::new(PacketPort::open(
            "right",
            PacketOptions {
                direction: Direction::Receive,
                receive_frames: RING as usize,
                ..PacketOptions::default()
            },
        )?),
        _ => Box::new(XdpPort::open(
            "right",
            0,
            XdpOptions {
                direction: Direction::Receive,
                mode: match kind {
                    "xdp" => XdpMode::Generic,
                    _ => XdpMode::Native,
                },
                receive_frames: RING,
                ..XdpOptions::default()
            },
        )?),
    };
    let mut there = open("packet:left", Direction::Send)?;
    balance(&mut *there, &mut *here, RING as usize)?;
    let sent = there.counters()?;
    ensure!(sent.send_failed == 0, "{sent:?}");
    Ok(())
}

pub(super) fn tap() -> Result<()> {
    veth::namespace()?;
    let mut ports = TapPort::open("hop0", TapOptions::default())?;
    let here = &mut ports[0];
    let mut there = PacketPort::open(
        "hop0",
        PacketOptions {
            direction: Direction::Send,
            // So that no frame is tried twice.
            send_frames: 1,
            ..PacketOptions::default()
        },
    )?;
    let lost = balance(&mut there, here, 500)?;
    // The driver tells the sender too: the same frames, seen from both ends.
    let failed = there.counters()?.send_failed;
    ensure!(lost == failed, "{lost} lost, and {failed} failed");
    Ok(())
}

/// How many the receiver counted as lost.
fn balance(there: &mut dyn PacketIo, here: &mut dyn PacketIo, least: usize) -> Result<u64> {
    let before = here.counters()?;
    send(there, 0..FRAMES, || Ok(()))?;
    let mut frames = Vec::new();
    receive_until(here, &mut frames, FRAMES as usize)?;
    let (sent, received) = (there.counters()?, here.counters()?);
    let dropped = received.receive_dropped - before.receive_dropped;
    let ours = frames.iter().filter(|f| number(f).is_ok()).count();
    ensure!(
        ours == frames.len(),
        "{} frames of others",
        frames.len() - ours
    );
    ensure!(
        u64::from(FRAMES) == frames.len() as u64 + dropped,
        "{FRAMES} sent, {} received: {sent:?} {received:?}",
        frames.len()
    );
    ensure!(
        frames.len() >= least && frames.len() < FRAMES as usize,
        "{} received: not an overrun",
        frames.len()
    );
    Ok(dropped)
}
