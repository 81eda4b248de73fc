//! Bytes that an application wrote and the peer has not acknowledged.
use super::pool::{CHUNK_BYTES, Chunk, Pool};
use crate::wire::checksum::Sum;
use std::collections::VecDeque;

/// Offsets are from the first byte that was not released: snd_una's, once SYN is acknowledged.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    chunks: VecDeque<Chunk>,
    /// Of the first byte in the first chunk.
    head: usize,
    len: usize,
}

/// The table of chunks of an empty buffer is freed where it has more places.
const KEPT_PLACES: usize = 16;

impl SendBuffer {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Memory that it takes from the pool.
    #[cfg(test)]
    pub(crate) fn chunk_bytes(&self) -> usize {
        self.chunks.len() * CHUNK_BYTES
    }

    /// Takes bytes until `bytes` ends, `limit` are in the buffer, or the pool is empty; returns how many.
    pub(crate) fn append(&mut self, pool: &mut Pool, bytes: &[u8], limit: usize) -> usize {
        let take = bytes.len().min(limit.saturating_sub(self.len));
        let mut rest = &bytes[..take];
        while !rest.is_empty() {
            let end = self.head + self.len;
            if end == self.chunks.len() * CHUNK_BYTES {
                let Some(chunk) = pool.take() else { break };
                self.chunks.push_back(chunk);
            }
            let Some(chunk) = self.chunks.back_mut() else {
                break;
            };
            let room = &mut chunk[end % CHUNK_BYTES..];
            let (now, later) = rest.split_at(rest.len().min(room.len()));
            room[..now.len()].copy_from_slice(now);
            self.len += now.len();
            rest = later;
        }
        take - rest.len()
    }

    /// Copies what is at `offset` to `into`, all of it, and sums it as if it began at an even offset. `None` where the
    /// buffer does not have so much.
    pub(crate) fn copy(&self, offset: usize, into: &mut [u8]) -> Option<Sum> {
        let mut sum = Sum::default();
        self.pieces(offset, into, |done, into, from| {
            sum = sum.and_at(done, Sum::of_copy(into, from));
        })?;
        Some(sum)
    }

    /// The same without a sum, for frames whose checksum the device computes.
    pub(crate) fn copy_unsummed(&self, offset: usize, into: &mut [u8]) -> Option<()> {
        self.pieces(offset, into, |_, into, from| into.copy_from_slice(from))
    }

    /// The sum alone.
    pub(crate) fn sum(&self, offset: usize, len: usize) -> Option<Sum> {
        let end = self.head + offset.checked_add(len).filter(|end| *end <= self.len)?;
        let mut at = self.head + offset;
        let mut sum = Sum::default();
        let mut done = 0;
        while at < end {
            let chunk = &self.chunks.get(at / CHUNK_BYTES)?[at % CHUNK_BYTES..];
            let piece = chunk.len().min(end - at);
            sum = sum.and_at(done, Sum::of(&chunk[..piece]));
            done += piece;
            at += piece;
        }
        Some(sum)
    }

    fn pieces(
        &self,
        offset: usize,
        mut into: &mut [u8],
        mut copy: impl FnMut(usize, &mut [u8], &[u8]),
    ) -> Option<()> {
        if offset.checked_add(into.len())? > self.len {
            return None;
        }
        let mut at = self.head + offset;
        let mut done = 0;
        while !into.is_empty() {
            let from = &self.chunks.get(at / CHUNK_BYTES)?[at % CHUNK_BYTES..];
            let piece = from.len().min(into.len());
            let (now, later) = into.split_at_mut(piece);
            copy(done, now, &from[..piece]);
            into = later;
            done += piece;
            at += piece;
        }
        Some(())
    }

    /// Forgets the first `bytes`, which were acknowledged; more than there are are all.
    pub(crate) fn release(&mut self, pool: &mut Pool, bytes: usize) {
        let bytes = bytes.min(self.len);
        self.head += bytes;
        self.len -= bytes;
        if self.len == 0 {
            return self.clear(pool);
        }
        while self.head >= CHUNK_BYTES {
            if let Some(chunk) = self.chunks.pop_front() {
                pool.give(chunk);
            }
            self.head -= CHUNK_BYTES;
        }
    }

    /// Forgets all but the first `len` bytes.
    pub(crate) fn truncate(&mut self, pool: &mut Pool, len: usize) {
        if len == 0 {
            return self.clear(pool);
        }
        self.len = self.len.min(len);
        let kept = (self.head + self.len).div_ceil(CHUNK_BYTES);
        while self.chunks.len() > kept {
            if let Some(chunk) = self.chunks.pop_back() {
                pool.give(chunk);
            }
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        while let Some(chunk) = self.chunks.pop_back() {
            pool.give(chunk);
        }
        (self.head, self.len) = (0, 0);
        if self.chunks.capacity() > KEPT_PLACES {
            self.chunks = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests;
