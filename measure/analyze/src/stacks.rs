//! The stacks of one thread: the one it runs on, and those it left and may come back to.
//!
//! Only the low half of the stack pointer is known, so positions are compared by wrapping
//! distance. A stack grows down: a frame's callees have smaller stack pointers.
use crate::mark::Mark;
use crate::measured::Measured;
use crate::slot::Slot;
use crate::taken;
use hopscope_event::FunctionId;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Deeper than this below the innermost frame is another stack: frames larger than it are rarer
/// than coroutine and signal stacks at that distance.
pub(crate) const SAME_STACK_BYTES: u32 = 1 << 20;
/// How far below a waiting stack's innermost frame a call counts as that stack running again.
/// Less than the usual sizes of coroutine stacks, which often lie side by side.
pub(crate) const RESUMED_BYTES: u32 = 16 << 10;
/// With more waiting stacks than this, a search through all of them for each switch would cost
/// more than the rare mistake of taking the nearest.
const SEARCHED_WHOLE: usize = 64;
/// Most waiting stacks of a thread.
const WAITING_MAX: usize = 16 << 10;

/// Sums over what an open frame has called so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Below {
    pub(crate) ticks: i64,
    pub(crate) callees: Measured,
    pub(crate) descendants: Measured,
    /// Part of `ticks`: its stack was left, and others of the thread ran.
    pub(crate) suspended: i64,
}

impl Below {
    #[inline]
    pub(crate) fn add(&mut self, other: &Below) {
        self.ticks = self.ticks.wrapping_add(other.ticks);
        self.callees += other.callees;
        self.descendants += other.descendants;
        self.suspended = self.suspended.wrapping_add(other.suspended);
    }

    fn suspended(&mut self, ticks: i64) {
        self.ticks = self.ticks.wrapping_add(ticks);
        self.suspended = self.suspended.wrapping_add(ticks);
    }
}

/// An activation whose end has not been seen.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub(crate) entry: u64,
    pub(crate) below: Below,
    pub(crate) rsp: u32,
    pub function: FunctionId,
    pub(crate) mark: Mark,
    pub(crate) escaped: bool,
    /// Its entry has the stamp of the exit before it.
    pub(crate) fused: bool,
    /// Of the innermost frame of a stack that was left: the first record of another stack since.
    pub(crate) left_tsc: Option<u64>,
    /// Its stack was left while it was the innermost frame there that is known to live, and has run again.
    pub(crate) was_left: bool,
    /// What was read of counters.
    pub(crate) slot: Slot,
}

impl Frame {
    /// Its stack is left: this is the first stamp of another.
    pub(crate) fn leave(&mut self, tsc: u64) {
        self.left_tsc = self.left_tsc.or(Some(tsc));
    }

    /// Its stack runs again; `last` is the last stamp of another.
    pub(crate) fn resume(&mut self, last: u64) {
        if let Some(left) = self.left_tsc.take() {
            self.below.suspended(last.saturating_sub(left) as i64);
            self.was_left = true;
        }
    }

    /// What the sink gave this call.
    pub fn mark(&self) -> Mark {
        self.mark
    }
}

#[derive(Debug, Default)]
pub(crate) struct Stack {
    /// Outermost first; stack pointers strictly fall.
    pub(crate) frames: Vec<Frame>,
    /// An exit has shown that this is a stack of its own, not a part of its neighbour.
    pub(crate) proven: bool,
    left_at: u64,
}

impl Stack {
    pub(crate) fn proven(frames: Vec<Frame>) -> Stack {
        Stack {
            frames,
            proven: true,
            left_at: 0,
        }
    }

    pub(crate) fn ends(&self) -> Option<(u32, u32)> {
        Some((self.frames.first()?.rsp, self.frames.last()?.rsp))
    }

    /// Whether `rsp` lies among the frames.
    pub(crate) fn contains(&self, rsp: u32) -> bool {
        let inside = |(base, top): (u32, u32)| base.wrapping_sub(rsp) <= base.wrapping_sub(top);
        self.ends().is_some_and(inside)
    }

    /// Whether `rsp` lies among the frames or at most `reach` below the innermost.
    pub(crate) fn reaches(&self, rsp: u32, reach: u32) -> bool {
        let below = |(_, top): (u32, u32)| top.wrapping_sub(rsp) <= reach;
        self.contains(rsp) || self.ends().is_some_and(below)
    }

