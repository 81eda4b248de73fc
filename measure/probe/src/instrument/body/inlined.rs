//! Functions that were inlined into a unit, timed in place: an entry where control comes into their instructions, an exit
//! where it leaves them.
//!
//! The compiler mixes instructions of a function with those around it. A few of others between two of its own count as its
//! own; what lies apart and is not reached from where it begins (a load that was moved up) stays the surrounding code's.
//!
//! Records name a stack position of their own, below the surrounding function's and above those of what is called
//! within: one word for each level. So they pair and nest as calls do.
mod stack;

use super::unit::{Insn, Op, Piece, Unit};
use crate::locate::{FrameAddress, FrameRules, Inlined};
use hopscope_event::FunctionId;
use hopscope_event::record::RecordKind;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

/// Instructions of others between two of its own that count as its own.
const GAP_AT_MOST: usize = 8;
/// Levels of nesting: the red zone bounds what lies below the stack pointer of a function without calls.
const LEVELS_AT_MOST: u32 = 15;

const RETURN_ADDRESS: i32 = 8;

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
pub struct Crossings<F = FunctionId>(HashMap<Edge, Vec<Crossing<F>>>);

/// Why an inlined function is not timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTimed {
    ComputedJump,
    NoFrame { svma: u64 },
    SmallFrame,
    Overlaps,
    NoCode,
}

impl fmt::Display for NotTimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotTimed::ComputedJump => f.write_str(
                "a computed jump of the function around it may lead into it, or out of it, unseen",
            ),
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
        Crossings(HashMap::new())
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
        let edges = self.0.into_iter();
        Crossings(
            edges
                .map(|(edge, on)| (edge, on.into_iter().filter_map(numbered).collect()))
                .collect(),
        )
    }
}

impl Crossings {
    /// In the order in which they are recorded.
    pub fn on(&self, from: Option<u64>, to: Option<u64>) -> &[Crossing] {
        self.0.get(&(from, to)).map_or(&[], Vec::as_slice)
    }
}

/// Instructions of a unit by number, ascending by address.
struct Body<'u> {
    insns: Vec<&'u Insn>,
    /// The last of a piece: what follows is another piece's, or nobody's.
    ends: HashSet<u64>,
    calls: Vec<bool>,
    /// Something jumps there.
    targets: HashSet<u64>,
}

/// A place where a function was inlined, while its instructions are sorted out.
struct Place {
    level: u32,
    /// Of the one around it.
    outer: Option<usize>,
    /// Numbers of instructions, ascending and apart.
    runs: Vec<Range<usize>>,
    counts: Counts,
    refused: Option<NotTimed>,
}

/// `chosen`: the surrounding one before those within it.
pub fn find(unit: &Unit, pieces: &[Piece], chosen: &[Inlined], rules: &FrameRules) -> Found {
    let mut found = Found::default();
    if unit.has_indirect_jump {
        let refused = (0..chosen.len()).map(|n| (n, NotTimed::ComputedJump));
        found.refused = refused.collect();
        return found;
    }
    let body = Body::new(unit, pieces);
    let mut places = body.places(chosen);
    for n in 0..places.len() {
        body.fill_gaps(&mut places, n);
    }
    for (inlined, place) in chosen.iter().zip(&mut places) {
        body.drop_islands(inlined.entry, place);
    }
    nest(&mut places);
    let depths = body.depths(unit.entry, pieces);
    for n in 0..places.len() {
        let why = check(&body, &places, n, rules, &depths);
        places[n].refused = why;
    }
    for (n, place) in places.iter().enumerate() {
        match place.refused {
            Some(why) => found.refused.push((n, why)),
            None => found.timed.push((n, place.counts)),
        }
    }
    found.crossings = body.crossings(unit.entry, &places, rules);
    found
}

impl<'u> Body<'u> {
    fn new(unit: &'u Unit, pieces: &[Piece]) -> Body<'u> {
        let mut all: Vec<(&Insn, bool)> = Vec::new();
        for (decoded, piece) in unit.pieces.iter().zip(pieces) {
            let insns = decoded.insns.iter();
            all.extend(insns.map(|insn| (insn, calls(insn, piece))));
        }
        all.sort_by_key(|(insn, _)| insn.svma);
        let ends = unit.pieces.iter().filter_map(|p| p.insns.last());
        let targets = unit.insns().filter_map(|insn| match insn.op {
            Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target } => {
                Some(target)
            }
            _ => None,
        });
        Body {
            ends: ends.map(|insn| insn.svma).collect(),
            targets: targets.collect(),
            calls: all.iter().map(|(_, calls)| *calls).collect(),
            insns: all.into_iter().map(|(insn, _)| insn).collect(),
        }
    }

