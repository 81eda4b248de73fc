//! Bytes that a peer sent and the application has not read: in order, and beyond holes.
use super::pool::{CHUNK_BYTES, Chunk, Pool};
use std::collections::VecDeque;

/// Out-of-order ranges of one buffer; a segment that would make one more is refused. A peer that leaves a hole after
/// each byte costs 16 KiB, not a multiple of its window.
const MAX_RANGES: usize = 1024;
/// Places for chunks: 1 GiB, the largest window (RFC 7323, 2.3).
const MAX_PLACES: usize = (1 << 30) / CHUNK_BYTES + 1;
/// The table of chunks of an empty buffer is freed where it has more places.
const KEPT_PLACES: usize = 16;

/// Positions count from the stream's first byte. Segments are named by offsets from the next expected byte, RCV.NXT.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    /// What lies at `base` and after, in place; a chunk that has no byte yet is `None`.
    chunks: VecDeque<Option<Chunk>>,
    base: u64,
    /// Of them, those that are there.
    held: usize,
    /// The first unread byte, and the first that has not come: RCV.NXT.
    read: u64,
    next: u64,
    /// Sorted, disjoint, not adjacent, all after `next`.
    ranges: Vec<(u64, u64)>,
}

/// What [`ReceiveBuffer::write`] did. Ranges are offsets from RCV.NXT as it was before, the second after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    /// RCV.NXT has moved by so much: these bytes, and out-of-order ones that they joined.
    pub advanced: u32,
    /// Bytes that were not there before.
    pub stored: u32,
    /// Where the segment is beyond a hole: all bytes around it that are there, the first SACK block (RFC 2018, 4).
    pub range: Option<(u32, u32)>,
    /// The first part that was there before: for DSACK (RFC 2883, 4).
    pub duplicate: Option<(u32, u32)>,
    /// Out-of-order ranges that were joined with others.
    pub merged: u32,
    /// Bytes that were not stored, for lack of memory or because of too many holes; the caller counts it.
    pub refused: u32,
}

impl ReceiveBuffer {
    /// Bytes that can be read.
    pub(crate) fn readable(&self) -> usize {
        (self.next - self.read) as usize
    }

    /// Bytes beyond the first hole.
    pub(crate) fn out_of_order_bytes(&self) -> usize {
        self.ranges.iter().map(|(l, r)| (r - l) as usize).sum()
    }

    pub(crate) fn has_out_of_order(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// The out-of-order ranges in order, as offsets from RCV.NXT.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + '_ {
        let next = self.next;
        let ranges = self.ranges.iter();
        ranges.map(move |(l, r)| ((l - next) as u32, (r - next) as u32))
    }

