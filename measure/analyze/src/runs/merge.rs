//! From the runs of each thread to one sequence, by end.
use super::counts::RunCounts;
use crate::batch::Batch;
use crate::run::{Run, RunIx};
use hopscope_event::ThreadIx;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Room for calls in runs that wait for others: 120 MiB.
pub const WAITING_CALLS_MAX: usize = 1 << 21;

/// The writer cuts what one visit of a ring found into parts of this size: a shorter part ends
/// the visit.
const VISIT_PART_RECORDS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Merge {
    /// End, order of arrival, place.
    order: BinaryHeap<Reverse<(u64, u64, u32)>>,
    places: Vec<Option<Run>>,
    free: Vec<u32>,
    arrived: u64,
    waiting_calls: usize,
    /// No run to come ends before this, if all goes well.
    watermark: u64,
    rounds: Rounds,
    given: u64,
    given_end: u64,
}

/// The recorder's rounds over the rings, as the file shows them.
#[derive(Debug, Default)]
struct Rounds {
    round: u64,
    visited: HashMap<ThreadIx, u64>,
    last: Option<ThreadIx>,
    last_was_full: bool,
    newest: u64,
    newest_before: u64,
}

impl Rounds {
    /// The new watermark, when a round begins with this batch.
    fn visit(&mut self, batch: &Batch<'_>) -> Option<u64> {
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
        self.newest = self
            .newest
            .max(batch.stamps().next_back().map_or(0, |at| at.0));
        passed
    }
}

impl Merge {
    pub(super) fn visit(&mut self, batch: &Batch<'_>) {
        if let Some(passed) = self.rounds.visit(batch) {
            self.watermark = self.watermark.max(passed);
        }
    }

    pub(super) fn no_more(&mut self) {
        self.watermark = u64::MAX;
    }

    pub(super) fn push(&mut self, run: Run) {
        self.waiting_calls += run.calls.capacity();
        let end = run.end.0;
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = Some(run);
                place
            }
            None => {
                self.places.push(Some(run));
                self.places.len() as u32 - 1
            }
        };
        self.order.push(Reverse((end, self.arrived, place)));
        self.arrived += 1;
    }

    #[inline]
    pub(super) fn ready(&mut self, counts: &mut RunCounts) -> Option<Run> {
        let Reverse((end, _, place)) = *self.order.peek()?;
        if end > self.watermark && self.waiting_calls <= WAITING_CALLS_MAX {
            return None;
        }
        self.order.pop();
        self.free.push(place);
        let mut run = self.places[place as usize].take()?;
        self.waiting_calls -= run.calls.capacity();
        counts.out_of_order += u64::from(end < self.given_end);
        self.given_end = self.given_end.max(end);
        run.ix = RunIx(self.given);
        self.given += 1;
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::value::number;
    use hopscope_event::{CapturePlace, Content, FunctionId, Record, RecordKind, Value};

    /// A value that is taken for a stamp would be later than all that is to come.
    #[test]
    fn a_captured_value_at_the_end_of_a_batch_is_no_stamp() {
        let entry = Record::new(100, FunctionId(0), RecordKind::Entry, 0x1000);
        let value = Value {
            capture: number(CapturePlace::Entry, 0),
            element: 0,
            content: Content::Value(1 << 40),
        };
        let records = [entry, value.record(FunctionId(0))];
        let batch = Batch {
            thread: ThreadIx(0),
            first_index: 0,
            lost: 0,
            torn: 0,
            records: &records,
            taken: &[],
            early: false,
        };
        let mut rounds = Rounds::default();
        let passed: Vec<_> = (0..3).filter_map(|_| rounds.visit(&batch)).collect();
        assert_eq!(passed.last(), Some(&100));
    }
}
