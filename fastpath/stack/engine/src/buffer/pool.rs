//! Chunks of memory that all buffers of an engine share.

pub(crate) const CHUNK_BYTES: usize = 4096;

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
}

impl Pool {
    /// Gives out at most `limit_bytes`, and at least one chunk.
    pub(crate) fn new(limit_bytes: u64) -> Pool {
        let chunks = limit_bytes / CHUNK_BYTES as u64;
        Pool {
            free: Vec::new(),
            used: 0,
            max_used: usize::try_from(chunks).unwrap_or(usize::MAX).max(1),
        }
    }

    /// A chunk with any contents; `None` at the limit, which the caller counts.
    pub(crate) fn take(&mut self) -> Option<Chunk> {
        if self.used == self.max_used {
            return None;
        }
        self.used += 1;
        Some(
            self.free
                .pop()
                .unwrap_or_else(|| Box::new([0; CHUNK_BYTES])),
        )
    }

    pub(crate) fn give(&mut self, chunk: Chunk) {
        self.used -= 1;
        if self.free.len() < MAX_FREE {
            self.free.push(chunk);
        }
    }

    /// In buffers now.
    pub(crate) fn used_bytes(&self) -> u64 {
        (self.used * CHUNK_BYTES) as u64
    }

    /// Whether so little is left that windows should not grow: less than an eighth (tcp_mem's pressure).
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.used > self.max_used - self.max_used / 8
    }
}
