//! Which instructions belong to a place where a function was inlined.
use super::copies::Copies;
use super::flow::Body;
use super::{Counts, NotTimed};
use crate::locate::{Inlined, join};
use std::collections::HashMap;
use std::ops::Range;

/// A place where a function was inlined, while its instructions are sorted out.
pub(super) struct Place {
    pub(super) level: u32,
    /// Of the one around it.
    pub(super) outer: Option<usize>,
    /// Numbers of instructions, ascending and apart.
    pub(super) runs: Vec<Range<usize>>,
    /// As the debugging information has it.
    pub(super) given: Vec<Range<usize>>,
    /// Its first instruction, and those of its copies.
    pub(super) begins: Vec<usize>,
    /// There are copies, but not one begin for each.
    pub(super) hidden: bool,
    /// The first place of the same function.
    pub(super) function: usize,
    pub(super) refused: Option<NotTimed>,
}

/// Of what was chosen in the unit, in the same order.
pub(super) fn sort_out(body: &Body, chosen: &[Inlined]) -> Vec<Place> {
    let mut places = body.places(chosen);
    for (n, inlined) in chosen.iter().enumerate() {
        body.sort_out(&mut places, n, inlined.entry);
    }
    nest(&mut places);
    places
}

impl Place {
    pub(super) fn add(&mut self, instructions: impl IntoIterator<Item = usize>) {
        let added = instructions.into_iter().map(|at| at..at + 1);
        self.runs.extend(added);
        join(&mut self.runs);
    }

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
    fn sort_out(&self, places: &mut [Place], n: usize, entry: u64) {
        let taken = self.take_nobodys(places, n);
        places[n].add(taken);
        let all = places[n].runs.clone();
        self.fill_gaps(places, n, &Copies::default());
        let Some(begin) = self.begin(entry, &mut places[n]) else {
            return;
        };
        places[n].begins = vec![begin];
        let copies = Copies::of(self, &all);
        if !copies.marks.is_empty() {
            places[n].runs = all;
            self.fill_gaps(places, n, &copies);
            self.keep_copies(&mut places[n], begin, &copies);
            places[n].hidden = places[n].begins.len() != copies.marks.len();
        }
        let taken = self.take_detours(places, n);
        places[n].add(taken);
    }

    fn places(&self, chosen: &[Inlined]) -> Vec<Place> {
        let mut open: Vec<usize> = Vec::new();
        let mut places = Vec::with_capacity(chosen.len());
        let mut functions: HashMap<&str, usize> = HashMap::new();
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
                begins: Vec::new(),
                hidden: false,
                function: *functions.entry(&inlined.name).or_insert(n),
                refused: None,
            });
            open.push(n);
        }
        places
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

pub(super) fn total(runs: &[Range<usize>]) -> usize {
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

pub(super) fn has(runs: &[Range<usize>], at: usize) -> bool {
    let run = runs.partition_point(|r| r.end <= at);
    runs.get(run).is_some_and(|r| r.contains(&at))
}
