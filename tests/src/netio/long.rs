//! Frames that are longer than a slot of the packet socket's ring, which come by its queue.
use super::offload::{large_frame, offloaded};
use super::veth;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{Offload, Outgoing, PacketIo, PacketOptions, PacketPort};
use nix::sys::socket::{MsgFlags, recv};
use std::os::fd::AsRawFd;

/// Of Ethernet, IPv4 and TCP.
const SHORT_LEN: usize = 60;
const SLOTS: usize = 8_192;
const TAG: [u8; 4] = [0x81, 0x00, 0x20, 0x07];

fn ends() -> Result<(PacketPort, PacketPort)> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    Ok((open("left", 64)?, open("right", SLOTS)?))
}

fn options(receive_frames: usize) -> PacketOptions {
    PacketOptions {
        gso: true,
        qdisc_bypass: false,
        receive_frames,
        send_frames: 1,
        ..PacketOptions::default()
    }
}

fn open(device: &str, receive_frames: usize) -> Result<PacketPort> {
    Ok(PacketPort::open(device, options(receive_frames))?)
}

/// The even ones are long; each has its number as its IP identification.
fn numbered(number: usize) -> (Vec<u8>, Offload) {
    let mut frame = large_frame();
    let mut offload = offloaded();
    if !number.is_multiple_of(2) {
        frame.truncate(SHORT_LEN);
        offload = Offload::default();
    }
    frame[18..20].copy_from_slice(&(number as u16).to_be_bytes());
    (frame, offload)
}

fn send(there: &mut dyn PacketIo, (frame, offload): &(Vec<u8>, Offload)) -> Result<()> {
    let mut fill = |slot: &mut [u8]| {
        slot[..frame.len()].copy_from_slice(frame);
        Outgoing {
            len: frame.len(),
            offload: *offload,
        }
    };
    ensure!(there.send(1, &mut fill)? == 1 && there.flush()? == 0);
    Ok(())
}

/// Numbers of what is there, in the order in which it comes; each frame as it was sent.
fn received(here: &mut dyn PacketIo, max: usize) -> Result<Vec<usize>> {
    let (mut numbers, mut wrong) = (Vec::new(), Vec::new());
    here.receive(max, &mut |frame| {
        let number = u16::from_be_bytes([frame.bytes[18], frame.bytes[19]]) as usize;
        if numbered(number).0 != frame.bytes || frame.wire_len != frame.bytes.len() {
            wrong.push(number);
        }
        numbers.push(number);
    })?;
    ensure!(wrong.is_empty(), "{wrong:?} are not what was sent");
    Ok(numbers)
}

/// More than the queue holds: the others are counted, and short ones go on.
pub(super) fn in_order_or_counted() -> Result<()> {
    const FRAMES: usize = 4_000;
    let (mut there, mut here) = ends()?;
    for number in 0..FRAMES {
        send(&mut there, &numbered(number))?;
    }
    let numbers = received(&mut here, 2 * FRAMES)?;
    ensure!(numbers.is_sorted(), "{numbers:?}");
    let short = numbers.iter().filter(|n| !n.is_multiple_of(2)).count();
    let lost = here.counters()?.receive_dropped as usize;
    ensure!(short == FRAMES / 2, "{short} short ones");
    ensure!(
        lost > 0 && lost < FRAMES / 2 && numbers.len() + lost == FRAMES,
        "{} received, {lost} lost",
        numbers.len()
    );
    // There is room again.
    for number in 0..10 {
        send(&mut there, &numbered(number))?;
    }
    ensure!(received(&mut here, FRAMES)? == (0..10).collect::<Vec<_>>());
    Ok(())
}

/// The kernel takes the tag out of the frame, and what counts from its start.
pub(super) fn tagged() -> Result<()> {
    let (mut there, mut here) = ends()?;
    let (mut frame, mut offload) = numbered(0);
    frame.splice(12..12, TAG);
    offload.hdr_len += 4;
    offload.csum_start += 4;
    send(&mut there, &(frame.clone(), offload))?;
    let mut arrived = Vec::new();
    here.receive(8, &mut |frame| {
        arrived.push((frame.bytes.to_vec(), frame.offload))
    })?;
    let (bytes, seen) = arrived.first().context("no frame")?;
    ensure!(*bytes == frame, "{} of {}", bytes.len(), frame.len());
    ensure!(seen.csum_start == offload.csum_start, "{seen:?}");
    Ok(())
}

/// Another process goes on with the socket. The one before was killed when it had taken a frame out of the queue, and had not given
/// back its slot: this one is counted, and the next is not taken for it.
pub(super) fn handed_on() -> Result<()> {
    let (mut there, mut here) = ends()?;
    for number in 0..20 {
        send(&mut there, &numbered(number))?;
    }
    let first = received(&mut here, 7)?;
    let index = nix::net::if_::if_nametoindex("right")?;
    let socket = here.wait_fd().context("no socket")?.try_clone_to_owned()?;
    let longest = here.capabilities().max_frame_len;
    drop(here);
    let mut taken = vec![0; longest + 10];
    recv(socket.as_raw_fd(), &mut taken, MsgFlags::empty())?;
    let mut next = PacketPort::adopt("right", index, socket, longest, options(SLOTS))?;
    for number in 20..30 {
        send(&mut there, &numbered(number))?;
    }
    let rest = received(&mut next, 100)?;
    let all: Vec<usize> = first.into_iter().chain(rest).collect();
    ensure!(
        all == (0..30).filter(|n| *n != 8).collect::<Vec<_>>(),
        "{all:?}"
    );
    let lost = next.counters()?.receive_dropped;
    ensure!(lost == 1, "{lost} counted");
    Ok(())
}
