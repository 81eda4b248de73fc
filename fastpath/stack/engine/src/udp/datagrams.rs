//! A queue of datagrams in chunks of the pool.
use crate::buffer::{Pool, SendBuffer};
use crate::wire::checksum::Sum;
use std::collections::VecDeque;

/// What a datagram counts besides its bytes, so that empty ones fill a queue, too (Linux counts its sk_buff).
const OVERHEAD_BYTES: usize = 256;

/// `T` is what is known of each datagram.
#[derive(Debug)]
pub(super) struct Datagrams<T> {
    bytes: SendBuffer,
    headers: VecDeque<(T, u16)>,
}

impl<T> Default for Datagrams<T> {
    fn default() -> Datagrams<T> {
        Datagrams {
            bytes: SendBuffer::default(),
            headers: VecDeque::new(),
        }
    }
}

impl<T> Datagrams<T> {
    /// False: the pool is empty, and nothing was taken.
    #[must_use]
    pub(super) fn push(&mut self, pool: &mut Pool, header: T, payload: &[u8]) -> bool {
        let Ok(len) = u16::try_from(payload.len()) else {
            return false;
        };
        let before = self.bytes.len();
        if self.bytes.append(pool, payload, usize::MAX) < payload.len() {
            self.bytes.truncate(pool, before);
            return false;
        }
        self.headers.push_back((header, len));
        true
    }

    pub(super) fn front(&self) -> Option<(&T, usize)> {
        let (header, len) = self.headers.front()?;
        Some((header, usize::from(*len)))
    }

    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.headers.front_mut().map(|(header, _)| header)
    }

    /// Copies from `offset` of the oldest datagram, as far as it goes.
    pub(super) fn copy_front(&self, offset: usize, into: &mut [u8]) -> Option<()> {
        self.bytes.copy_unsummed(offset, into)
    }

    /// The checksum of the oldest datagram's payload while copying its beginning.
    pub(super) fn copy_summed(&self, into: &mut [u8]) -> Option<Sum> {
        self.bytes.copy(0, into)
    }

    pub(super) fn sum_front(&self) -> Option<Sum> {
        let (_, len) = self.front()?;
        self.bytes.sum(0, len)
    }

    pub(super) fn pop(&mut self, pool: &mut Pool) -> Option<T> {
        let (header, len) = self.headers.pop_front()?;
        self.bytes.release(pool, usize::from(len));
        if self.headers.is_empty() && self.headers.capacity() > 64 {
            self.headers = VecDeque::new();
        }
        Some(header)
    }

    pub(super) fn clear(&mut self, pool: &mut Pool) {
        self.bytes.clear(pool);
        self.headers = VecDeque::new();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }

    /// What it counts against a limit.
    pub(super) fn counted_bytes(&self) -> usize {
        self.bytes.len() + self.headers.len() * OVERHEAD_BYTES
    }
}

/// What one datagram counts.
pub(super) fn counted(payload_bytes: usize) -> usize {
    payload_bytes + OVERHEAD_BYTES
}
