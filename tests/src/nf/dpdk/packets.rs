//! Frames, and files of them: pcap, little-endian, microseconds, Ethernet
//! (https://www.tcpdump.org/manpages/pcap-savefile.5.html).
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

pub(super) type Frame = Vec<u8>;

const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;
const MARK: &[u8] = b"the last packet for its port";

pub(super) fn header() -> Vec<u8> {
    let words: [u32; 6] = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 65_535, 1];
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// As they follow the header.
pub(super) fn encode(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        let length = frame.len() as u32;
        bytes.extend(
            [0, 0, length, length]
                .into_iter()
                .flat_map(u32::to_le_bytes),
        );
        bytes.extend(frame);
    }
    bytes
}

/// The frames of a file, without the times.
pub(super) fn decode(file: &[u8]) -> Result<Vec<Frame>> {
    let mut rest = file.get(FILE_HEADER..).context("no header")?;
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let length = rest.get(8..12).context("half a frame's header")?;
        let end = FRAME_HEADER + u32::from_le_bytes(length.try_into()?) as usize;
        frames.push(
            rest.get(FRAME_HEADER..end)
                .context("half a frame")?
                .to_vec(),
        );
        rest = &rest[end..];
    }
    Ok(frames)
}

/// Of the files that hold these frames.
pub(super) fn bytes(ports: &[Vec<Frame>]) -> u64 {
    let frame = |frame: &Frame| FRAME_HEADER + frame.len();
    let file = |frames: &Vec<Frame>| FILE_HEADER + frames.iter().map(frame).sum::<usize>();
    ports.iter().map(file).sum::<usize>() as u64
}

/// A packet for each port; whatever comes before it has come out before it.
pub(super) fn last() -> [Frame; 2] {
    [0, 1].map(|port| ipv4(17, [10, 0, 0, 1], [198, 19, port, 1], 9, MARK))
}

pub(super) fn ends_with_last(file: &Path) -> Result<bool> {
    let mut file = File::open(file)?;
    if file.metadata()?.len() < MARK.len() as u64 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-(MARK.len() as i64)))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    Ok(end == MARK)
}

pub(super) fn is_ip(frame: &[u8]) -> bool {
    matches!(frame.get(12..15), Some([8, 0, 0x45] | [0x86, 0xdd, 0x60]))
}

/// UDP, TCP and IPv6 of all sizes; for the rules of `rules`: permitted, denied and unknown.
pub(super) fn mix(count: u64) -> Vec<Frame> {
    let mut state = 1u64;
    let mut random = move |below: u64| {
        // Knuth's MMIX constants; the upper half is the good one.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut frames = Vec::new();
    for number in 0..count {
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(8 + random(1400) as usize, random(256) as u8);
        let (net, rule) = ([9, 10, 10, 11][random(4) as usize], random(500));
        let (high, low) = ((rule / 250) as u8, (rule % 250) as u8);
        let source = [net, low, high, random(256) as u8];
        let to = [198, 18, random(200) as u8, random(256) as u8];
        let port = 1000 + rule as u16;
        frames.push(match random(8) {
            0 => ipv6(source, to, port, &payload),
            1 | 2 => ipv4(6, source, to, 80, &payload),
            3 => ipv4(17, source, to, port ^ 1, &payload),
            _ => ipv4(17, source, [198, 18, low % 200, 9], port, &payload),
        });
    }
    frames
}

fn ethernet(kind: u16) -> Frame {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(kind.to_be_bytes());
    frame
}

/// UDP's eight bytes, and as many more as TCP has; checksums of the payload are nobody's business here.
fn transport(protocol: u8, port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = 5000u16.to_be_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    match protocol {
        6 => bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 16, 0, 0, 0, 0, 0]),
        _ => {
            bytes.extend((payload.len() as u16 + 8).to_be_bytes());
            bytes.extend([0, 0]);
        }
    }
    bytes.extend(payload);
    bytes
}

fn ipv4(protocol: u8, from: [u8; 4], to: [u8; 4], port: u16, payload: &[u8]) -> Frame {
    let inner = transport(protocol, port, payload);
    let [high, low] = (20 + inner.len() as u16).to_be_bytes();
    let mut header = vec![0x45, 0, high, low, 0, 0, 0, 0, 64, protocol, 0, 0];
    header.extend(from);
    header.extend(to);
    let words = header
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
    let sum: u32 = words.sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = ethernet(0x0800);
    frame.extend(header);
    frame.extend(inner);
    frame
}

fn ipv6(from: [u8; 4], to: [u8; 4], port: u16, payload: &[u8]) -> Frame {
    let inner = transport(17, port, payload);
    let mut frame = ethernet(0x86dd);
    frame.extend([0x60, 0, 0, 0]);
    frame.extend((inner.len() as u16).to_be_bytes());
    frame.extend([17, 64]);
    for address in [from, to] {
        frame.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(address);
    }
    frame.extend(inner);
    frame
}
