//! Two-end aggregation (TAM): publish what waits, then notify once.
use super::{Rule, Seen, Wish};

/// Front end: while packets wait and fit, publish; then one kick. Back end: handle everything that is
/// available, then one call. "Waits" is the backlog of this moment: with sparse traffic the first entry
/// is the last, and nothing is held back. `force`: as the original, which tests no suppression.
pub(super) struct Batch {
    pub(super) limit: u32,
    pub(super) force: bool,
}

impl Rule for Batch {
    fn wish(&mut self, seen: Seen) -> Wish {
        let whole = seen.waiting == 0 || seen.full || seen.unannounced >= self.limit;
        match (whole, self.force) {
            (false, _) => Wish::Batch,
            (true, true) => Wish::Force,
            (true, false) => Wish::Ask,
        }
    }
}
