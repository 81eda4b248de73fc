//! Calls through pointers, timed where they are made: an entry before the instruction, an exit behind it.
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
}

#[derive(Default)]
pub(super) struct Calls {
    pub(super) timed: Vec<Bracket<usize>>,
    pub(super) refused: Vec<(u64, NotTimed)>,
}

/// `is_named`: of slots whose function is known without the call.
pub(super) fn find(
    body: &Body,
    is_named: &dyn Fn(u64) -> bool,
    places: &[Place],
    rules: &FrameRules,
    depths: &[i32],
) -> Calls {
    let mut calls = Calls::default();
    for at in 0..body.insns.len() {
        if !through_pointer(body, at, is_named) {
            continue;
        }
        let call = body.insns[at].svma;
        match position(body, at, places, rules, depths) {
            Ok(position) => calls.timed.push(Bracket {
                call,
                function: places.len(),
                position,
            }),
            Err(why) => calls.refused.push((call, why)),
        }
    }
    calls
}

fn through_pointer(body: &Body, at: usize, is_named: &dyn Fn(u64) -> bool) -> bool {
    let is_slot = match body.insns[at].op {
        Op::RipRelative { target, .. } => is_named(target),
        _ => false,
    };
    let decoded = body.decoded(at);
    let calls =
        decoded.filter(|ins| ins.code() == Code::Call_rm64 && ins.op0_register() != Register::RSP);
    calls.is_some() && !is_slot
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
