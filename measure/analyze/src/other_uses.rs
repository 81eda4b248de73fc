//! Where other threads of the process were on the stacks of one thread, as its pairing knows it.
use crate::stacks::Frame;
use std::collections::{HashMap, HashSet};

/// Stack positions are told apart in granules of this size.
const GRANULE_LOG2: u32 = 10;
/// What another thread does so far below a frame belongs to the call of that frame. Less than the smallest
/// coroutine stacks, which lie side by side.
pub(crate) const BELOW_BYTES: u32 = 4 << 10;
/// Granules that are kept apart; beyond, all older calls of the thread may have moved.
const GRANULES_MAX: usize = 1 << 16;
const EVERYWHERE: u32 = u32::MAX;
/// Set where no granule is meant but a part of memory that another thread had before.
const HAD_BEFORE: u32 = 1 << 31;
/// Parts of memory are told apart at this size.
pub(crate) const PART_LOG2: u32 = 14;

/// Another thread of the process had its stack pointer in a granule of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherUse {
    /// It came before this record of the batch.
    pub before: u32,
    granule: u32,
    /// The last time.
    pub(crate) tsc: u64,
}

impl OtherUse {
    pub(crate) fn new(before: u32, granule: u32, tsc: u64) -> OtherUse {
        OtherUse {
            before,
            granule,
            tsc,
        }
    }

    pub(crate) fn everywhere(before: u32, tsc: u64) -> OtherUse {
        OtherUse::new(before, EVERYWHERE, tsc)
    }

    /// The same place before the same record: the later one counts.
    pub(crate) fn joins(&self, other: &OtherUse) -> bool {
        (self.before, self.granule) == (other.before, other.granule)
    }
}

pub(crate) fn granule(rsp: u32) -> u32 {
    rsp >> GRANULE_LOG2
}

/// Another thread had this part before: that does not concern calls that began since.
pub(crate) fn had_before(part: u32) -> u32 {
    HAD_BEFORE | part
}

/// The granules of the part of memory with this number.
pub(crate) fn granules_of(part: u32) -> std::ops::Range<u32> {
    let each = 1 << (PART_LOG2 - GRANULE_LOG2);
    part * each..(part + 1) * each
}

/// Granules where others were, with the last time.
#[derive(Debug, Default)]
pub(crate) struct OtherUses {
    last: HashMap<u32, u64>,
    everywhere: Option<u64>,
    had_before: HashSet<u32>,
    /// Counts what was told of granules.
    pub(crate) version: u64,
}

impl OtherUses {
    pub(crate) fn tell(&mut self, one: &OtherUse) {
        if one.granule != EVERYWHERE && one.granule & HAD_BEFORE != 0 {
            self.had_before.insert(one.granule);
            return;
        }
        self.version += 1;
        if one.granule == EVERYWHERE {
            self.everywhere = self.everywhere.max(Some(one.tsc));
            return;
        }
        if self.last.len() >= GRANULES_MAX && !self.last.contains_key(&one.granule) {
            self.everywhere = self.everywhere.max(self.last.values().copied().max());
            self.last.clear();
        }
        let last = self.last.entry(one.granule).or_default();
        *last = one.tsc.max(*last);
    }

    /// When another thread was last where a call at `rsp` runs.
    pub(crate) fn last(&self, rsp: u32) -> Option<u64> {
        if self.version == 0 {
            return None;
        }
        let deepest = granule(rsp.wrapping_sub(BELOW_BYTES));
        let number = granule(rsp).wrapping_sub(deepest) & (u32::MAX >> GRANULE_LOG2);
        let granules = (0..=number).map(|n| deepest.wrapping_add(n) & (u32::MAX >> GRANULE_LOG2));
        let there = granules.filter_map(|g| self.last.get(&g).copied()).max();
        there.max(self.everywhere)
    }

    /// Ends at `rsp` may be of calls that another thread had.
    pub(crate) fn had_before(&mut self, rsp: u32) {
        self.had_before.insert(had_before(rsp >> PART_LOG2));
    }

    /// Another thread was where a call at `rsp` runs, and may have begun it.
    pub(crate) fn ever(&self, rsp: u32) -> bool {
        self.last(rsp).is_some() || self.had_before.contains(&had_before(rsp >> PART_LOG2))
    }

    /// Another thread was on this frame's stack, at the frame or below it, since it was entered.
    pub(crate) fn since(&self, frame: &Frame) -> bool {
        self.last(frame.rsp).is_some_and(|last| last >= frame.entry)
    }
}
