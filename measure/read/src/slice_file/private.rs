//! A recording inside a pcapng file. Every other tool reads its frames and their comments; hopscope
//! finds a whole `.hop` trace in what only hopscope reads:
//!
//! - blocks of type 0x80484f50 (bit 31: for local use; others pass them over): `HOPSLICE`, number of the block and number of packets before it (4 bytes
//!   each, from 0), a length of 4 bytes, and so many bytes of the trace (its header, its tables);
//! - a custom option (2989, enterprise 32473) of each frame: `HOPS`, CRC-32 of all that follows and of the
//!   frame's bytes, number of the packet (4 bytes, from 0), the link header's length (2 bytes), flags
//!   (2 bytes; bit 0: the frame's bytes are the packet's), and a chunk of the trace with one record
//!   without bytes.
//!
//! All numbers are little-endian; docs/trace-format.md has the rest.
use crate::error::{Error, Result, refuse, require};
use hopscope_event::slice::{SliceBytes, Sliced};
use hopscope_netio::CaptureError;
use hopscope_netio::capture::{PrivateBlock, PrivateReader};
use hopscope_trace::format::MAGIC;
use hopscope_trace::slices;
use std::io::Read;

const MARK: &[u8; 8] = b"HOPSLICE";
const PACKET_MARK: &[u8; 4] = b"HOPS";
const HAS_BYTES: u16 = 1;
/// Packets of one chunk, when the trace is put together again.
const BATCH: usize = 1024;

/// How many of each are in the file before: a number that is missing is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Numbers {
    blocks: u32,
    packets: u32,
}

impl Numbers {
    /// The private part of the next block, with `trace`, a part of a trace.
    pub(super) fn block(&mut self, trace: &[u8]) -> Vec<u8> {
        let Numbers { blocks, packets } = *self;
        self.blocks = blocks.wrapping_add(1);
        let words = [blocks, packets, trace.len() as u32].map(u32::to_le_bytes);
        [MARK, words.as_flattened(), trace].concat()
    }

    /// The private part of the next packet's frame, whose bytes are `frame`.
    pub(super) fn packet(&mut self, packet: &Sliced, frame: &[u8]) -> Vec<u8> {
        let number = self.packets;
        self.packets = number.wrapping_add(1);
        private_of(number, packet, frame)
    }
}

fn private_of(number: u32, packet: &Sliced, frame: &[u8]) -> Vec<u8> {
    let (link_len, flags) = match &packet.bytes {
        Some(bytes) => (bytes.link_len, HAS_BYTES),
        None => (0, 0),
    };
    let bare = Sliced {
        record: packet.record,
        bytes: None,
    };
    let mut rest = number.to_le_bytes().to_vec();
    rest.extend(link_len.to_le_bytes());
    rest.extend(flags.to_le_bytes());
    rest.extend(slices::to_chunk(std::slice::from_ref(&bare)));
    let crc = checksum(&rest, frame).to_le_bytes();
    [PACKET_MARK, &crc[..], &rest].concat()
}

fn checksum(rest: &[u8], frame: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(rest);
    crc.update(frame);
    crc.finalize()
}

/// With its number; `None`: damaged.
fn packet_of(private: &[u8], frame: Vec<u8>, wire_len: u32) -> Option<(u32, Sliced)> {
    let rest = private.strip_prefix(PACKET_MARK)?;
    let (crc, rest) = rest.split_first_chunk()?;
    if u32::from_le_bytes(*crc) != checksum(rest, &frame) {
        return None;
    }
    let (number, rest) = rest.split_first_chunk()?;
    let ([a, b, c, d], chunk) = rest.split_first_chunk::<4>()?;
    let (link_len, flags) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
    let [mut packet] = <[Sliced; 1]>::try_from(slices::of_chunk(chunk)?).ok()?;
    if flags & HAS_BYTES != 0 {
        packet.bytes = Some(SliceBytes {
            original_len: wire_len,
            link_len,
            bytes: frame,
        });
    }
    Some((u32::from_le_bytes(*number), packet))
}

