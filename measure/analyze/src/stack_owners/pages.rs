//! The pages of stacks of one process, each with the thread that had it last.
//!
//! As long as no two threads that live come to the same page, nothing is kept of records. From then on all are
//! logged, and looked at in the order of their time, until stacks move no more.
use super::thread::{Thread, has_place};
use super::{Held, Loss};
use crate::taken::{self, concerned};
use hopscope_event::{Record, ThreadIx};
use std::collections::HashMap;

/// Log entries from which on it is worth looking whether stacks still move.
const LOOKED_FROM: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Pages {
    owners: HashMap<u32, Owner>,
    log: Option<Log>,
    /// What was logged up to this stamp was looked at.
    settled: u64,
    /// Counts the times that owners changed unseen by threads.
    epoch: u64,
    /// Those that have moved between threads that live.
    shared: Vec<u32>,
    /// Losses that may not be over at the use that was looked at last.
    under_way: Vec<(ThreadIx, Loss)>,
}

#[derive(Debug, Clone, Copy)]
struct Owner {
    thread: ThreadIx,
    shared: bool,
}

/// What is not looked at yet.
#[derive(Debug, Default)]
struct Log {
    uses: Vec<Use>,
    losses: Vec<(ThreadIx, Loss)>,
    sorted: bool,
    /// The use that was looked at last.
    latest: Option<(ThreadIx, u32)>,
    looked_at: usize,
    moves: usize,
}

/// A thread had its stack pointer in a page.
#[derive(Debug, Clone, Copy)]
struct Use {
    at: u64,
    thread: ThreadIx,
    page: u32,
}

type Threads = HashMap<ThreadIx, Thread>;

impl Pages {
    pub(super) fn is_logging(&self) -> bool {
        self.log.is_some()
    }

