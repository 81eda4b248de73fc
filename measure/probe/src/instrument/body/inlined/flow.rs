//! Where control goes within a unit.
use super::key::Key;
use crate::instrument::body::unit::{Insn, Op, Piece, Unit};
use crate::locate::LineRows;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};
use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::Range;

/// By the number of the instruction. What nothing leads to (padding) leads nowhere.
#[derive(Default)]
pub(super) struct Ways {
    pub(super) into: Vec<Vec<usize>>,
    /// `None`: out of the unit.
    pub(super) out: Vec<Vec<Option<usize>>>,
    /// From outside, or nobody knows from where.
    pub(super) from_outside: Vec<bool>,
}

/// Instructions of a unit by number, ascending by address.
pub(super) struct Body<'u> {
    pub(super) insns: Vec<&'u Insn>,
    pieces: &'u [Piece<'u>],
    pub(super) lines: &'u LineRows,
    pub(super) ways: Ways,
    pub(super) keys: OnceCell<Vec<Option<Key>>>,
    /// The last of a piece: what follows is another piece's, or nobody's.
    ends: HashSet<u64>,
    pub(super) calls: Vec<bool>,
    /// Where a computed jump may lead: as far as the code shows.
    landings: Vec<u64>,
    /// Something jumps there.
    pub(super) targets: HashSet<u64>,
    /// Calls and where exceptions that pass them land. Ascending.
    pub(super) landed: Vec<(u64, u64)>,
}

impl<'u> Body<'u> {
    pub(super) fn new(
        unit: &'u Unit,
        pieces: &'u [Piece<'u>],
        lines: &'u LineRows,
        exceptions: &[(Range<u64>, u64)],
    ) -> Body<'u> {
        let mut all: Vec<(&Insn, bool)> = Vec::new();
        for (decoded, piece) in unit.pieces.iter().zip(pieces) {
            let insns = decoded.insns.iter();
            all.extend(insns.map(|insn| (insn, calls(insn, piece))));
        }
        all.sort_by_key(|(insn, _)| insn.svma);
        let ends = unit.pieces.iter().filter_map(|p| p.insns.last());
        let targets: HashSet<u64> = unit
            .insns()
            .filter_map(|insn| match insn.op {
                Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target } => {
                    Some(target)
                }
                _ => None,
            })
            .collect();
        let landings = match unit.has_indirect_jump {
            true => landings(unit, pieces, &targets),
            false => Vec::new(),
        };
        let mut body = Body {
            pieces,
            lines,
            ways: Ways::default(),
            keys: OnceCell::new(),
            landed: Vec::new(),
            ends: ends.map(|insn| insn.svma).collect(),
            targets,
            landings,
            calls: all.iter().map(|(_, calls)| *calls).collect(),
            insns: all.into_iter().map(|(insn, _)| insn).collect(),
        };
        body.landed = body.land(exceptions);
        body.ways = Ways::of(&body, unit.entry);
        body
    }

    pub(super) fn number(&self, svma: u64) -> Option<usize> {
        self.insns.binary_search_by_key(&svma, |i| i.svma).ok()
    }

    /// Where an exception lands that passes this instruction.
    pub(super) fn pad(&self, at: usize) -> Option<u64> {
        let call = self.insns[at].svma;
        let found = self.landed.binary_search_by_key(&call, |(call, _)| *call);
        found.ok().map(|n| self.landed[n].1)
    }

    fn land(&self, landings: &[(Range<u64>, u64)]) -> Vec<(u64, u64)> {
        let mut landed = Vec::new();
        for (range, pad) in landings
            .iter()
            .filter(|(_, pad)| self.number(*pad).is_some())
        {
            let first = self.insns.partition_point(|i| i.svma < range.start);
            let insns = self.insns[first..].iter().zip(&self.calls[first..]);
            let here = insns.take_while(|(i, _)| i.svma < range.end);
            landed.extend(
                here.filter(|(_, calls)| **calls)
                    .map(|(i, _)| (i.svma, *pad)),
            );
        }
        landed.sort_unstable();
        landed.dedup_by_key(|(call, _)| *call);
        landed
    }

    /// `None`: it leaves the unit.
    pub(super) fn successors(&self, at: usize) -> impl Iterator<Item = Option<u64>> {
        let landings = match self.insns[at].op {
            Op::IndirectJump => &self.landings[..],
            _ => &[],
        };
        let landings = landings.iter().copied().map(Some);
        self.without_landings(at).chain(landings)
    }

    /// Exceptions that pass it, too, but not where computed jumps lead.
    pub(super) fn direct(&self, at: usize) -> impl Iterator<Item = Option<u64>> {
        self.without_landings(at).chain(self.pad(at).map(Some))
    }

    fn without_landings(&self, at: usize) -> impl Iterator<Item = Option<u64>> {
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

    pub(super) fn decoded(&self, at: usize) -> Option<Instruction> {
        let insn = self.insns[at];
        let is_in = |p: &&Piece| (p.svma..p.svma + p.bytes.len() as u64).contains(&insn.svma);
        let piece = self.pieces.iter().find(is_in)?;
        Some(decode(insn, piece))
    }
}

/// Of all instructions, where they are not so many that each may get code of its own; else where blocks begin by what leads
/// there, or does not.
fn landings(unit: &Unit, pieces: &[Piece], targets: &HashSet<u64>) -> Vec<u64> {
    let jumps = unit.insns().filter(|insn| insn.op == Op::IndirectJump);
    let all = unit.insns().count() * jumps.count() <= LANDINGS_AT_MOST;
    let mut found = Vec::new();
    for (decoded, piece) in unit.pieces.iter().zip(pieces) {
        let mut before: Option<&Insn> = None;
        for insn in &decoded.insns {
            let begins = |b: &Insn| {
                !b.goes_on() || matches!(b.op, Op::JumpIf { .. }) || is_padding(b, piece)
            };
            let lands = all || targets.contains(&insn.svma) || before.is_none_or(begins);
            found.extend((lands && insn.svma != unit.entry).then_some(insn.svma));
            before = Some(insn);
        }
    }
    found
}

/// Some 130 bytes each.
const LANDINGS_AT_MOST: usize = 16 << 10;

pub(super) fn decode(insn: &Insn, piece: &Piece) -> Instruction {
    let at = (insn.svma - piece.svma) as usize;
    Decoder::with_ip(64, &piece.bytes[at..], insn.svma, DecoderOptions::NONE).decode()
}

fn is_padding(insn: &Insn, piece: &Piece) -> bool {
    decode(insn, piece).mnemonic() == Mnemonic::Nop
}

pub fn calls(insn: &Insn, piece: &Piece) -> bool {
    matches!(
        decode(insn, piece).flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}
