//! From the runs of each thread to one sequence, by end.
use super::counts::RunCounts;
use crate::analysis::Batch;
use crate::rounds::Rounds;
use crate::run::{Run, RunIx};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Room for calls in runs that wait for others: 120 MiB.
pub const WAITING_CALLS_MAX: usize = 1 << 21;

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
    is_told: bool,
    given: u64,
    given_end: u64,
}

impl Merge {
    pub(super) fn visit(&mut self, batch: &Batch<'_>) {
        if let Some(passed) = self.rounds.visit(batch)
            && !self.is_told
        {
            self.watermark = self.watermark.max(passed);
        }
    }

    /// Batches are no visits of rings any more: who puts them in order tells how far it is.
    pub(super) fn settled(&mut self, until: u64) {
        self.is_told = true;
        self.watermark = self.watermark.max(until);
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
