//! What is known of one thread.
use super::{Held, Loss, OwnedBatch};
use crate::continuity::Continuity;
use crate::taken::Taken;
use hopscope_event::{ProcessIx, Record, RecordKind};

/// Pages that a thread was in lately.
const PAGES: usize = 64;
const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Thread {
    pub(super) process: ProcessIx,
    /// Its own pages, by the low bits of their numbers, as of `epoch`.
    pages: Box<[u32; PAGES]>,
    epoch: u64,
    continuity: Continuity,
    /// Highest stamp that was taken.
    pub(super) newest: u64,
    lost_since: Option<u64>,
    /// No batch of it comes any more.
    done: bool,
    held: usize,
    /// What its next batch is told, and the stamp after which it belongs.
    told: Vec<(u64, Taken)>,
}

pub(super) fn has_place(record: &Record) -> bool {
    record.kind() != Some(RecordKind::Value)
}

impl Thread {
    pub(super) fn new(process: ProcessIx) -> Thread {
        Thread {
            process,
            pages: Box::new([NONE; PAGES]),
            epoch: 0,
            continuity: Continuity::default(),
            newest: 0,
            lost_since: None,
            done: false,
            held: 0,
            told: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, held: &mut Held, last_of_thread: bool) {
        let gap = self.continuity.continues(&held.batch.batch());
        if gap.lost > 0 || gap.torn > 0 || gap.discontinuous || gap.torn_among {
            self.lost_since.get_or_insert(self.newest);
        }
        let mut stamps = held.batch.records.iter().filter(|r| has_place(r));
        let first = stamps.next().map(|r| r.tsc);
        held.last = first.map_or(0, |first| stamps.map(|r| r.tsc).fold(first, u64::max));
        let lost_until = match first {
            Some(_) if gap.torn_among => Some(held.last),
            // After the last record any may be lost.
            None if last_of_thread => Some(u64::MAX),
            first => first,
        };
        if let Some(to) = lost_until {
            held.loss = self.lost_since.take().map(|from| Loss { from, to });
        }
        held.process = Some(self.process);
        self.newest = self.newest.max(held.last);
        self.done = last_of_thread;
        self.held += 1;
    }

    /// Records are missing since this stamp, and none came after them.
    pub(super) fn lost_since(&self) -> Option<u64> {
        self.lost_since
    }

    /// It has ended before this stamp.
    pub(super) fn has_ended(&self, at: u64) -> bool {
        self.done && self.newest < at
    }

    /// Nobody looks at what it would be told.
    pub(super) fn is_gone(&self) -> bool {
        self.done && self.held == 0
    }

    /// Whether the page is known to be its own.
    #[inline]
    pub(super) fn owns(&mut self, page: u32, epoch: u64) -> bool {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.pages.fill(NONE);
        }
        self.pages[page as usize % PAGES] == page
    }

    pub(super) fn owns_now(&mut self, page: u32) {
        self.pages[page as usize % PAGES] = page;
    }

    pub(super) fn tell(&mut self, after: u64, page: u32, until: u64) {
        let taken = Taken {
            before: 0,
            page,
            until,
        };
        self.told.push((after, taken));
    }

    /// Puts what it is told before the records that follow.
    pub(super) fn pass_on(&mut self, batch: &mut OwnedBatch, last: u64) {
        self.held -= 1;
        if self.told.is_empty() {
            return;
        }
        self.told.sort_by_key(|(after, _)| *after);
        let due = self.told.partition_point(|(after, _)| *after < last);
        let mut before = 0;
        for (after, taken) in self.told.drain(..due) {
            let earlier = |r: &Record| !has_place(r) || r.tsc <= after;
            while batch.records.get(before).is_some_and(earlier) {
                before += 1;
            }
            let before = before as u32;
            batch.taken.push(Taken { before, ..taken });
        }
        if self.is_gone() {
            self.told = Vec::new();
        }
    }
}
