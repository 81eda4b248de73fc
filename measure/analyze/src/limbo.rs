//! Frames that were taken for dead, kept for a while in case their exit comes after all.
//!
//! Two stacks that lie close together (small coroutine stacks, a signal stack inside a frame)
//! look like one whose frames were left by longjmp. Only a later exit with the same function and
//! the same stack pointer tells; then the frames come back.
use crate::balance::Fate;
use crate::stacks::Frame;
use hopscope_event::FunctionId;
use std::collections::VecDeque;

/// Deep recursion left at once fits in; the search stays short.
const FRAMES_MAX: usize = 4096;

#[derive(Debug)]
struct Kept {
    frame: Frame,
    fate: Fate,
    /// Outermost of the frames that were discarded together.
    first: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Limbo {
    kept: VecDeque<Kept>,
}

impl Limbo {
    /// Takes frames discarded together, outermost first; gives those that no longer fit to `out`.
    pub(crate) fn keep(
        &mut self,
        frames: impl Iterator<Item = Frame>,
        fate: Fate,
        mut out: impl FnMut(Frame, Fate),
    ) {
        let mut first = true;
        for frame in frames {
            if self.kept.len() == FRAMES_MAX
                && let Some(oldest) = self.kept.pop_front()
            {
                out(oldest.frame, oldest.fate);
                if let Some(next) = self.kept.front_mut() {
                    next.first = true;
                }
            }
            self.kept.push_back(Kept { frame, fate, first });
            first = false;
        }
    }

    /// The frames that come back when `function` returns at `rsp`: those discarded together with
    /// its frame, outermost first, its own last. What the frames above it had measured is its.
    pub(crate) fn revive(&mut self, function: FunctionId, rsp: u32) -> Option<Vec<Frame>> {
        let is_it = |k: &Kept| k.frame.rsp == rsp && k.frame.function == function;
        let found = self.kept.iter().rposition(is_it)?;
        let start = (0..=found).rev().find(|&i| self.kept[i].first)?;
        let above = (found + 1..self.kept.len()).take_while(|&i| !self.kept[i].first);
        let mut adopted = crate::stacks::Below::default();
        for i in above {
            adopted.add(&self.kept[i].frame.below);
        }
        if let Some(next) = self.kept.get_mut(found + 1) {
            next.first = true;
        }
        let mut frames: Vec<Frame> = self.kept.drain(start..=found).map(|k| k.frame).collect();
        frames.last_mut()?.below.add(&adopted);
        Some(frames)
    }

    pub(crate) fn drain(&mut self, mut out: impl FnMut(Frame, Fate)) {
        for kept in self.kept.drain(..) {
            out(kept.frame, kept.fate);
        }
    }
}
