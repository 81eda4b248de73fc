//! What a policy did, exactly.
use crate::Ns;

/// Bucket n counts batches of 2^n … 2^(n+1)-1 entries; the last everything from 1,024 on.
pub const BATCH_BUCKETS: usize = 11;

/// Since the policy was made. Every published entry is announced, suppressed or still unannounced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct PolicyCounts {
    /// Entries that the peer could see.
    pub published: u64,
    pub notified: u64,
    /// Times the peer needed no notification.
    pub suppressed: u64,
    /// Times an entry was held back although nothing waited.
    pub holds: u64,
    #[serde(rename = "hold_max_ns")]
    pub hold_max: Ns,
    /// Entries published that filled the ring.
    pub full: u64,
    /// Entries that a notification announced, by powers of two.
    pub batches: [u64; BATCH_BUCKETS],
    /// Entries announced by notifications, the sum over all batches.
    pub announced: u64,
}

impl PolicyCounts {
    /// Those of a policy that came before.
    pub fn add(&mut self, other: &PolicyCounts) {
        self.published += other.published;
        self.notified += other.notified;
        self.suppressed += other.suppressed;
        self.holds += other.holds;
        self.hold_max = self.hold_max.max(other.hold_max);
        self.full += other.full;
        self.announced += other.announced;
        for (sum, count) in self.batches.iter_mut().zip(other.batches) {
            *sum += count;
        }
    }

    pub(super) fn batch(&mut self, entries: u32) {
        let bucket = (entries.max(1).ilog2() as usize).min(BATCH_BUCKETS - 1);
        self.batches[bucket] += 1;
        self.announced += u64::from(entries);
    }

    pub(super) fn hold(&mut self, held: Ns) {
        self.hold_max = self.hold_max.max(held);
    }
}
