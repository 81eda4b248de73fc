//! Stacks that move between threads (coroutines): where another thread ran on a page of a stack since a call
//! began there, it is not certain that the next end there is that call's, nor what was called meanwhile. All open
//! calls of that stack stay unpaired and are counted; their ends, when they come, have no entry.
use super::{Pairer, tell};
use crate::balance::{Fate, Orphan};
use crate::batch::Batch;
use crate::sink::Sink;
use crate::stacks::{Frame, Stack};
use crate::taken::{self, Taken};

impl Pairer {
    /// Takes the records of a batch, and among them what other threads did.
    pub fn feed_batch(&mut self, batch: &Batch<'_>, sink: &mut impl Sink) {
        self.oddities.early_batches += u64::from(batch.early);
        let mut from = 0;
        for one in batch.taken {
            let before = (one.before as usize).clamp(from, batch.records.len());
            let records = &batch.records[from..before];
            records.iter().for_each(|record| self.feed(*record, sink));
            from = before;
            self.take_away(one, sink);
        }
        for record in &batch.records[from..] {
            self.feed(*record, sink);
        }
    }

    fn take_away(&mut self, one: &Taken, sink: &mut impl Sink) {
        self.taken.get_or_insert_default().add(one);
        if one.until == 0 {
            return;
        }
        self.tail = None;
        let there = |f: &Frame| taken::page(f.rsp) == one.page && f.entry <= one.until;
        if self.running.frames.iter().any(there) {
            self.just_entered = false;
            let running = std::mem::take(&mut self.running);
            self.moved(running, sink);
        }
        for stack in self.waiting.with_frames_in(one.page, there) {
            self.moved(stack, sink);
        }
    }

    fn moved(&mut self, stack: Stack, sink: &mut impl Sink) {
        for frame in stack.frames {
            // An older call at this place, left unfinished, does not end in its stead.
            let older = Taken {
                before: 0,
                page: taken::page(frame.rsp),
                until: frame.entry,
            };
            if let Some(counting) = &mut self.counting {
                counting.release(frame.slot);
            }
            tell(frame, Fate::Moved, sink);
            self.take_away(&older, sink);
        }
    }

    /// An end there has lost its entry because the stack moved.
    pub(super) fn end_is_moved(&mut self, rsp: u32) {
        let unknown = Taken {
            before: 0,
            page: taken::page(rsp),
            until: 0,
        };
        self.taken.get_or_insert_default().add(&unknown);
    }

    /// Whether a call that begins now may end unseen on another thread, of which records are missing.
    #[inline]
    pub(super) fn may_be_elsewhere(&self, rsp: u32, tsc: u64) -> bool {
        match &self.taken {
            Some(taken) => taken.latest() >= tsc && taken.until(rsp) >= Some(tsc),
            None => false,
        }
    }

    /// Why an end has no entry.
    pub(super) fn why_without_entry(&self, rsp: u32) -> Orphan {
        let taken = self.taken.as_ref().and_then(|taken| taken.until(rsp));
        match (taken, self.gap_seen) {
            (Some(1..), _) | (Some(0), false) => Orphan::Moved,
            (_, true) => Orphan::Cut,
            (None, false) => Orphan::OpenAtStart,
        }
    }
}
