//! Pages of stacks that other threads of the process have taken over, as the pairing of one thread knows them.
use std::collections::HashMap;

/// The smallest stacks that are told apart.
const PAGE_LOG2: u32 = 12;
/// Stack pointers are known by their low half.
const PAGES: u32 = 1 << (32 - PAGE_LOG2);
/// Pages that are kept apart; beyond, all older calls of the thread may have moved.
const KEPT_MAX: usize = 1 << 16;

pub(crate) fn page(rsp: u32) -> u32 {
    rsp >> PAGE_LOG2
}

/// First and last byte.
pub(crate) fn ends(page: u32) -> (u32, u32) {
    let low = page << PAGE_LOG2;
    (low, low | ((1 << PAGE_LOG2) - 1))
}

/// A thread with its stack pointer in a page may end the calls in that page and in the one above.
pub(crate) fn concerned(page: u32) -> [u32; 2] {
    [page, (page + 1) % PAGES]
}

/// Another thread of the process ran on a page of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// It comes before this record of the batch.
    pub before: u32,
    pub(crate) page: u32,
    /// Calls that began there up to this stamp may have ended on the other thread.
    pub(crate) until: u64,
}

/// The pages with the last stamp of each.
#[derive(Debug, Default)]
pub(crate) struct TakenPages {
    last: HashMap<u32, u64>,
    everywhere: Option<u64>,
    latest: u64,
}

impl TakenPages {
    pub(crate) fn add(&mut self, one: &Taken) {
        if self.last.len() >= KEPT_MAX && !self.last.contains_key(&one.page) {
            self.everywhere = self.everywhere.max(self.last.values().copied().max());
            self.last.clear();
        }
        self.latest = self.latest.max(one.until);
        let last = self.last.entry(one.page).or_default();
        *last = one.until.max(*last);
    }

    /// Up to when others had any.
    #[inline]
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    /// Up to when others had the page of this stack pointer.
    pub(crate) fn until(&self, rsp: u32) -> Option<u64> {
        self.last.get(&page(rsp)).copied().max(self.everywhere)
    }

    /// Another thread had the page of this stack pointer since this stamp.
    pub(crate) fn has(&self, rsp: u32, entry: u64) -> bool {
        self.until(rsp) >= Some(entry)
    }
}
