//! Which instructions belong to a place where a function was inlined.
use super::flow::Body;
use super::{Counts, NotTimed};
use crate::instrument::body::unit::Op;
use crate::locate::{Inlined, join};
use std::ops::Range;

/// Instructions of others between two of its own that count as its own.
const GAP_AT_MOST: usize = 8;

/// A place where a function was inlined, while its instructions are sorted out.
pub(super) struct Place {
    pub(super) level: u32,
    /// Of the one around it.
    pub(super) outer: Option<usize>,
    /// Numbers of instructions, ascending and apart.
    pub(super) runs: Vec<Range<usize>>,
    /// As the debugging information has it.
    given: Vec<Range<usize>>,
    pub(super) refused: Option<NotTimed>,
}

/// Of what was chosen in the unit, in the same order.
pub(super) fn sort_out(body: &Body, chosen: &[Inlined]) -> Vec<Place> {
    let mut places = body.places(chosen);
    for n in 0..places.len() {
        body.fill_gaps(&mut places, n);
    }
    for (inlined, place) in chosen.iter().zip(&mut places) {
        body.drop_islands(inlined.entry, place);
    }
    nest(&mut places);
    places
}

impl Place {
    pub(super) fn counts(&self) -> Counts {
        let own = common(&self.given, &self.runs);
        Counts {
            own,
            of_others: total(&self.runs) - own,
            apart: total(&self.given) - own,
        }
    }

    pub(super) fn overlaps(&self, other: &Place) -> bool {
        common(&self.runs, &other.runs) > 0
    }
}

impl Body<'_> {
    fn places(&self, chosen: &[Inlined]) -> Vec<Place> {
        let mut open: Vec<usize> = Vec::new();
        let mut places = Vec::with_capacity(chosen.len());
        for (n, inlined) in chosen.iter().enumerate() {
            open.truncate(inlined.depth as usize);
            // What was around it may be left out.
            let is_around = |outer: &usize| {
                let mut ranges = chosen[*outer].ranges.iter();
                ranges.any(|range| range.contains(&inlined.entry))
            };
            while open.pop_if(|outer| !is_around(outer)).is_some() {}
            let runs = inlined.ranges.iter().map(|range| {
                let first = self.insns.partition_point(|i| i.svma < range.start);
                let last = self.insns.partition_point(|i| i.svma < range.end);
                first..last
            });
            let mut runs: Vec<_> = runs.filter(|r| !r.is_empty()).collect();
            join(&mut runs);
            places.push(Place {
                level: open.len() as u32 + 1,
                outer: open.last().copied(),
                given: runs.clone(),
                runs,
                refused: None,
            });
            open.push(n);
        }
        places
    }

    /// What others were mixed into it, where control runs straight through and no third one is meant.
    fn fill_gaps(&self, places: &mut [Place], n: usize) {
        let mut filled = Vec::new();
        for pair in places[n].runs.windows(2) {
            let gap = pair[0].end..pair[1].start;
            let is_of_another = |(m, other): (usize, &Place)| {
                let related = is_within(places, m, n) || is_within(places, n, m);
                !related
                    && other
                        .runs
                        .iter()
                        .any(|r| r.start < gap.end && gap.start < r.end)
            };
            let goes_on = |at: &usize| {
                let insn = self.insns[*at];
                let before = self.insns[at - 1];
                let straight = matches!(insn.op, Op::Plain | Op::RipRelative { .. });
                straight
                    && !self.calls[*at]
                    && !self.targets.contains(&insn.svma)
                    && before.next() == insn.svma
            };
            let next = self.insns[gap.end];
            let ends_there = self.insns[gap.end - 1].next() == next.svma;
            let is_short = gap.len() <= GAP_AT_MOST && ends_there;
            if is_short && gap.clone().all(|at| goes_on(&at)) && self.insns[gap.start - 1].goes_on()
            {
                let mut others = places.iter().enumerate();
                if !others.any(is_of_another) {
                    filled.push(gap);
                }
            }
        }
        let place = &mut places[n];
        place.runs.extend(filled);
        join(&mut place.runs);
    }

    /// Keeps what is reached from its begin.
    fn drop_islands(&self, entry: u64, place: &mut Place) {
        let first = self.insns.partition_point(|i| i.svma < entry);
        let run_of = |at: usize| place.runs.iter().position(|r| r.contains(&at));
        let mut keep: Vec<usize> = run_of(first).or(Some(0)).into_iter().collect();
        let mut looked = 0;
        while let Some(run) = keep.get(looked).and_then(|n| place.runs.get(*n)) {
            looked += 1;
            for at in run.clone() {
                for to in self.successors(at).flatten().chain(self.pad(at)) {
                    if let Some(reached) = self.number(to).and_then(run_of)
                        && !keep.contains(&reached)
                    {
                        keep.push(reached);
                    }
                }
            }
        }
        let mut at = 0;
        place.runs.retain(|_| {
            at += 1;
            keep.contains(&(at - 1))
        });
    }
}

/// Whether place `inner` lies in `outer`, or is it.
pub(super) fn is_within(places: &[Place], inner: usize, outer: usize) -> bool {
    let mut at = Some(inner);
    while let Some(n) = at {
        if n == outer {
            return true;
        }
        at = places[n].outer;
    }
    false
}

/// Whatever is within a place is the place's.
fn nest(places: &mut [Place]) {
    for n in (0..places.len()).rev() {
        if let Some(outer) = places[n].outer {
            let runs = places[n].runs.clone();
            places[outer].runs.extend(runs);
            join(&mut places[outer].runs);
        }
    }
}

fn total(runs: &[Range<usize>]) -> usize {
    runs.iter().map(ExactSizeIterator::len).sum()
}

/// How many instructions are in both; each is ascending.
fn common(a: &[Range<usize>], b: &[Range<usize>]) -> usize {
    let of_one = |a: &Range<usize>| {
        let first = b.partition_point(|b| b.end <= a.start);
        let overlapping = b[first..].iter().take_while(|b| b.start < a.end);
        let common = overlapping.map(|b| a.end.min(b.end) - a.start.max(b.start));
        common.sum::<usize>()
    };
    a.iter().map(of_one).sum()
}
