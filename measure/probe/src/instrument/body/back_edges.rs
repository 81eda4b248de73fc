//! The jumps of loops: there a call that runs already is led into the copy, and out of it again.
use super::unit::{JUMP_BYTES, Op, Unit};

/// The last bytes of a jump: one of opcode, four of displacement.
pub const FIELD_BYTES: u64 = 5;

/// A jump that goes back, or to another piece: no loop is without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackEdge {
    pub jump: u64,
    pub target: u64,
    /// Where its [`FIELD_BYTES`] lie; `None`: its displacement has 8 bits and reaches no copy.
    pub field: Option<u64>,
}

impl Unit {
    /// From the piece of the entry. Not those to the entry, which are calls.
    pub fn back_edges(&self) -> impl Iterator<Item = BackEdge> {
        let first = &self.pieces[0];
        let behind = self.patch_at + JUMP_BYTES;
        first.insns.iter().filter_map(move |insn| {
            let (Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target }) =
                insn.op
            else {
                return None;
            };
            let back = match first.range.contains(&target) {
                true => target <= insn.svma && target >= behind,
                false => self.contains(target),
            };
            let long = u64::from(insn.len) >= FIELD_BYTES;
            let field = long.then(|| insn.next() - FIELD_BYTES);
            let field = field.filter(|at| *at >= behind);
            let jump = insn.svma;
            back.then_some(BackEdge {
                jump,
                target,
                field,
            })
        })
    }
}
