//! Frames that the sender leaves to be segmented.
use super::veth;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{Offload, Outgoing, PacketIo, PacketOptions, PacketPort, TapOptions, TapPort};

const HEADERS_LEN: usize = 14 + 20 + 20;
const PAYLOAD_LEN: usize = 20_000;
const SEGMENT_LEN: usize = 1_400;
const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;

/// The frame whole, and what is to be done to it, arrive at the other end of a veth pair.
pub(super) fn veth() -> Result<()> {
    veth::namespace()?;
    veth::pair("left", "right")?;
    let mut here = packet("right")?;
    whole(&mut packet("left")?, &mut here)
}

pub(super) fn tap() -> Result<()> {
    veth::namespace()?;
    let mut ports = TapPort::open(
        "hop0",
        TapOptions {
            queues: 2,
            gso: true,
        },
    )?;
    let mut there = packet("hop0")?;
    // Into the kernel from the TAP, and out of the kernel through one of its queues.
    whole(&mut ports[0], &mut there)?;
    there.send(1, &mut large)?;
    there.flush()?;
    let mut arrived = Vec::new();
    for port in &mut ports {
        port.receive(8, &mut |frame| {
            arrived.push((frame.bytes.to_vec(), frame.offload));
        })?;
    }
    ensure!(arrived.len() == 1, "{} frames", arrived.len());
    compare(&arrived[0])
}

pub(super) fn segmented() -> Result<()> {
    veth::namespace()?;
    let mut ports = TapPort::open("hop0", TapOptions::default())?;
    let mut there = packet("hop0")?;
    there.send(1, &mut large)?;
    there.flush()?;
    let mut payload = Vec::new();
    let mut wrong = Vec::new();
    ports[0].receive(64, &mut |frame| {
        payload.extend_from_slice(&frame.bytes[HEADERS_LEN..]);
        if frame.offload != Offload::default()
            || frame.bytes.len() > HEADERS_LEN + SEGMENT_LEN
            || tcp_sum(frame.bytes) != 0xffff
        {
            wrong.push((frame.bytes.len(), frame.offload, tcp_sum(frame.bytes)));
        }
    })?;
    ensure!(wrong.is_empty(), "{wrong:x?}");
    ensure!(
        payload == large_frame()[HEADERS_LEN..],
        "{} bytes",
        payload.len()
    );
    Ok(())
}

fn packet(device: &str) -> Result<PacketPort> {
    let options = PacketOptions {
        gso: true,
        qdisc_bypass: false,
        receive_frames: 64,
        send_frames: 8,
        ..PacketOptions::default()
    };
    Ok(PacketPort::open(device, options)?)
}

fn whole(there: &mut dyn PacketIo, here: &mut dyn PacketIo) -> Result<()> {
    ensure!(there.send(1, &mut large)? == 1 && there.flush()? == 0);
    let mut arrived = Vec::new();
    here.receive(8, &mut |frame| {
        arrived.push((frame.bytes.to_vec(), frame.offload));
    })?;
    let first = arrived.first().context("no frame")?;
    ensure!(arrived.len() == 1, "{} frames", arrived.len());
    compare(first)
}

fn compare((bytes, offload): &(Vec<u8>, Offload)) -> Result<()> {
    ensure!(*bytes == large_frame(), "{} bytes arrived", bytes.len());
    let expected = offloaded();
    // The kernel computes the header's length itself.
    let seen = Offload {
        hdr_len: expected.hdr_len,
        ..*offload
    };
    ensure!(seen == expected, "{offload:?}");
    Ok(())
}

pub(super) fn offloaded() -> Offload {
    Offload {
        flags: NEEDS_CSUM,
        gso_type: GSO_TCPV4,
        hdr_len: HEADERS_LEN as u16,
        gso_size: SEGMENT_LEN as u16,
        csum_start: 34,
        csum_offset: 16,
    }
}

fn large(slot: &mut [u8]) -> Outgoing {
    let frame = large_frame();
    slot[..frame.len()].copy_from_slice(&frame);
    Outgoing {
        len: frame.len(),
        offload: offloaded(),
    }
}

/// TCP over IPv4, with the checksum of the pseudo header where the rest is to be added.
pub(super) fn large_frame() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 0x08, 0x00]);
    let total = (40 + PAYLOAD_LEN) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = !sum(0, &frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    // Ports, sequence, acknowledgement, ACK, window.
    frame.extend([0x10, 0, 0x20, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0]);
    let pseudo = sum_pseudo(&frame, 20 + PAYLOAD_LEN);
    frame.extend(pseudo.to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..PAYLOAD_LEN).map(|i| (i % 251) as u8));
    frame
}

/// 0xffff where the checksum of the segment is right.
fn tcp_sum(frame: &[u8]) -> u16 {
    let pseudo = sum_pseudo(frame, frame.len() - 34);
    sum(u32::from(pseudo), &frame[34..])
}

fn sum_pseudo(frame: &[u8], len: usize) -> u16 {
    sum(6 + len as u32, &frame[26..34])
}

fn sum(start: u32, bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum = start + bytes.chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
