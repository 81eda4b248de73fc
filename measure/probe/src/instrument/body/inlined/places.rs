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

    /// Keeps what is reached from its begin, as the debugging information has it, or from where most is reached if the begin
    /// reaches less than a fifth (one instruction of the begin was moved out of a loop; what is split off for being rare is
    /// often more than what is not).
    fn drop_islands(&self, entry: u64, place: &mut Place) {
        let first = self.insns.partition_point(|i| i.svma < entry);
        let begin = place.runs.iter().position(|r| r.contains(&first));
        let Some(mut kept) = begin
            .or(Some(0))
            .filter(|n| *n < place.runs.len())
            .map(|n| self.reached(n, place))
        else {
            return;
        };
        let size = |runs: &[bool]| {
            let kept = place.runs.iter().zip(runs).filter(|(_, kept)| **kept);
            kept.map(|(run, _)| run.len()).sum::<usize>()
        };
        if 5 * size(&kept) < total(&place.runs) {
            // What one reaches does not reach more than that one.
            let mut seen = kept.clone();
            while let Some(next) = seen.iter().position(|seen| !seen) {
                let reached = self.reached(next, place);
                seen.iter_mut()
                    .zip(&reached)
                    .for_each(|(seen, is)| *seen |= is);
                if size(&reached) > size(&kept) {
                    kept = reached;
                }
            }
        }
        let mut kept = kept.into_iter();
        place.runs.retain(|_| kept.next().unwrap_or(false));
    }

    /// Which runs of a place control comes to from one of them without leaving it.
    fn reached(&self, from: usize, place: &Place) -> Vec<bool> {
        let run_of = |at: usize| place.runs.partition_point(|r| r.end <= at);
        let mut reached = vec![false; place.runs.len()];
        reached[from] = true;
        let mut open = vec![from];
        while let Some(run) = open.pop() {
            for at in place.runs[run].clone() {
                for to in self.successors(at).flatten().chain(self.pad(at)) {
                    let Some(at) = self.number(to) else { continue };
                    let run = run_of(at);
                    if place.runs.get(run).is_some_and(|r| r.contains(&at)) && !reached[run] {
                        reached[run] = true;
                        open.push(run);
                    }
                }
            }
        }
        reached
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
