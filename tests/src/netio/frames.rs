//! Frames whose content is known from their number, and ports that send and receive them.
use anyhow::{Result, bail, ensure};
use hopscope_netio::{Direction, OpenOptions, Outgoing, PacketIo, PortName};
use hopscope_openloop::random::SplitMix64;

/// For local experiments (IEEE 802): the kernel has no use for it.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Polls without any frame after which nothing more is expected: in one namespace, a frame has
/// arrived when the call that sent it returns, or soon after on the other processor.
const PATIENCE: u32 = 2_000_000;

pub(super) fn open(name: &str, direction: Direction) -> Result<Box<dyn PacketIo>> {
    let options = OpenOptions {
        direction,
        ..OpenOptions::default()
    };
    Ok(name.parse::<PortName>()?.open(options)?)
}

/// Lengths from a bare header to a full MTU; each fifth with a VLAN tag.
pub(super) fn frame(number: u32) -> Vec<u8> {
    let mut random = SplitMix64::new(u64::from(number));
    let tagged = number % 5 == 4;
    let len = match number % 3 {
        0 => 60,
        1 => 14 + 8 + (random.next_u64() % 1490) as usize,
        _ => 1514,
    };
    // Broadcast, from a local address.
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1]);
    if tagged {
        frame.extend([0x81, 0x00, 0x60 | (number % 16) as u8, number as u8]);
    }
    frame.extend(ETHERTYPE);
    frame.extend(number.to_be_bytes());
    let len = if tagged { len + 4 } else { len };
    while frame.len() < len {
        frame.push(random.next_u64() as u8);
    }
    frame
}

pub(super) fn number(frame: &[u8]) -> Result<u32> {
    let at = if frame[12..14] == [0x81, 0x00] {
        18
    } else {
        14
    };
    ensure!(
        frame[at - 2..at] == ETHERTYPE,
        "not one of ours: {frame:x?}"
    );
    Ok(u32::from_be_bytes(frame[at..at + 4].try_into()?))
}

/// Sends all of them, in bursts, looking at `between` after each.
pub(super) fn send(
    port: &mut dyn PacketIo,
    numbers: std::ops::Range<u32>,
    mut between: impl FnMut() -> Result<()>,
) -> Result<()> {
    let mut next = numbers.start;
    let mut idle = 0;
    while next < numbers.end {
        let burst = (numbers.end - next).min(32) as usize;
        let sent = port.send(burst, &mut |slot| {
            let frame = frame(next);
            slot[..frame.len()].copy_from_slice(&frame);
            next += 1;
            Outgoing {
                len: frame.len(),
                ..Outgoing::default()
            }
        })?;
        port.flush()?;
        between()?;
        idle = if sent == 0 { idle + 1 } else { 0 };
        ensure!(idle < PATIENCE, "no room to send for ever");
    }
    for _ in 0..PATIENCE {
        if port.flush()? == 0 {
            return Ok(());
        }
        between()?;
    }
    bail!("sent frames wait for ever")
}

/// Everything that is there now.
pub(super) fn receive(port: &mut dyn PacketIo, frames: &mut Vec<Vec<u8>>) -> Result<usize> {
    Ok(port.receive(64, &mut |frame| frames.push(frame.bytes.to_vec()))?)
}

/// Until there are `count`, or nothing comes any more.
pub(super) fn receive_until(
    port: &mut dyn PacketIo,
    frames: &mut Vec<Vec<u8>>,
    count: usize,
) -> Result<()> {
    let mut idle = 0;
    while frames.len() < count && idle < PATIENCE {
        idle = match receive(port, frames)? {
            0 => idle + 1,
            _ => 0,
        };
    }
    Ok(())
}