    /// Bytes between the frame address and the stack pointer before each instruction, at least.
    fn depths(&self, entry: u64, pieces: &[Piece]) -> Vec<i32> {
        const UNSEEN: i32 = i32::MAX;
        let mut depths = vec![UNSEEN; self.insns.len()];
        let mut open = Vec::new();
        let reach = |depths: &mut Vec<i32>, open: &mut Vec<usize>, at: Option<usize>, depth| {
            if let Some(at) = at.filter(|at| depth < depths[*at]) {
                depths[at] = depth;
                open.push(at);
            }
        };
        reach(&mut depths, &mut open, self.number(entry), RETURN_ADDRESS);
        while let Some(at) = open.pop() {
            let insn = self.insns[at];
            let inside = |p: &&Piece| (p.svma..p.svma + p.bytes.len() as u64).contains(&insn.svma);
            let behind = match pieces.iter().find(inside) {
                Some(piece) => stack::behind(insn, piece, depths[at]),
                None => RETURN_ADDRESS,
            };
            for to in self.successors(at).flatten() {
                reach(&mut depths, &mut open, self.number(to), behind);
            }
        }
        // Landing pads are come to by unwinders alone.
        let unseen = depths.iter_mut().filter(|depth| **depth == UNSEEN);
        unseen.for_each(|depth| *depth = RETURN_ADDRESS);
        depths
    }

    fn number(&self, svma: u64) -> Option<usize> {
        self.insns.binary_search_by_key(&svma, |i| i.svma).ok()
    }

    fn places(&self, chosen: &[Inlined]) -> Vec<Place> {
        let mut open: Vec<usize> = Vec::new();
        let mut places = Vec::with_capacity(chosen.len());
        for (n, inlined) in chosen.iter().enumerate() {
            open.truncate(inlined.depth as usize);
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
                counts: Counts::default(),
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
        place.counts.of_others = filled.iter().map(ExactSizeIterator::len).sum();
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
                for to in self.successors(at).flatten() {
                    if let Some(reached) = self.number(to).and_then(run_of)
                        && !keep.contains(&reached)
                    {
                        keep.push(reached);
                    }
                }
            }
        }
        let mut at = 0;
        let before: usize = place.runs.iter().map(ExactSizeIterator::len).sum();
        place.runs.retain(|_| {
            at += 1;
            keep.contains(&(at - 1))
        });
        let after: usize = place.runs.iter().map(ExactSizeIterator::len).sum();
        place.counts.apart = before - after;
        place.counts.own = after - place.counts.of_others.min(after);
    }

    /// `None`: it leaves the unit.
    fn successors(&self, at: usize) -> impl Iterator<Item = Option<u64>> {
        let insn = self.insns[at];
        let inside = |target: u64| Some(target).filter(|t| self.number(*t).is_some());
        let next = match self.ends.contains(&insn.svma) {
            true => None,
            false => Some(insn.next()),
        };
        let (jump, next) = match insn.op {
            Op::Jump { target } => (Some(inside(target)), None),
            Op::JumpIf { target, .. } | Op::ShortOnly { target } => {
                (Some(inside(target)), Some(next))
            }
            Op::Ret | Op::IndirectTail { .. } | Op::IndirectJump => (Some(None), None),
            Op::Plain | Op::RipRelative { .. } | Op::Call { .. } => (None, Some(next)),
        };
        jump.into_iter().chain(next)
    }

    fn crossings(&self, entry: u64, places: &[Place], rules: &FrameRules) -> Crossings<usize> {
        let mut within: Vec<Vec<usize>> = vec![Vec::new(); self.insns.len()];
        for (n, place) in places.iter().enumerate() {
            if place.refused.is_none() {
                let members = place.runs.iter().flat_map(Clone::clone);
                members.for_each(|at| within[at].push(n));
            }
        }
        let mut crossings = Crossings(HashMap::new());
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
                crossings.0.insert(edge, all);
            }
        };
        // What the caller comes into at once.
        if let Some(first) = self.number(entry) {
            add((None, Some(entry)), &[], &within[first]);
        }
        for at in 0..self.insns.len() {
            for to in self.successors(at) {
                let there = to.and_then(|svma| self.number(svma));
                let there = there.map_or(&[][..], |at| &within[at]);
                add((Some(self.insns[at].svma), to), &within[at], there);
            }
        }
        crossings
    }
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
        !is_within(places, n, m) && other.refused.is_none() && overlap(&place.runs, &other.runs)
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
        FrameAddress::Rsp(offset) => FrameAddress::Rsp(offset - below),
        FrameAddress::Rbp(offset) => FrameAddress::Rbp(offset - below),
    }
}

/// Whether place `inner` lies in `outer`, or is it.
fn is_within(places: &[Place], inner: usize, outer: usize) -> bool {
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

fn overlap(a: &[Range<usize>], b: &[Range<usize>]) -> bool {
    a.iter().any(|a| {
        let first = b.partition_point(|b| b.end <= a.start);
        b.get(first).is_some_and(|b| b.start < a.end)
    })
}

fn join(runs: &mut Vec<Range<usize>>) {
    runs.sort_by_key(|r| r.start);
    runs.dedup_by(|next, run| {
        let touches = next.start <= run.end;
        if touches {
            run.end = run.end.max(next.end);
        }
        touches
    });
}

pub fn calls(insn: &Insn, piece: &Piece) -> bool {
    let at = (insn.svma - piece.svma) as usize;
    let ins = Decoder::new(64, &piece.bytes[at..], DecoderOptions::NONE).decode();
    matches!(
        ins.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}