    /// Memory that it takes from the pool.
    #[cfg(test)]
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunks.iter().flatten().count() * CHUNK_BYTES
    }

    /// Stores a segment whose first byte is `offset` after RCV.NXT. The caller has cut off what is before it and beyond the
    /// window. Where bytes are there already, the earlier ones stay.
    pub(crate) fn write(&mut self, pool: &mut Pool, offset: u32, bytes: &[u8]) -> Written {
        if offset == 0 && self.ranges.is_empty() {
            return self.write_in_order(pool, bytes);
        }
        self.write_sparse(pool, offset, bytes)
    }

    fn write_in_order(&mut self, pool: &mut Pool, bytes: &[u8]) -> Written {
        let stored = self.put(pool, self.next, bytes);
        self.next += stored as u64;
        Written {
            advanced: stored as u32,
            stored: stored as u32,
            refused: (bytes.len() - stored) as u32,
            ..Written::default()
        }
    }

    fn write_sparse(&mut self, pool: &mut Pool, offset: u32, bytes: &[u8]) -> Written {
        let mut written = Written::default();
        let old_next = self.next;
        let relative = |(l, r): (u64, u64)| ((l - old_next) as u32, (r - old_next) as u32);
        let start = old_next + u64::from(offset);
        let end = start + bytes.len() as u64;
        // Those that touch the segment: [first, last).
        let first = self.ranges.partition_point(|(_, r)| *r < start);
        let touching = self.ranges[first..].partition_point(|(l, _)| *l <= end);
        let last = first + touching;
        let is_new = first == last && start != self.next;
        if is_new && self.ranges.len() == MAX_RANGES {
            written.refused = bytes.len() as u32;
            return written;
        }
        let mut at = start;
        for i in first..=last {
            let (left, right) = match self.ranges.get(i) {
                Some(range) if i < last => *range,
                _ => (end, end),
            };
            let gap_end = left.clamp(at, end);
            let gap = &bytes[(at - start) as usize..(gap_end - start) as usize];
            let stored = self.put(pool, at, gap);
            written.stored += stored as u32;
            if stored < gap.len() {
                at += stored as u64;
                break;
            }
            let overlap = (gap_end, right.min(end));
            if overlap.0 < overlap.1 && written.duplicate.is_none() {
                written.duplicate = Some(relative(overlap));
            }
            at = right.clamp(gap_end, end);
        }
        written.refused = (end - at) as u32;
        if at > start {
            self.mark(start, at, &mut written, relative);
        }
        written
    }

    /// [start, end) is stored: joins it with the ranges that it touches, and with what is in order.
    fn mark(
        &mut self,
        start: u64,
        end: u64,
        written: &mut Written,
        relative: impl Fn((u64, u64)) -> (u32, u32),
    ) {
        let first = self.ranges.partition_point(|(_, r)| *r < start);
        let last = first + self.ranges[first..].partition_point(|(l, _)| *l <= end);
        let touched = &self.ranges[first..last];
        let left = touched.first().map_or(start, |(l, _)| start.min(*l));
        let right = touched.last().map_or(end, |(_, r)| end.max(*r));
        if start == self.next {
            written.merged = touched.len() as u32;
            written.advanced = (right - start) as u32;
            self.ranges.drain(first..last);
            self.next = right;
            return;
        }
        written.range = Some(relative((left, right)));
        if touched.is_empty() {
            self.ranges.insert(first, (left, right));
        } else {
            written.merged = touched.len() as u32 - 1;
            self.ranges[first] = (left, right);
            self.ranges.drain(first + 1..last);
        }
    }

    /// Copies `bytes` to their place as far as there is memory; returns how many.
    fn put(&mut self, pool: &mut Pool, position: u64, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        let mut at = (position - self.base) as usize;
        while !rest.is_empty() {
            let index = at / CHUNK_BYTES;
            let Some(chunk) = self.chunk(pool, index) else {
                break;
            };
            let room = &mut chunk[at % CHUNK_BYTES..];
            let (now, later) = rest.split_at(rest.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            at += now.len();
            rest = later;
        }
        bytes.len() - rest.len()
    }

    fn chunk(&mut self, pool: &mut Pool, index: usize) -> Option<&mut Chunk> {
        if index >= MAX_PLACES {
            return None;
        }
        if index >= self.chunks.len() {
            self.chunks.resize_with(index + 1, || None);
        }
        let place = self.chunks.get_mut(index)?;
        if place.is_none() {
            *place = Some(pool.take_received(self.held)?);
            self.held += 1;
        }
        place.as_mut()
    }

    /// Moves readable bytes to `into`; returns how many.
    pub(crate) fn read(&mut self, pool: &mut Pool, into: &mut [u8]) -> usize {
        let bytes = self.peek(0, into);
        self.discard(pool, bytes)
    }

    /// Copies readable bytes from `offset` after the first unread one.
    pub(crate) fn peek(&self, offset: usize, into: &mut [u8]) -> usize {
        let len = into.len().min(self.readable().saturating_sub(offset));
        let mut into = &mut into[..len];
        let mut at = (self.read - self.base) as usize + offset;
        while !into.is_empty() {
            let Some(Some(chunk)) = self.chunks.get(at / CHUNK_BYTES) else {
                break;
            };
            let from = &chunk[at % CHUNK_BYTES..];
            let (now, later) = into.split_at_mut(from.len().min(into.len()));
            now.copy_from_slice(&from[..now.len()]);
            at += now.len();
            into = later;
        }
        len
    }

    /// Forgets up to `bytes` readable ones; returns how many.
    pub(crate) fn discard(&mut self, pool: &mut Pool, bytes: usize) -> usize {
        let bytes = bytes.min(self.readable());
        self.read += bytes as u64;
        if self.read == self.next && self.ranges.is_empty() {
            self.free_from(pool, 0);
            self.base = self.read;
            if self.chunks.capacity() > KEPT_PLACES {
                self.chunks = VecDeque::new();
            }
            return bytes;
        }
        while self.read - self.base >= CHUNK_BYTES as u64 {
            if let Some(chunk) = self.chunks.pop_front().flatten() {
                self.held -= 1;
                pool.give(chunk);
            }
            self.base += CHUNK_BYTES as u64;
        }
        bytes
    }

    /// Forgets all out-of-order bytes, which RFC 2018, 8 allows; returns how many.
    pub(crate) fn prune(&mut self, pool: &mut Pool) -> usize {
        let bytes = self.out_of_order_bytes();
        self.ranges = Vec::new();
        let kept = ((self.next - self.base) as usize).div_ceil(CHUNK_BYTES);
        self.free_from(pool, kept);
        self.discard(pool, 0);
        bytes
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        self.ranges = Vec::new();
        self.discard(pool, usize::MAX);
    }

    fn free_from(&mut self, pool: &mut Pool, index: usize) {
        while self.chunks.len() > index {
            if let Some(chunk) = self.chunks.pop_back().flatten() {
                self.held -= 1;
                pool.give(chunk);
            }
        }
    }
}

#[cfg(test)]
mod tests;
