//! Frames that were taken for dead, kept for a while in case their exit comes after all.
//!
//! Two stacks that lie close together (small coroutine stacks, a signal stack inside a frame)
//! look like one whose frames were left by longjmp. Only a later exit with the same function and
//! the same stack pointer tells; then the frames come back.
use crate::balance::Fate;
use crate::stacks::{Below, Frame, RESUMED_BYTES};
use hopscope_event::FunctionId;
use std::collections::VecDeque;

/// Deep recursion left at once fits in; the search stays short.
const FRAMES_MAX: usize = 4096;

/// Twice the frames, so that most hashes stay free.
const HASHES: usize = 2 * FRAMES_MAX;

fn hash(function: FunctionId, rsp: u32) -> usize {
    let key = u64::from(function.0) << 32 | u64::from(rsp);
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % HASHES
}

#[derive(Debug)]
struct Kept {
    frame: Frame,
    fate: Fate,
    /// Outermost of the frames that were discarded together.
    first: bool,
}

/// Another thread ran on the stack of a frame, or of those discarded with it, since they were entered.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) rsp: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Limbo {
    kept: VecDeque<Kept>,
    /// How many kept frames have a function and position of this hash: most questions are
    /// answered with no. Empty until the first frame comes.
    hashes: Vec<u16>,
    /// No frame in here was entered after this stamp.
    newest: u64,
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
                self.hashes[hash(oldest.frame.function, oldest.frame.rsp)] -= 1;
                out(oldest.frame, oldest.fate);
                if let Some(next) = self.kept.front_mut() {
                    next.first = true;
                }
            }
            self.newest = self.newest.max(frame.entry);
            self.hashes.resize(HASHES, 0);
            self.hashes[hash(frame.function, frame.rsp)] += 1;
            self.kept.push_back(Kept { frame, fate, first });
            first = false;
        }
    }

    /// Whether a frame entered at this stamp is newer than all in here.
    #[inline]
    pub(crate) fn is_older_than(&self, entry: u64) -> bool {
        entry > self.newest || self.kept.is_empty()
    }

    /// The frame of `function` that was entered last at `rsp`: its entry stamp and its place.
    pub(crate) fn activation(&self, function: FunctionId, rsp: u32) -> Option<(u64, usize)> {
        let is_it = |k: &Kept| k.frame.rsp == rsp && k.frame.function == function;
        match self.hashes.get(hash(function, rsp)) {
            None | Some(0) => None,
            Some(_) => self.latest(is_it),
        }
    }

    /// The same for a function that is somewhere in its body, with the stack pointer at `rsp`.
    pub(crate) fn body(&self, function: FunctionId, rsp: u32) -> Option<(u64, usize)> {
        self.latest(|k| {
            k.frame.rsp.wrapping_sub(rsp) <= RESUMED_BYTES && k.frame.function == function
        })
    }

    fn latest(&self, is_it: impl Fn(&Kept) -> bool) -> Option<(u64, usize)> {
        let kept = self.kept.iter().enumerate().filter(|(_, k)| is_it(k));
        kept.map(|(i, k)| (k.frame.entry, i)).max()
    }

    /// The frames that come back with the one at a place: those discarded together with it,
    /// outermost first, its own last. What the frames above it had measured is its. None come back when one of
    /// those or of these has moved to another thread.
    pub(crate) fn bring_back(
        &mut self,
        found: usize,
        moved: impl Fn(&Frame) -> bool,
    ) -> Result<Vec<Frame>, Moved> {
        let start = (0..=found).rev().find(|&i| self.kept[i].first);
        let start = start.unwrap_or(0);
        let above = (found + 1..self.kept.len()).take_while(|&i| !self.kept[i].first);
        let together = (start..=found).chain(above.clone());
        if together.into_iter().any(|i| moved(&self.kept[i].frame)) {
            let rsp = self.kept[found].frame.rsp;
            return Err(Moved { rsp });
        }
        let mut adopted = Below::default();
        for i in above {
            adopted.add(&self.kept[i].frame.below);
        }
        if let Some(next) = self.kept.get_mut(found + 1) {
            next.first = true;
        }
        let mut frames: Vec<Frame> = self.kept.drain(start..=found).map(|k| k.frame).collect();
        for frame in &frames {
            self.hashes[hash(frame.function, frame.rsp)] -= 1;
        }
        if let Some(own) = frames.last_mut() {
            own.below.add(&adopted);
        }
        Ok(frames)
    }

    pub(crate) fn drain(&mut self, mut out: impl FnMut(Frame, Fate)) {
        self.hashes.fill(0);
        for kept in self.kept.drain(..) {
            out(kept.frame, kept.fate);
        }
    }
}
