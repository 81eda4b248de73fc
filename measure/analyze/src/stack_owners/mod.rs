//! Which thread of a process runs on which page of its stacks, in the order of time: coroutines may move
//! between threads, and then a call does not end where it began.
//!
//! A page belongs to the thread that was the last to have a record there, or in the page below. When another thread
//! comes, the one before is told: what it had open there may end elsewhere. A batch is passed on when all that
//! happened up to its end was taken; batches keep their order. Pages are those of the low halves of stack pointers:
//! stacks exactly 4 GiB apart are one.
mod batches;
mod pages;
mod thread;

pub use batches::{InOrder, OwnedBatch, Read};

use crate::Index;
use hopscope_event::{ProcessIx, ThreadIx, Tsc};
use pages::Pages;
use std::collections::{HashMap, HashSet, VecDeque};
use thread::Thread;

/// 256 MiB; beyond, batches are passed on before all of their time was taken.
const HELD_RECORDS_MAX: usize = 16 << 20;

/// See the module.
#[derive(Debug, Default)]
pub struct StackOwners {
    threads: HashMap<ThreadIx, Thread>,
    processes: HashMap<ProcessIx, Pages>,
    held: VecDeque<Held>,
    held_records: usize,
    /// Threads whose last batches had lost records, and no others.
    losing: HashSet<ThreadIx>,
    /// Batches to come have no record stamped before this.
    until: u64,
    /// Log entries from which on it is worth looking whether stacks still move; for tests.
    looked_from: Option<usize>,
}

#[derive(Debug)]
struct Held {
    batch: OwnedBatch,
    /// `None`: the only thread of its process.
    process: Option<ProcessIx>,
    /// Highest stamp.
    last: u64,
    loss: Option<Loss>,
}

/// Records are missing between these stamps.
#[derive(Debug, Clone, Copy)]
struct Loss {
    from: u64,
    to: u64,
}

impl StackOwners {
    /// `threads`: all that will have records.
    pub fn new(index: &Index, threads: impl Iterator<Item = ThreadIx>) -> StackOwners {
        let of = |ix| Some((ix, index.process(ix)?));
        let threads: Vec<_> = threads.filter_map(of).collect();
        let mut of_process: HashMap<ProcessIx, usize> = HashMap::new();
        for (_, process) in &threads {
            *of_process.entry(*process).or_default() += 1;
        }
        let mut owners = StackOwners::default();
        for (ix, process) in threads {
            if of_process[&process] > 1 {
                owners.thread(ix, process);
            }
        }
        owners
    }

    /// A thread of which records will come.
    pub fn thread(&mut self, ix: ThreadIx, process: ProcessIx) {
        let thread = || Thread::new(process);
        self.threads.entry(ix).or_insert_with(thread);
    }

    #[doc(hidden)]
    pub fn looked_from(self, entries: usize) -> StackOwners {
        StackOwners {
            looked_from: Some(entries),
            ..self
        }
    }

    /// Takes the next batch of a thread.
    pub fn take(&mut self, batch: OwnedBatch, last_of_thread: bool) {
        let mut held = Held {
            process: None,
            last: 0,
            loss: None,
            batch,
        };
        let ix = held.batch.thread;
        if let Some(mut thread) = self.threads.remove(&ix) {
            thread.take(&mut held, last_of_thread);
            match thread.lost_since() {
                Some(_) => self.losing.insert(ix),
                None => self.losing.remove(&ix),
            };
            self.look(ix, &mut thread, &held);
            self.threads.insert(ix, thread);
        }
        self.held_records += held.batch.records.len();
        self.held.push_back(held);
    }

    fn look(&mut self, ix: ThreadIx, thread: &mut Thread, held: &Held) {
        let pages = self.processes.entry(thread.process).or_default();
        if !pages.is_logging() {
            let hides_moves = held.loss.is_some() && pages.have_moved();
            if !pages.is_contested(ix, thread, &held.batch.records, &self.threads) && !hides_moves {
                return;
            }
            let of_process = |h: &&Held| h.process == held.process;
            for earlier in self.held.iter().filter(of_process) {
                pages.log_held(earlier);
            }
        }
        pages.log(held);
    }

    /// Batches to come have no record stamped before this.
    pub fn taken_until(&mut self, until: Tsc) {
        self.until = until.0;
    }

    /// All that happened in a process before this stamp was taken. What a thread has lost lies between its records: until
    /// the next ones come it may have been anywhere since.
    fn known_until(&self, process: ProcessIx) -> u64 {
        let may_move = |pages: &Pages| pages.is_logging() || pages.have_moved();
        let moves = self.processes.get(&process).is_some_and(may_move);
        if !moves || self.losing.is_empty() {
            return self.until;
        }
        let losing = self.losing.iter().filter_map(|ix| self.threads.get(ix));
        let since = losing
            .filter(|t| t.process == process)
            .filter_map(Thread::lost_since);
        since.chain([self.until]).min().unwrap_or(self.until)
    }

    /// The next batch, if all up to its end was taken.
    pub fn ready(&mut self) -> Option<OwnedBatch> {
        let front = self.held.front()?;
        let until = front
            .process
            .map_or(u64::MAX, |process| self.known_until(process));
        let known = front.last < until || until == u64::MAX;
        if !known && self.held_records <= HELD_RECORDS_MAX {
            return None;
        }
        let Held {
            mut batch,
            process,
            last,
            ..
        } = self.held.pop_front()?;
        self.held_records -= batch.records.len();
        batch.early = !known;
        if let Some(pages) = process.and_then(|process| self.processes.get_mut(&process)) {
            pages.settle(
                last.max(until.saturating_sub(1)),
                &mut self.threads,
                self.looked_from,
            );
            if let Some(thread) = self.threads.get_mut(&batch.thread) {
                thread.pass_on(&mut batch, last);
            }
        }
        Some(batch)
    }
}