    /// Between threads that live.
    pub(super) fn have_moved(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Notes whose the pages are; true when one is of another thread that has not ended.
    pub(super) fn is_contested(
        &mut self,
        ix: ThreadIx,
        thread: &mut Thread,
        records: &[Record],
        others: &Threads,
    ) -> bool {
        let mut page = u32::MAX;
        for record in records.iter().filter(|r| has_place(r)) {
            let now = taken::page(record.rsp_lo32());
            if now == page || thread.owns(now, self.epoch) {
                page = now;
                continue;
            }
            page = now;
            for concerned in concerned(page) {
                if !self.inherits(concerned, ix, thread, record.tsc, others) {
                    return true;
                }
            }
            thread.owns_now(page);
        }
        false
    }

    /// Whether a page was nobody's, this thread's, or of one that has ended.
    fn inherits(
        &mut self,
        page: u32,
        ix: ThreadIx,
        thread: &mut Thread,
        at: u64,
        others: &Threads,
    ) -> bool {
        let owner = self.owners.entry(page).or_insert(Owner {
            thread: ix,
            shared: false,
        });
        if owner.thread == ix {
            return true;
        }
        if others.get(&owner.thread).is_some_and(|o| !o.has_ended(at)) {
            return false;
        }
        owner.thread = ix;
        // No call of this thread lies there yet; ends may be of calls that the other one had.
        thread.tell(at.saturating_sub(1), page, 0);
        true
    }

    /// From now on, with these records, all are logged. They may have been looked at while stacks moved before.
    pub(super) fn log_held(&mut self, held: &Held) {
        self.log_after(held, self.settled);
    }

    pub(super) fn log(&mut self, held: &Held) {
        self.log_after(held, 0);
    }

    fn log_after(&mut self, held: &Held, settled: u64) {
        let log = self.log.get_or_insert_default();
        let thread = held.batch.thread;
        let new = |r: &&Record| has_place(r) && r.tsc > settled;
        let stamped = held.batch.records.iter().filter(new);
        log.uses.extend(stamped.map(|record| Use {
            at: record.tsc,
            thread,
            page: taken::page(record.rsp_lo32()),
        }));
        let loss = held.loss.filter(|loss| loss.from > settled);
        log.losses.extend(loss.map(|loss| (thread, loss)));
        log.sorted = false;
    }

    /// Looks at what was logged up to this stamp, and tells the threads whose pages others took.
    pub(super) fn settle(&mut self, until: u64, threads: &mut Threads, looked_from: Option<usize>) {
        let Some(mut log) = self.log.take() else {
            return;
        };
        if !std::mem::replace(&mut log.sorted, true) {
            log.uses.sort_by_key(|one| one.at);
            log.losses.sort_by_key(|(_, loss)| loss.from);
        }
        let due = log.uses.partition_point(|one| one.at <= until);
        let due_losses = log.losses.partition_point(|(_, loss)| loss.from <= until);
        let mut losses = log.losses.drain(..due_losses).peekable();
        for one in log.uses.drain(..due) {
            while let Some((thread, loss)) = losses.next_if(|(_, loss)| loss.from <= one.at) {
                self.lose(thread, loss, threads);
            }
            if log.latest.replace((one.thread, one.page)) != Some((one.thread, one.page)) {
                log.moves += self.claim(one, threads);
            }
        }
        losses.for_each(|(thread, loss)| self.lose(thread, loss, threads));
        log.looked_at += due;
        self.settled = self.settled.max(until);
        let worth_it = log.looked_at >= looked_from.unwrap_or(LOOKED_FROM);
        if worth_it && log.moves == 0 && self.rest_moves_nothing(&log) {
            self.epoch += 1;
            return;
        }
        if worth_it {
            (log.looked_at, log.moves) = (0, 0);
        }
        self.log = Some(log);
    }

    /// How many pages move to the thread that uses this one.
    fn claim(&mut self, one: Use, threads: &mut Threads) -> usize {
        let mut moves = 0;
        let unknown_until = self.unknown_until(one);
        for page in concerned(one.page) {
            let owner = self.owners.entry(page).or_insert(Owner {
                thread: one.thread,
                shared: false,
            });
            if owner.thread == one.thread {
                continue;
            }
            let before = std::mem::replace(&mut owner.thread, one.thread);
            if let Some(now) = threads.get_mut(&one.thread) {
                now.tell(one.at.saturating_sub(1), page, unknown_until);
            }
            let Some(before) = threads.get_mut(&before).filter(|t| !t.is_gone()) else {
                continue;
            };
            before.tell(one.at, page, one.at);
            moves += 1;
            if !std::mem::replace(&mut owner.shared, true) {
                self.shared.push(page);
            }
        }
        moves
    }

    /// So long others may have been where a thread comes to, in records that are missing.
    fn unknown_until(&mut self, one: Use) -> u64 {
        self.under_way.retain(|(_, loss)| loss.to >= one.at);
        let of_others = self.under_way.iter().filter(|(by, _)| *by != one.thread);
        of_others.map(|(_, loss)| loss.to).max().unwrap_or(0)
    }

    /// A thread of which records are missing may have been wherever stacks move.
    fn lose(&mut self, thread: ThreadIx, loss: Loss, threads: &mut Threads) {
        self.under_way.push((thread, loss));
        for page in &self.shared {
            let Some(owner) = self.owners.get(page).filter(|o| o.thread != thread) else {
                continue;
            };
            if let Some(owner) = threads.get_mut(&owner.thread).filter(|t| !t.is_gone()) {
                owner.tell(loss.from, *page, loss.to);
            }
        }
    }

    /// All that is still to be looked at is of the owners of its pages.
    fn rest_moves_nothing(&mut self, log: &Log) -> bool {
        let mut owns = |one: &Use, page: u32| {
            let owner = self.owners.entry(page).or_insert(Owner {
                thread: one.thread,
                shared: false,
            });
            owner.thread == one.thread
        };
        let stays = |one: &Use| concerned(one.page).into_iter().all(|page| owns(one, page));
        log.losses.is_empty() && log.uses.iter().all(stays)
    }
}
