//! A notification for each entry.
use super::{Rule, Seen, Wish};

/// `force`: also when the peer suppresses notifications. Without it the suppression test decides; whether that is
/// the flag or the event index is the ring's affair.
pub(super) struct Each {
    pub(super) force: bool,
}

impl Rule for Each {
    fn wish(&mut self, _: Seen) -> Wish {
        if self.force { Wish::Force } else { Wish::Ask }
    }
}
