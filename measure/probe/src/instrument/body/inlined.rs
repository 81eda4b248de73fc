//! Functions that were inlined into a unit, timed in place: an entry where control comes into their instructions, an exit
//! where it leaves them.
//!
//! The compiler mixes instructions of a function with those around it. A few of others between two of its own count as its
//! own; what lies apart and is not reached from where it begins (a load that was moved up) stays the surrounding code's.
//!
//! Records name a stack position of their own, below the surrounding function's and above those of what is called
//! within: one word for each level. So they pair and nest as calls do.
mod begins;
mod brackets;
mod copies;
mod crossings;
mod detours;
mod doubts;
mod flow;
mod gaps;
mod key;
mod nobodys;
mod places;
mod stack;
mod ways;

pub use brackets::{Bracket, Called, Choose, NotBracketed, called};
pub use flow::calls;

use super::unit::{Piece, Unit};
use crate::locate::{FrameAddress, FrameRules, Inlined, LineRows};
use crossings::crossings;
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
    /// Calls that are timed where they are made. Ascending.
    brackets: Vec<Bracket<F>>,
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
                f.write_str("the frame around it is too small for what is timed so deep in it")
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
    /// Calls that were chosen and are not timed.
    pub calls_refused: Vec<NotBracketed>,
    /// Of those that are timed.
    pub doubts: Vec<(usize, Doubt)>,
}

/// What the debugging information leaves open about the calls of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Doubt {
    /// Control comes in elsewhere than at its begin, or copies are not told apart: one may count as several.
    pub splits: bool,
    /// Control comes to its begin from within, or copies are not told apart: several may count as one.
    pub joins: bool,
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
            brackets: Vec::new(),
            stays: false,
        }
    }
}

impl<F> Crossings<F> {
    pub fn brackets(&self) -> &[Bracket<F>] {
        &self.brackets
    }
}

impl Crossings<usize> {
    /// An exception that passes such a call ends it before anything else.
    fn bracket_all(&mut self, brackets: Vec<Bracket<usize>>) {
        for bracket in &brackets {
            let lands = self
                .landings
                .iter()
                .filter(|(call, _)| *call == bracket.call);
            for (call, pad) in lands {
                let exit = Crossing {
                    function: bracket.function,
                    kind: RecordKind::Exit,
                    position: bracket.position,
                };
                let on = self.edges.entry((Some(*call), Some(*pad))).or_default();
                on.insert(0, exit);
            }
        }
        self.brackets = brackets;
    }

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
        let brackets = self.brackets.into_iter().filter_map(|bracket| {
            function(bracket.function).map(|function| Bracket {
                call: bracket.call,
                function,
                position: bracket.position,
                through_pointer: bracket.through_pointer,
            })
        });
        Crossings {
            edges: edges.collect(),
            landings: self.landings,
            brackets: brackets.collect(),
            stays: self.stays,
        }
    }
}

impl Crossings {
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.brackets.is_empty()
    }

    /// Whether a call is timed where it is made.
    pub fn bracket(&self, call: u64) -> Option<&Bracket> {
        let found = self.brackets.binary_search_by_key(&call, |b| b.call);
        Some(&self.brackets[found.ok()?])
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

/// Of a unit, what is timed in it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The surrounding one before those within it. The places behind them are those of calls.
    pub inlined: &'a [Inlined],
    pub calls: Option<Choose<'a>>,
}

/// `landings`: ranges of calls and where exceptions that pass these land.
pub fn find(
    unit: &Unit,
    pieces: &[Piece],
    asked: Asked,
    rules: &FrameRules,
    lines: &LineRows,
    landings: &[(Range<u64>, u64)],
) -> Found {
    let chosen = asked.inlined;
    let mut found = Found::default();
    let body = Body::new(unit, pieces, lines, landings);
    let mut places = places::sort_out(&body, chosen);
    let depths = body.depths(unit.entry, pieces);
    for n in 0..places.len() {
        let why = check(&body, &places, n, rules, &depths);
        places[n].refused = why;
    }
    for (n, place) in places.iter().enumerate() {
        match place.refused {
            Some(why) => found.refused.push((n, why)),
            None => {
                found.timed.push((n, place.counts()));
                found.doubts.push((n, body.doubt(&places, n)));
            }
        }
    }
    found.crossings = crossings(&body, unit, &places, rules);
    if let Some(choose) = asked.calls {
        let calls = brackets::find(&body, choose, &places, rules, &depths);
        found.calls_refused = calls.refused;
        found.crossings.bracket_all(calls.timed);
    }
    found
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
        if body.calls[at] && depth(rules.at(svma), depths[at]) <= needed {
            return Some(NotTimed::SmallFrame);
        }
    }
    None
}

/// Bytes between the frame address and the stack pointer, at least.
fn depth(frame: Option<FrameAddress>, followed: i32) -> i32 {
    match frame {
        Some(FrameAddress::Rsp(bytes)) => bytes,
        _ => followed,
    }
}

#[cfg(test)]
mod tests;
