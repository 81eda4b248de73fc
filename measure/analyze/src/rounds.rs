//! Up to when a recording is known whole while it is read.
use crate::analysis::Batch;
use hopscope_event::ThreadIx;
use std::collections::HashMap;

/// The writer cuts what one visit of a ring found into parts of this size: a shorter part ends
/// the visit.
const VISIT_PART_RECORDS: usize = 1 << 16;

/// The recorder's rounds over the rings, as the file shows them.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    round: u64,
    visited: HashMap<ThreadIx, u64>,
    last: Option<ThreadIx>,
    last_was_full: bool,
    newest: u64,
    newest_before: u64,
}

impl Rounds {
    /// The new watermark, when a round begins with this batch.
    pub(crate) fn visit(&mut self, batch: &Batch<'_>) -> Option<u64> {
        let continues = self.last == Some(batch.thread) && self.last_was_full;
        let seen = self.visited.insert(batch.thread, self.round);
        let mut passed = None;
        if !continues && seen == Some(self.round) {
            self.round += 1;
            self.visited.insert(batch.thread, self.round);
            passed = Some(self.newest_before);
            self.newest_before = self.newest;
        }
        self.last = Some(batch.thread);
        self.last_was_full = batch.records.len() >= VISIT_PART_RECORDS;
        self.newest = self.newest.max(batch.records.last().map_or(0, |r| r.tsc));
        passed
    }
}
