//! What others were mixed into a place, where control runs straight through.
use super::copies::{Copies, GAP_AT_MOST};
use super::flow::Body;
use super::places::{Place, is_within};
use crate::instrument::body::unit::Op;
use crate::locate::join;
use std::ops::Range;

impl Body<'_> {
    /// But where another call begins behind them.
    pub(super) fn fill_gaps(&self, places: &mut [Place], n: usize, copies: &Copies) {
        let runs = &places[n].runs;
        let gaps = runs.windows(2).filter_map(|pair| {
            let gap = pair[0].end..pair[1].start;
            let is_filled = self.runs_through(&gap)
                && !self.is_of_another(places, n, gap.clone())
                && !copies.divide(self, &gap, &pair[1]);
            is_filled.then_some(gap)
        });
        let filled: Vec<Range<usize>> = gaps.collect();
        let place = &mut places[n];
        place.runs.extend(filled);
        join(&mut place.runs);
    }

    fn runs_through(&self, gap: &Range<usize>) -> bool {
        let goes_on = |at: usize| {
            let insn = self.insns[at];
            let before = self.insns[at - 1];
            let straight = matches!(insn.op, Op::Plain | Op::RipRelative { .. });
            straight
                && !self.calls[at]
                && !self.targets.contains(&insn.svma)
                && before.next() == insn.svma
        };
        gap.len() <= GAP_AT_MOST
            && self.insns[gap.end - 1].next() == self.insns[gap.end].svma
            && gap.clone().all(goes_on)
            && self.insns[gap.start - 1].goes_on()
    }

    /// Of one that is neither around the place nor within it.
    pub(super) fn is_of_another(&self, places: &[Place], n: usize, gap: Range<usize>) -> bool {
        let overlaps = |runs: &[Range<usize>]| {
            let first = runs.partition_point(|r| r.end <= gap.start);
            runs.get(first).is_some_and(|r| r.start < gap.end)
        };
        places.iter().enumerate().any(|(m, other)| {
            (overlaps(&other.runs) || overlaps(&other.given))
                && !is_within(places, m, n)
                && !is_within(places, n, m)
        })
    }
}