/// What could not be read of a file that could be opened.
#[derive(Default)]
struct Losses {
    next: Numbers,
    /// Packets and blocks that are not there, or damaged.
    packets: u64,
    blocks: u64,
    /// Damaged ones, for a file that ends before a number tells.
    damaged: u64,
    foreign: u64,
    ended: Option<String>,
}

impl Losses {
    fn found_packet(&mut self, number: u32) {
        self.packets += u64::from(number.saturating_sub(self.next.packets));
        self.next.packets = number.saturating_add(1);
    }

    fn found_block(&mut self, numbers: Numbers) {
        self.blocks += u64::from(numbers.blocks.saturating_sub(self.next.blocks));
        self.packets += u64::from(numbers.packets.saturating_sub(self.next.packets));
        self.next.blocks = numbers.blocks.saturating_add(1);
        self.next.packets = numbers.packets;
    }

    fn text(self) -> Option<String> {
        let mut parts = Vec::new();
        let packets = self.packets.max(self.damaged.saturating_sub(self.blocks));
        if packets > 0 {
            parts.push(format!("{packets} packets are damaged or missing"));
        }
        if self.blocks > 0 {
            parts.push(format!("{} tables are damaged or missing", self.blocks));
        }
        if self.foreign > 0 {
            parts.push(format!(
                "{} frames without a record passed over",
                self.foreign
            ));
        }
        parts.extend(self.ended);
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The bytes of the trace in the file, and what is lost of it.
///
/// # Errors
/// It is no capture, or one of another tool.
pub(crate) fn trace_of(name: &str, source: impl Read) -> Result<(Vec<u8>, Option<String>)> {
    let mut reader = PrivateReader::new(name, source).map_err(|error| match error {
        CaptureError::NotACapture { .. } => Error::Refused(format!(
            "{name} is neither a .hop recording nor a pcapng file of hopscope slice"
        )),
        other => other.into(),
    })?;
    let mut trace = Vec::new();
    let mut rows = Vec::new();
    let mut losses = Losses::default();
    loop {
        let block = match reader.next_block() {
            Ok(Some(block)) => block,
            Ok(None) => break,
            Err(error) => {
                losses.ended = Some(error.to_string());
                break;
            }
        };
        match block {
            PrivateBlock::Private(bytes) => match part_of(&bytes) {
                Some((numbers, part)) => {
                    losses.found_block(numbers);
                    put(&mut trace, &mut rows);
                    trace.extend_from_slice(part);
                }
                None => losses.damaged += 1,
            },
            PrivateBlock::Frame {
                bytes,
                wire_len,
                private: Some(private),
            } => match packet_of(&private, bytes, wire_len) {
                Some((number, packet)) => {
                    losses.found_packet(number);
                    rows.push(packet);
                }
                None => losses.damaged += 1,
            },
            PrivateBlock::Frame { private: None, .. } => losses.foreign += 1,
            PrivateBlock::Other => {}
        }
        if rows.len() >= BATCH {
            put(&mut trace, &mut rows);
        }
    }
    put(&mut trace, &mut rows);
    if trace.is_empty() {
        match losses.ended {
            Some(ended) => refuse!("{ended}"),
            None => refuse!("{name} is a capture of another tool: there are no slices in it"),
        }
    }
    require!(
        trace.starts_with(&MAGIC),
        "{name} has records of packets without the tables that go with them: another tool wrote it anew, or its beginning is damaged"
    );
    Ok((trace, losses.text()))
}

fn part_of(block: &[u8]) -> Option<(Numbers, &[u8])> {
    let (words, rest) = block.strip_prefix(MARK)?.split_first_chunk::<12>()?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| words[at + i]));
    let numbers = Numbers {
        blocks: word(0),
        packets: word(4),
    };
    Some((numbers, rest.get(..word(8) as usize)?))
}

fn put(trace: &mut Vec<u8>, rows: &mut Vec<Sliced>) {
    if !rows.is_empty() {
        trace.extend(slices::to_chunk(rows));
        rows.clear();
    }
}
