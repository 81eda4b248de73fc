//! Chunks of memory that all buffers of an engine share, and what each may still have when there is little left (Linux tcp_mem, sk_mem_schedule).

pub(crate) const CHUNK_BYTES: usize = 4096;
/// A buffer may have so much under pressure, whatever others have (tcp_wmem's and tcp_rmem's least).
pub(crate) const LEAST_BYTES: u32 = CHUNK_BYTES as u32;
/// Chunks of received data that are always a buffer's: a segment may lie in two.
const LEAST_RECEIVED: usize = 2;

/// Owned by one buffer at a time; goes back by [`Pool::give`], else it counts as used for ever.
pub(crate) type Chunk = Box<[u8; CHUNK_BYTES]>;

/// Free chunks that stay allocated (4 MiB); more are returned to the allocator.
const MAX_FREE: usize = 1024;

#[derive(Debug)]
pub(crate) struct Pool {
    /// The last given one is the first taken: it is in the cache.
    free: Vec<Chunk>,
    used: usize,
    max_used: usize,
    /// Sockets that share it.
    sockets: usize,
    under_pressure: bool,
    /// How often pressure began.
    pressures: u64,
}

impl Pool {
    /// Gives out at most `limit_bytes`, and at least one chunk.
    pub(crate) fn new(limit_bytes: u64) -> Pool {
        let chunks = limit_bytes / CHUNK_BYTES as u64;
        Pool {
            free: Vec::new(),
            used: 0,
            max_used: usize::try_from(chunks).unwrap_or(usize::MAX).max(1),
            sockets: 0,
            under_pressure: false,
            pressures: 0,
        }
    }

    pub(crate) fn set_sockets(&mut self, sockets: usize) {
        self.sockets = sockets;
    }

    /// A chunk with any contents; `None` at the limit, or where there is no memory, which the caller counts.
    pub(crate) fn take(&mut self) -> Option<Chunk> {
        if self.is_empty() {
            return None;
        }
        let chunk = match self.free.pop() {
            Some(chunk) => chunk,
            None => allocated()?,
        };
        self.used += 1;
        // Between two thirds and all, the proportions of Linux' tcp_mem.
        if !self.under_pressure && self.used > self.max_used / 3 * 2 {
            self.under_pressure = true;
            self.pressures += 1;
        }
        Some(chunk)
    }

    /// For received data of a buffer that has `held` chunks: under pressure only the least, or its share.
    pub(crate) fn take_received(&mut self, held: usize) -> Option<Chunk> {
        let bytes = (held * CHUNK_BYTES) as u64;
        if self.under_pressure && held >= LEAST_RECEIVED && bytes >= self.share_bytes() {
            return None;
        }
        self.take()
    }

    pub(crate) fn give(&mut self, chunk: Chunk) {
        self.used -= 1;
        self.under_pressure &= self.used > self.max_used / 2;
        if self.free.len() < MAX_FREE {
            self.free.push(chunk);
        }
    }

    /// In buffers now.
    pub(crate) fn used_bytes(&self) -> u64 {
        (self.used * CHUNK_BYTES) as u64
    }

    /// Whether so little is left that nobody should have more than it needs: from two thirds of the limit until half of it.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.under_pressure
    }

    /// The last eighth, which is for those that have nothing.
    pub(crate) fn is_tight(&self) -> bool {
        self.used > self.max_used - self.max_used / 8
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left() == 0
    }

    /// In chunks.
    pub(crate) fn left(&self) -> usize {
        self.max_used - self.used
    }

    /// What a buffer may have under pressure beside the least: all have as much.
    pub(crate) fn share_bytes(&self) -> u64 {
        if self.is_tight() {
            return 0;
        }
        self.max_used as u64 * CHUNK_BYTES as u64 / self.sockets.max(1) as u64
    }

    pub(crate) fn pressures(&self) -> u64 {
        self.pressures
    }
}

fn allocated() -> Option<Chunk> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(CHUNK_BYTES).ok()?;
    bytes.resize(CHUNK_BYTES, 0);
    bytes.into_boxed_slice().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux tcp_enter_memory_pressure, tcp_leave_memory_pressure: not at the same level, so that it does not begin with each chunk.
    #[test]
    fn pressure_begins_at_two_thirds_and_ends_at_half() {
        let mut pool = Pool::new(12 * CHUNK_BYTES as u64);
        let mut held: Vec<Chunk> = (0..8).map_while(|_| pool.take()).collect();
        assert!(!pool.is_under_pressure());
        held.extend(pool.take());
        assert!(pool.is_under_pressure());
        for left in (0..9).rev() {
            pool.give(held.pop().unwrap());
            assert_eq!(pool.is_under_pressure(), left > 6, "{left}");
        }
        assert_eq!(pool.pressures(), 1);
    }

    #[test]
    fn under_pressure_received_data_has_the_least_or_a_share() {
        let mut pool = Pool::new(64 * CHUNK_BYTES as u64);
        pool.set_sockets(16);
        let held: Vec<Chunk> = (0..44).map_while(|_| pool.take()).collect();
        // 64 chunks of 16 sockets: four each.
        let more = [0, 1, 3, 4].map(|held| pool.take_received(held).is_some());
        assert_eq!(more, [true, true, true, false]);
        while !pool.is_tight() {
            pool.take();
        }
        let more = [1, 2].map(|held| pool.take_received(held).is_some());
        assert_eq!((more, held.len()), ([true, false], 44));
    }
}
