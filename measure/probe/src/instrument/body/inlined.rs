//! Functions that were inlined into a unit, timed in place: an entry where control comes into their instructions, an exit
//! where it leaves them.
//!
//! The compiler mixes instructions of a function with those around it. A few of others between two of its own count as its
//! own; what lies apart and is not reached from where it begins (a load that was moved up) stays the surrounding code's.
//!
//! Records name a stack position of their own, below the surrounding function's and above those of what is called
//! within: one word for each level. So they pair and nest as calls do.
mod flow;
mod places;
mod stack;

pub use flow::calls;

use super::unit::{Piece, Unit};
use crate::locate::{FrameAddress, FrameRules, Inlined};
use flow::Body;
use hopscope_event::FunctionId;
use hopscope_event::record::RecordKind;
use places::{Place, is_within};
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// Levels of nesting: the red zone bounds what lies below the stack pointer of a function without calls.
const LEVELS_AT_MOST: u32 = 15;

/// From one instruction to the next, whichever way; `None`: from the function's caller, to wherever it leaves to.
type Edge = (Option<u64>, Option<u64>);

/// What is recorded on an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing<F = FunctionId> {
    pub function: F,
    pub kind: RecordKind,
    /// The stack position that it shows.
    pub position: FrameAddress,
}

/// The edges of a unit on which control comes into inlined functions, or leaves them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crossings<F = FunctionId> {
    edges: HashMap<Edge, Vec<Crossing<F>>>,
    /// Calls and where exceptions that pass them land, which is an edge, too. Ascending.
    landings: Vec<(u64, u64)>,
    /// Something may come back to where it runs that nothing shows (a jump buffer, which is mangled): loops do not lead
    /// into the copy, nor out of it.
    pub stays: bool,
}

/// Why an inlined function is not timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTimed {
    NoFrame { svma: u64 },
    SmallFrame,
    Overlaps,
    NoCode,
}

impl fmt::Display for NotTimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTimed::NoFrame { svma } => {
                write!(
                    f,
                    "the unwind tables do not say where the frame lies at {svma:#x}"
                )
            }
            NotTimed::SmallFrame => {
                f.write_str("the frame around it is too small for functions inlined so deep")
            }
            NotTimed::Overlaps => {
                f.write_str("its instructions overlap those of another inlined function")
            }
            NotTimed::NoCode => f.write_str("none of its instructions is left"),
        }
    }
}

/// What was found of one unit: places by their number.
#[derive(Debug, Default)]
pub struct Found {
    pub crossings: Crossings<usize>,
    pub timed: Vec<(usize, Counts)>,
    pub refused: Vec<(usize, NotTimed)>,
}

/// Instructions that are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub own: usize,
    /// Of others among them.
    pub of_others: usize,
    /// Its own that lie apart, and are not timed.
    pub apart: usize,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.own += other.own;
        self.of_others += other.of_others;
        self.apart += other.apart;
    }
}

impl<F> Default for Crossings<F> {
    fn default() -> Crossings<F> {
        Crossings {
            edges: HashMap::new(),
            landings: Vec::new(),
            stays: false,
        }
    }
}

impl Crossings<usize> {
    /// With functions for places.
    pub fn numbered(self, function: impl Fn(usize) -> Option<FunctionId>) -> Crossings {
        let numbered = |crossing: Crossing<usize>| {
            let Crossing { kind, position, .. } = crossing;
            function(crossing.function).map(|function| Crossing {
                function,
                kind,
                position,
            })
        };
        let edges = self.edges.into_iter();
        let edges = edges.map(|(edge, on)| (edge, on.into_iter().filter_map(numbered).collect()));
        Crossings {
            edges: edges.collect(),
            landings: self.landings,
            stays: self.stays,
        }
    }
}

impl Crossings {
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Where anything is recorded on the way from an instruction, ascending.
    pub fn targets_from(&self, from: u64) -> Vec<u64> {
        let edges = self
            .edges
            .iter()
            .filter(|(edge, on)| edge.0 == Some(from) && !on.is_empty());
        let mut targets: Vec<u64> = edges.filter_map(|(edge, _)| edge.1).collect();
        targets.sort_unstable();
        targets
    }

    /// Calls and where exceptions that pass them land; none where nothing is timed.
    pub fn landings(&self) -> &[(u64, u64)] {
        match self.is_empty() {
            true => &[],
            false => &self.landings,
        }
    }

    /// In the order in which they are recorded.
    pub fn on(&self, from: Option<u64>, to: Option<u64>) -> &[Crossing] {
        self.edges.get(&(from, to)).map_or(&[], Vec::as_slice)
    }
}

