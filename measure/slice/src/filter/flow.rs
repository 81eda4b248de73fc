//! What is known of a program before it is translated. Jumps go forwards only, so that one pass does.
use super::classic::{Op, Size, Source};

/// What a jump leads to in the end; returns of a constant are in one place for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Op(usize),
    Match,
    NoMatch,
}

pub(super) struct Flow<'p> {
    pub ops: &'p [Op],
    /// Of each operation that something leads to: as many bytes of the packet are there, whichever way
    /// led to it.
    present: Vec<Option<u64>>,
}

impl<'p> Flow<'p> {
    pub(super) fn of(ops: &'p [Op]) -> Self {
        let mut flow = Self {
            ops,
            present: vec![None; ops.len()],
        };
        flow.lead(0, 0);
        for (at, &op) in ops.iter().enumerate() {
            let Some(before) = flow.present[at] else {
                continue;
            };
            let present = before.max(end_of_load(op).unwrap_or(0));
            match op {
                Op::Branch {
                    then, otherwise, ..
                } => {
                    flow.lead(then, present);
                    flow.lead(otherwise, present);
                }
                Op::ReturnA => {}
                _ => flow.lead(at + 1, present),
            }
        }
        flow
    }

    fn lead(&mut self, target: usize, present: u64) {
        if let Target::Op(op) = self.settle(target) {
            let known = &mut self.present[op];
            *known = Some(known.map_or(present, |other| other.min(present)));
        }
    }

    pub(super) fn settle(&self, mut target: usize) -> Target {
        loop {
            match self.ops[target] {
                Op::Jump(further) => target = further,
                Op::Return(0) => return Target::NoMatch,
                Op::Return(_) => return Target::Match,
                _ => return Target::Op(target),
            }
        }
    }

    /// The verifier refuses programs with instructions that nothing leads to.
    pub(super) fn reached(&self) -> impl Iterator<Item = (usize, Op)> {
        let ops = self.ops.iter().copied().enumerate();
        ops.filter(|(at, _)| self.present[*at].is_some())
    }

    /// Whether the load at `at` has been asked for bytes that far on every way to it.
    pub(super) fn covered(&self, at: usize) -> bool {
        end_of_load(self.ops[at]).is_some_and(|end| self.present[at] >= Some(end))
    }
}

/// The byte behind a load whose place does not depend on the packet.
fn end_of_load(op: Op) -> Option<u64> {
    match op {
        Op::Load(_, Source::Absolute(offset, size)) => Some(u64::from(offset) + size as u64),
        Op::Load(_, Source::HeaderLength(offset)) => Some(u64::from(offset) + Size::Byte as u64),
        _ => None,
    }
}