    /// Number of frames that are alive while the stack pointer is at `rsp`, which this stack
    /// reaches. A frame right at `rsp` is alive only inside its own body (`keep_equal`).
    pub(crate) fn alive(&self, rsp: u32, keep_equal: bool) -> usize {
        let Some((base, _)) = self.ends() else {
            return 0;
        };
        let depth = base.wrapping_sub(rsp);
        let above = |f: &Frame| match base.wrapping_sub(f.rsp) {
            d if d == depth => keep_equal,
            d => d < depth,
        };
        // Usually none or few are dead: look from the inside.
        self.frames.iter().rposition(above).map_or(0, |i| i + 1)
    }

    pub(crate) fn innermost(&self, function: FunctionId) -> Option<&Frame> {
        self.frames.iter().rfind(|f| f.function == function)
    }

    /// The frame of `function` that was entered at `rsp`.
    pub(crate) fn activation(&self, function: FunctionId, rsp: u32) -> Option<usize> {
        if !self.contains(rsp) {
            return None;
        }
        let at = self.alive(rsp, true).checked_sub(1)?;
        let frame = &self.frames[at];
        (frame.rsp == rsp && frame.function == function).then_some(at)
    }
}

/// Stacks the thread has left, by the stack pointer of their outermost frame.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_base: BTreeMap<u32, Stack>,
    clock: u64,
    /// No stack in here is deeper.
    depth_max: u32,
}

impl Waiting {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_base.is_empty()
    }

    /// Puts a stack aside; gives back the one it displaces, if any.
    pub(crate) fn put(&mut self, mut stack: Stack) -> Option<Stack> {
        let (base, top) = stack.ends()?;
        self.depth_max = self.depth_max.max(base.wrapping_sub(top));
        self.clock += 1;
        stack.left_at = self.clock;
        self.by_base.insert(base, stack)
    }

    /// The stack with the nearest outermost frame at or above `rsp`.
    pub(crate) fn nearest(&self, rsp: u32) -> Option<(u32, &Stack)> {
        let above = self.by_base.range(rsp..).next();
        let (base, stack) = above.or_else(|| self.by_base.first_key_value())?;
        Some((*base, stack))
    }

    pub(crate) fn take(&mut self, base: u32) -> Option<Stack> {
        self.by_base.remove(&base)
    }

    /// Of the stacks on which `function` was entered at `rsp`, the one where it was entered last:
    /// entry stamp and base. With many stacks the nearest will do, and others are looked at only
    /// when asked for (`all`).
    pub(crate) fn activation(
        &self,
        function: FunctionId,
        rsp: u32,
        all: bool,
    ) -> Option<(u64, u32)> {
        let entered = |base: u32, stack: &Stack| {
            let at = stack.activation(function, rsp)?;
            Some((stack.frames[at].entry, base))
        };
        if self.by_base.len() > SEARCHED_WHOLE {
            let nearest = self.nearest(rsp);
            let found = nearest.and_then(|(base, stack)| entered(base, stack));
            if found.is_some() || !all {
                return found;
            }
        }
        let stacks = self.by_base.iter();
        stacks.filter_map(|(b, s)| entered(*b, s)).max()
    }

    /// Takes out the stacks that have a frame in `page` that is `there`.
    pub(crate) fn with_frames_in(
        &mut self,
        page: u32,
        there: impl Fn(&Frame) -> bool,
    ) -> Vec<Stack> {
        let (low, high) = taken::ends(page);
        let last = high.checked_add(self.depth_max);
        let is_it = |stack: &Stack| stack.frames.iter().any(&there);
        let its = |range: RangeInclusive<u32>| {
            let stacks = self.by_base.range(range);
            stacks.filter(|(_, s)| is_it(s)).map(|(base, _)| *base)
        };
        let bases: Vec<u32> = match last {
            Some(last) => its(low..=last).collect(),
            // Over the end of what is known of addresses.
            None => its(0..=u32::MAX).collect(),
        };
        let stacks = bases.into_iter();
        stacks.filter_map(|base| self.take(base)).collect()
    }

    /// The innermost open call of `function` on each stack that has one.
    pub(crate) fn innermost(&self, function: FunctionId) -> impl Iterator<Item = &Frame> {
        let stacks = self.by_base.values();
        stacks.filter_map(move |stack| stack.innermost(function))
    }

    /// When there are too many: the half that was left longest ago.
    pub(crate) fn give_up(&mut self) -> Vec<Stack> {
        if self.by_base.len() <= WAITING_MAX {
            return Vec::new();
        }
        let mut ages: Vec<u64> = self.by_base.values().map(|s| s.left_at).collect();
        ages.sort_unstable();
        let middle = ages[ages.len() / 2];
        let old = self.by_base.extract_if(.., |_, s| s.left_at < middle);
        old.map(|(_, stack)| stack).collect()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Stack> + use<> {
        std::mem::take(&mut self.by_base).into_values()
    }
}