/// `chosen`: the surrounding one before those within it; `landings`: ranges of calls and where exceptions that pass these
/// land.
pub fn find(
    unit: &Unit,
    pieces: &[Piece],
    chosen: &[Inlined],
    rules: &FrameRules,
    landings: &[(Range<u64>, u64)],
) -> Found {
    let mut found = Found::default();
    let body = Body::new(unit, pieces, landings);
    let mut places = places::sort_out(&body, chosen);
    let depths = body.depths(unit.entry, pieces);
    for n in 0..places.len() {
        let why = check(&body, &places, n, rules, &depths);
        places[n].refused = why;
    }
    for (n, place) in places.iter().enumerate() {
        match place.refused {
            Some(why) => found.refused.push((n, why)),
            None => found.timed.push((n, place.counts())),
        }
    }
    found.crossings = crossings(&body, unit, &places, rules);
    found
}

fn crossings(body: &Body, unit: &Unit, places: &[Place], rules: &FrameRules) -> Crossings<usize> {
    let mut within: Vec<Vec<usize>> = vec![Vec::new(); body.insns.len()];
    for (n, place) in places.iter().enumerate() {
        if place.refused.is_none() {
            let members = place.runs.iter().flat_map(Clone::clone);
            members.for_each(|at| within[at].push(n));
        }
    }
    let mut crossings = Crossings::default();
    let mut add = |edge: Edge, from: &[usize], to: &[usize]| {
        let at = edge.1.or(edge.0).unwrap_or(0);
        let crossing = |n: usize, kind| {
            let position = shown(rules.at(at)?, places[n].level);
            Some(Crossing {
                function: n,
                kind,
                position,
            })
        };
        let left = from.iter().rev().filter(|n| !to.contains(n));
        let entered = to.iter().filter(|n| !from.contains(n));
        let left = left.filter_map(|n| crossing(*n, RecordKind::Exit));
        let all = left.chain(entered.filter_map(|n| crossing(*n, RecordKind::Entry)));
        let all: Vec<Crossing<usize>> = all.collect();
        if !all.is_empty() {
            crossings.edges.insert(edge, all);
        }
    };
    // What the caller comes into at once, and who is led here amid a call.
    let begins = std::iter::once(unit.entry).chain(unit.back_edges().map(|edge| edge.target));
    for begin in begins {
        if let Some(first) = body.number(begin) {
            add((None, Some(begin)), &[], &within[first]);
        }
    }
    for at in 0..body.insns.len() {
        for to in body.successors(at) {
            let there = to.and_then(|svma| body.number(svma));
            let there = there.map_or(&[][..], |at| &within[at]);
            add((Some(body.insns[at].svma), to), &within[at], there);
        }
    }
    for (call, pad) in &body.landed {
        if let (Some(from), Some(to)) = (body.number(*call), body.number(*pad)) {
            add((Some(*call), Some(*pad)), &within[from], &within[to]);
        }
    }
    crossings.landings = body.landed.clone();
    crossings
}

fn check(
    body: &Body,
    places: &[Place],
    n: usize,
    rules: &FrameRules,
    depths: &[i32],
) -> Option<NotTimed> {
    let place = &places[n];
    if place.runs.is_empty() {
        return Some(NotTimed::NoCode);
    }
    let earlier = places[..n].iter().enumerate();
    let beside = |(m, other): (usize, &Place)| {
        !is_within(places, n, m) && other.refused.is_none() && place.overlaps(other)
    };
    if earlier.into_iter().any(beside) {
        return Some(NotTimed::Overlaps);
    }
    if place.level > LEVELS_AT_MOST {
        return Some(NotTimed::SmallFrame);
    }
    let needed = 8 * place.level as i32;
    for at in place.runs.iter().flat_map(Clone::clone) {
        let svma = body.insns[at].svma;
        let mut places = std::iter::once(svma).chain(body.successors(at).flatten());
        if let Some(svma) = places.find(|svma| rules.at(*svma).is_none()) {
            return Some(NotTimed::NoFrame { svma });
        }
        let frame = match rules.at(svma) {
            Some(FrameAddress::Rsp(bytes)) => bytes,
            _ => depths[at],
        };
        if body.calls[at] && frame <= needed {
            return Some(NotTimed::SmallFrame);
        }
    }
    None
}

/// The word of a level: below the return address.
fn shown(frame: FrameAddress, level: u32) -> FrameAddress {
    let below = 8 + 8 * level as i32;
    match frame {
        FrameAddress::Rsp(offset) => FrameAddress::Rsp(offset.wrapping_sub(below)),
        FrameAddress::Rbp(offset) => FrameAddress::Rbp(offset.wrapping_sub(below)),
    }
}

#[cfg(test)]
mod tests;
