//! Calls timed where they are made: an entry before the instruction, an exit behind it.
//!
//! A call shows the next word of the surrounding frame below those of the inlined functions that it is in, which lies
//! above whatever the callee shows.
use super::crossings::shown;
use super::flow::Body;
use super::places::{Place, has};
use super::{LEVELS_AT_MOST, NotTimed, depth};
use crate::instrument::body::unit::Op;
use crate::locate::{FrameAddress, FrameRules};
use hopscope_event::FunctionId;
use iced_x86::{Code, Register};

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
pub struct Bracketless {
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
    pub(super) refused: Vec<Bracketless>,
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
        let Some((n, through_pointer)) = called(body, at).and_then(choose) else {
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
            Err(why) => calls.refused.push(Bracketless { call, n, why }),
        }
    }
    calls
}

fn called(body: &Body, at: usize) -> Option<Called> {
    match body.insns[at].op {
        Op::Call { target } => return Some(Called::Function(target)),
        Op::RipRelative { .. } | Op::Plain => {}
        _ => return None,
    }
    let ins = body.decoded(at)?;
    let calls = ins.code() == Code::Call_rm64 && ins.op0_register() != Register::RSP;
    calls.then(|| match body.insns[at].op {
        Op::RipRelative { target, .. } => Called::Word(target),
        _ => Called::Pointer,
    })
}

fn position(
    body: &Body,
    at: usize,
    places: &[Place],
    rules: &FrameRules,
    depths: &[i32],
) -> Result<FrameAddress, NotTimed> {
    let svma = body.insns[at].svma;
    let frame = rules.at(svma).ok_or(NotTimed::NoFrame { svma })?;
    let around = places
        .iter()
        .filter(|p| p.refused.is_none() && has(&p.runs, at));
    let level = 1 + around.map(|p| p.level).max().unwrap_or(0);
    if level > LEVELS_AT_MOST || depth(Some(frame), depths[at]) <= 8 * level as i32 {
        return Err(NotTimed::SmallFrame);
    }
    Ok(shown(frame, level))
}
