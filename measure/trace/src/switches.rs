//! When a thread did not run, as it lies in a chunk: a fixed head, then one row each time, 3–9 bytes
//! instead of 17.
//!
//! A row is two integers of variable length (LEB128): *out* minus the previous *back*, signed and
//! folded (`n << 1 ^ n >> 63`), then (*back* minus *out*) × 2 + *preempted*. All modulo 2^64, but
//! the length, which has 63 bits. Each batch starts from 0 as the previous *back*, so that it can
//! be read without the others.
use crate::format::SWITCHES_HEADER_BYTES;
use crate::varint::{fold, put, take, unfold};
use hopscope_event::{OffCpu, ThreadIx, Tsc};

/// Fewest bytes that one row takes.
const BEST: usize = 2;

/// The head of a batch of rows, readable without decoding them.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | thread |
/// | 4 | 4 | number of rows |
/// | 8 | 8 | switches that the kernel had no room for since the previous batch of this thread |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchesHead {
    pub thread: ThreadIx,
    pub rows: u32,
    pub lost_before: u64,
}

impl SwitchesHead {
    pub(crate) fn to_bytes(self) -> [u8; SWITCHES_HEADER_BYTES] {
        let mut bytes = [0; SWITCHES_HEADER_BYTES];
        bytes[0..4].copy_from_slice(&self.thread.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.rows.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.lost_before.to_le_bytes());
        bytes
    }

    /// `None` when `payload` is shorter than a head, or than its number of rows allows.
    pub(crate) fn of_payload(payload: &[u8]) -> Option<SwitchesHead> {
        let (head, rows) = payload.split_first_chunk::<SWITCHES_HEADER_BYTES>()?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i]));
        let head = SwitchesHead {
            thread: ThreadIx(word(0) as u32),
            rows: (word(0) >> 32) as u32,
            lost_before: word(8),
        };
        (head.rows as usize <= rows.len() / BEST).then_some(head)
    }
}

/// When one thread did not run, in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedSwitches {
    pub thread: ThreadIx,
    /// When not 0, nothing is known of the time between the previous row of this thread and the
    /// first one here.
    pub lost_before: u64,
    pub rows: Vec<OffCpu>,
}

impl OwnedSwitches {
    pub(crate) fn of_payload(payload: &[u8]) -> Option<OwnedSwitches> {
        let head = SwitchesHead::of_payload(payload)?;
        let rows = decode(&payload[SWITCHES_HEADER_BYTES..], head.rows as usize)?;
        Some(OwnedSwitches {
            thread: head.thread,
            lost_before: head.lost_before,
            rows,
        })
    }
}

/// Appends the encoding of `rows`. A row that ends before it begins is written as one of no length.
pub fn encode(rows: &[OffCpu], out: &mut Vec<u8>) {
    let mut previous = 0u64;
    for row in rows {
        put(out, fold(row.out.0.wrapping_sub(previous)));
        let ticks = row.ticks().min(u64::MAX >> 1);
        put(out, ticks << 1 | u64::from(row.preempted));
        previous = row.out.0.wrapping_add(ticks);
    }
}

/// Decodes exactly `count` rows; `None` when the bytes are not an encoding of that many.
pub fn decode(bytes: &[u8], count: usize) -> Option<Vec<OffCpu>> {
    // The bytes there are bound what is allocated.
    if count > bytes.len() / BEST {
        return None;
    }
    let mut rows = Vec::with_capacity(count);
    let mut rest = bytes;
    let mut previous = 0u64;
    while rows.len() < count {
        let out = previous.wrapping_add(unfold(take(&mut rest)?));
        let word = take(&mut rest)?;
        previous = out.checked_add(word >> 1)?;
        rows.push(OffCpu {
            out: Tsc(out),
            back: Tsc(previous),
            preempted: word & 1 == 1,
        });
    }
    rest.is_empty().then_some(rows)
}
