//! Calls timed where they are made: an entry before the instruction, an exit behind it.
//!
//! A call shows the next word of the surrounding frame below those of the inlined functions that it is in, which lies
//! above whatever the callee shows.
use super::crossings::shown;
use super::flow::{Body, decode};
use super::places::{Place, has};
use super::{LEVELS_AT_MOST, NotTimed, depth};
use crate::instrument::body::unit::{Insn, Op, Piece, Unit};
use crate::locate::{FrameAddress, FrameRules};
use hopscope_event::FunctionId;
use iced_x86::{Code, Instruction, Register};

/// A call that is timed where it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bracket<F = FunctionId> {
    /// The instruction.
    pub call: u64,
    pub function: F,
    /// The stack position that it shows.
    pub position: FrameAddress,
    /// The entry stores where it leads to.
    pub through_pointer: bool,
}

/// A call that was chosen by this number, and is not timed.
#[derive(Debug, Clone, Copy)]
pub struct NotBracketed {
    pub call: u64,
    pub n: usize,
    pub why: NotTimed,
}

/// What a call says of its callee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Called {
    /// A function, or a stub.
    Function(u64),
    /// By a word that lies there: a slot of the GOT, or a pointer.
    Word(u64),
    Pointer,
}

/// Who is timed: `None`, or a number of its own, from 0; and whether by its address.
pub type Choose<'a> = &'a dyn Fn(Called) -> Option<(usize, bool)>;

#[derive(Default)]
pub(super) struct Calls {
    pub(super) timed: Vec<Bracket<usize>>,
    pub(super) refused: Vec<NotBracketed>,
}

/// Those of the number `n` are of the place with this number behind all.
pub(super) fn find(
    body: &Body,
    choose: Choose,
    places: &[Place],
    rules: &FrameRules,
    depths: &[i32],
) -> Calls {
    let mut calls = Calls::default();
    for at in 0..body.insns.len() {
        let Some((n, through_pointer)) =
            callee(body.insns[at], || body.decoded(at)).and_then(choose)
        else {
            continue;
        };
        let call = body.insns[at].svma;
        match position(body, at, places, rules, depths) {
            Ok(position) => calls.timed.push(Bracket {
                call,
                function: places.len() + n,
                position,
                through_pointer,
            }),
            Err(why) => calls.refused.push(NotBracketed { call, n, why }),
        }
    }
    calls
}

/// What the calls of a unit say of their callees.
pub fn called(unit: &Unit, pieces: &[Piece]) -> impl Iterator<Item = Called> {
    let all = unit.pieces.iter().zip(pieces);
    all.flat_map(|(decoded, piece)| {
        let insns = decoded.insns.iter();
        insns.filter_map(|insn| callee(insn, || Some(decode(insn, piece))))
    })
}

fn callee(insn: &Insn, decoded: impl FnOnce() -> Option<Instruction>) -> Option<Called> {
    let other = match insn.op {
        Op::Call { target } => return Some(Called::Function(target)),
        Op::RipRelative { target, .. } => Called::Word(target),
        Op::Plain => Called::Pointer,
        _ => return None,
    };
    let ins = decoded()?;
    let calls = ins.code() == Code::Call_rm64 && ins.op0_register() != Register::RSP;
    calls.then_some(other)
}

fn position(
    body: &Body,
    at: usize,
    places: &[Place],
    rules: &FrameRules,
    depths: &[i32],
) -> Result<FrameAddress, NotTimed> {
    let svma = body.insns[at].svma;
    let around = places
        .iter()
        .filter(|p| p.refused.is_none() && has(&p.runs, at));
    let level = 1 + around.map(|p| p.level).max().unwrap_or(0);
    let frame = rules.at(svma);
    if level > LEVELS_AT_MOST || depth(frame, depths[at]) <= 8 * level as i32 {
        return Err(NotTimed::SmallFrame);
    }
    match frame {
        Some(frame) => Ok(shown(frame, level)),
        // A frame that was aligned, or has no tables: the word that rsp points to, where nothing else shows one and no landing
        // pad has another rsp.
        None if level == 1 && body.pad(at).is_none() => Ok(FrameAddress::Rsp(0)),
        None => Err(NotTimed::NoFrame { svma }),
    }
}
