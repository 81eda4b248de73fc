//! Records of sliced packets as they lie in a chunk: a fixed head, then one row a packet, some 60–90
//! bytes instead of 384, and the packet's bytes where they were captured.
//!
//! A record is 96 words of 32 bits, little-endian. A row names one of the four rows before it and
//! says by how much which words differ from it:
//!
//! | bytes | field |
//! |---|---|
//! | 1 | bits 0–1: how many rows before, minus 1; bit 7: the packet's bytes follow; others 0 |
//! | 12 | a bit for each word, lowest first: it differs |
//! | | for each of those, the difference modulo 2^32, signed, folded, of variable length |
//! | | if bit 7: original length, link header's length, number of bytes, all of variable length; the bytes |
//!
//! *Variable length* and *folded* are as for stamps. Before the first row of each batch are four of
//! zeros, so that it can be read without the others.
use crate::format::{ChunkHeader, SLICES, SLICES_HEADER_BYTES};
use crate::varint::{fold, put, take, unfold};
use hopscope_event::slice::{SliceBytes, SliceRecord, Sliced};

const WORDS: usize = SliceRecord::BYTES / 4;
const MAP: usize = WORDS / 8;
/// Fewest bytes that one row takes.
const BEST: usize = 1 + MAP;
const BEFORE: usize = 4;
const HAS_BYTES: u8 = 1 << 7;

/// The head of a batch of rows, readable without decoding them.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | number of rows |
/// | 4 | 4 | of these, rows with bytes of the packet |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlicesHead {
    pub rows: u32,
    pub with_bytes: u32,
}

impl SlicesHead {
    pub(crate) fn of(rows: &[Sliced]) -> SlicesHead {
        SlicesHead {
            rows: rows.len() as u32,
            with_bytes: rows.iter().filter(|row| row.bytes.is_some()).count() as u32,
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; SLICES_HEADER_BYTES] {
        let mut bytes = [0; SLICES_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.rows.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.with_bytes.to_le_bytes());
        bytes
    }

    /// `None` when `payload` is shorter than a head, or than its number of rows allows.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<SlicesHead> {
        let (head, rows) = payload.split_first_chunk::<SLICES_HEADER_BYTES>()?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let head = SlicesHead {
            rows: word(0),
            with_bytes: word(4),
        };
        (head.rows as usize <= rows.len() / BEST).then_some(head)
    }
}

/// A chunk's rows; `None` when they do not decode, or are not those that the head counts.
pub(crate) fn of_payload(payload: &[u8]) -> Option<Vec<Sliced>> {
    let head = SlicesHead::of_payload(payload)?;
    let rows = decode(&payload[SLICES_HEADER_BYTES..], head.rows as usize)?;
    (SlicesHead::of(&rows) == head).then_some(rows)
}

type Words = [u32; WORDS];

fn words(record: &SliceRecord) -> Words {
    let bytes = record.to_bytes();
    std::array::from_fn(|at| u32::from_le_bytes(std::array::from_fn(|i| bytes[4 * at + i])))
}

fn record(words: &Words) -> SliceRecord {
    let mut bytes = [0; SliceRecord::BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    SliceRecord::from_bytes(&bytes)
}

/// The latest rows, the last one first. Both directions of a connection come in turn: the packet
/// before is mostly not the one that this one is like.
struct Latest([Words; BEFORE]);

impl Latest {
    fn new() -> Latest {
        Latest([[0; WORDS]; BEFORE])
    }

    fn learn(&mut self, words: Words) {
        self.0.rotate_right(1);
        self.0[0] = words;
    }

    fn nearest(&self, words: &Words) -> usize {
        let differ = |at: &usize| {
            self.0[*at]
                .iter()
                .zip(words)
                .filter(|(a, b)| a != b)
                .count()
        };
        (0..BEFORE).min_by_key(differ).unwrap_or(0)
    }
}

/// Appends the encoding of `rows`.
///
/// # Panics
/// Not on anything that a [`Sliced`] can hold.
pub fn encode(rows: &[Sliced], out: &mut Vec<u8>) {
    let mut latest = Latest::new();
    for row in rows {
        let words = words(&row.record);
        let back = latest.nearest(&words);
        let like = &latest.0[back];
        out.push(back as u8 | if row.bytes.is_some() { HAS_BYTES } else { 0 });
        let map = out.len();
        out.extend_from_slice(&[0; MAP]);
        for (at, (word, like)) in words.iter().zip(like).enumerate() {
            if word != like {
                out[map + at / 8] |= 1 << (at % 8);
                put(out, fold(word.wrapping_sub(*like) as i32 as u64));
            }
        }
        if let Some(bytes) = &row.bytes {
            put(out, u64::from(bytes.original_len));
            put(out, u64::from(bytes.link_len));
            put(out, bytes.bytes.len() as u64);
            out.extend_from_slice(&bytes.bytes);
        }
        latest.learn(words);
    }
}

/// Decodes exactly `count` rows; `None` when the bytes are not an encoding of that many.
pub fn decode(bytes: &[u8], count: usize) -> Option<Vec<Sliced>> {
    // The bytes there are bound what is allocated.
    if count > bytes.len() / BEST {
        return None;
    }
    let mut rows = Vec::with_capacity(count);
    let mut latest = Latest::new();
    let mut rest = bytes;
    while rows.len() < count {
        rows.push(decode_one(&mut rest, &mut latest)?);
    }
    rest.is_empty().then_some(rows)
}

fn decode_one(rest: &mut &[u8], latest: &mut Latest) -> Option<Sliced> {
    let ([control, map @ ..], after) = rest.split_first_chunk::<{ 1 + MAP }>()?;
    *rest = after;
    if control & !HAS_BYTES >= BEFORE as u8 {
        return None;
    }
    let mut words = latest.0[usize::from(control & !HAS_BYTES)];
    for (at, word) in words.iter_mut().enumerate() {
        if map[at / 8] & 1 << (at % 8) != 0 {
            let step = i32::try_from(unfold(take(rest)?) as i64).ok()?;
            *word = word.wrapping_add(step as u32);
        }
    }
    let bytes = match control & HAS_BYTES {
        0 => None,
        _ => {
            let original_len = u32::try_from(take(rest)?).ok()?;
            let link_len = u16::try_from(take(rest)?).ok()?;
            let len = usize::try_from(take(rest)?).ok()?;
            let (bytes, after) = rest.split_at_checked(len)?;
            *rest = after;
            Some(SliceBytes {
                original_len,
                link_len,
                bytes: bytes.to_vec(),
            })
        }
    };
    latest.learn(words);
    Some(Sliced {
        record: record(&words),
        bytes,
    })
}

/// A whole chunk of `rows`, with its header: for containers that hold chunks.
pub fn to_chunk(rows: &[Sliced]) -> Vec<u8> {
    let mut payload = SlicesHead::of(rows).to_bytes().to_vec();
    encode(rows, &mut payload);
    let mut chunk = ChunkHeader::of(SLICES, &payload).to_bytes().to_vec();
    chunk.append(&mut payload);
    chunk
}

/// The rows of a whole chunk and of nothing else; `None` when it is damaged or of another type.
pub fn of_chunk(chunk: &[u8]) -> Option<Vec<Sliced>> {
    let (header, payload) = chunk.split_first_chunk()?;
    let header = ChunkHeader::from_bytes(header)?;
    let is_whole = header.kind == SLICES
        && header.len as usize == payload.len()
        && header.payload_crc == crc32fast::hash(payload);
    is_whole.then(|| of_payload(payload))?
}
