//! Where a place begins, and what is reached from there.
use super::copies::Copies;
use super::flow::Body;
use super::places::{Place, has, total};
use crate::instrument::body::unit::Op;
use std::collections::HashSet;
use std::ops::Range;

impl Body<'_> {
    /// Where control comes into these instructions.
    pub(super) fn ways_in(&self, runs: &[Range<usize>]) -> Vec<usize> {
        let is_way_in = |at: &usize| {
            let ways = &self.ways;
            ways.from_outside[*at] || ways.into[*at].iter().any(|from| !has(runs, *from))
        };
        runs.iter()
            .flat_map(Clone::clone)
            .filter(is_way_in)
            .collect()
    }

    /// Keeps what is reached from its begin, as the debugging information has it, or from where most is reached if the begin
    /// reaches less than a fifth (one instruction of the begin was moved out of a loop; what is split off for being rare is
    /// often more than what is not).
    pub(super) fn begin(&self, entry: u64, place: &mut Place) -> Option<usize> {
        let first = self.insns.partition_point(|i| i.svma < entry);
        let ways_in = self.ways_in(&place.runs);
        let size = |reached: &HashSet<usize>| {
            let own = reached.iter().filter(|at| has(&place.given, **at));
            own.count()
        };
        let mut begin = way_to(first, &ways_in, &place.runs);
        let mut kept = begin.map(|begin| self.reached(&[begin], &place.runs));
        if 5 * kept.as_ref().map_or(0, size) < total(&place.given) {
            // What one reaches does not reach more than that one.
            let mut seen = kept.clone().unwrap_or_default();
            for way in ways_in {
                if seen.contains(&way) {
                    continue;
                }
                let reached = self.reached(&[way], &place.runs);
                seen.extend(&reached);
                if kept.as_ref().is_none_or(|kept| size(&reached) > size(kept)) {
                    (begin, kept) = (Some(way), Some(reached));
                }
            }
        }
        self.keep(place, &kept.unwrap_or_default());
        begin
    }

    /// Keeps what is reached from any of its copies.
    pub(super) fn keep_copies(&self, place: &mut Place, begin: usize, copies: &Copies) {
        let ways_in = self.ways_in(&place.runs);
        let begins = copies.marks.iter();
        let mut begins: Vec<usize> = begins
            .filter_map(|at| way_to(*at, &ways_in, &place.runs))
            .collect();
        begins.push(begin);
        begins.sort_unstable();
        begins.dedup();
        self.keep(place, &self.reached(&begins, &place.runs));
        place.begins = begins;
    }

    /// Its instructions that lead to a begin of it without leaving it.
    pub(super) fn on_the_way(&self, place: &Place) -> HashSet<usize> {
        let mut found: HashSet<usize> = place.begins.iter().copied().collect();
        let mut open = place.begins.clone();
        while let Some(at) = open.pop() {
            for from in &self.ways.into[at] {
                if has(&place.runs, *from) && found.insert(*from) {
                    open.push(*from);
                }
            }
        }
        found
    }

    pub(super) fn comes_back(&self, place: &Place, at: usize) -> bool {
        let reached = self.reached(&[at], &place.runs);
        let mut from = self.ways.into[at].iter();
        from.any(|from| reached.contains(from) && has(&place.runs, *from))
    }

    /// Of a run that is reached in part all is kept but instructions that run straight through: a branch is not moved alone.
    /// Padding stays, too: nothing leads there.
    fn keep(&self, place: &mut Place, reached: &HashSet<usize>) {
        let is_plain = |at: &usize| {
            let op = self.insns[*at].op;
            matches!(op, Op::Plain | Op::RipRelative { .. }) && !self.calls[*at]
        };
        let mut all_kept = Vec::new();
        for run in std::mem::take(&mut place.runs) {
            if !run.clone().any(|at| reached.contains(&at)) {
                continue;
            }
            let is_apart = |at: &usize| !reached.contains(at) && self.ways.leads_to(*at);
            let all: Vec<usize> = run.collect();
            let parts = all.chunk_by(|a, b| is_apart(a) == is_apart(b));
            let kept = parts.filter(|part| !is_apart(&part[0]) || !part.iter().all(is_plain));
            all_kept.extend(kept.flatten());
        }
        place.add(all_kept);
    }

    /// Where control comes to from some without leaving the place.
    fn reached(&self, from: &[usize], runs: &[Range<usize>]) -> HashSet<usize> {
        let mut reached: HashSet<usize> = from.iter().copied().collect();
        let mut open = from.to_vec();
        while let Some(at) = open.pop() {
            for to in self.successors(at).flatten().chain(self.pad(at)) {
                let Some(at) = self.number(to) else { continue };
                if has(runs, at) && reached.insert(at) {
                    open.push(at);
                }
            }
        }
        reached
    }
}

/// Where control comes in on the way to one of its own, if that is in the same run.
fn way_to(at: usize, ways_in: &[usize], runs: &[Range<usize>]) -> Option<usize> {
    let run = runs.iter().find(|run| run.contains(&at))?;
    let before = ways_in.partition_point(|way| *way <= at);
    let way = ways_in[..before].last().copied();
    way.filter(|way| run.contains(way))
}
