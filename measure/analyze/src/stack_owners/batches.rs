//! Batches as they come in and go out.
use super::StackOwners;
use crate::batch::Batch;
use crate::taken::Taken;
use hopscope_event::{Record, ThreadIx, Tsc};

/// Consecutive records of one thread's ring, and what of other threads belongs among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBatch {
    pub thread: ThreadIx,
    pub first_index: u64,
    pub lost: u64,
    pub torn: u64,
    pub records: Vec<Record>,
    pub taken: Vec<Taken>,
    /// Passed on before all that happened up to its end was taken.
    pub early: bool,
}

impl OwnedBatch {
    /// As it was recorded: nothing is missing before it, nor known of others.
    pub fn new(thread: ThreadIx, first_index: u64, records: Vec<Record>) -> OwnedBatch {
        OwnedBatch {
            thread,
            first_index,
            lost: 0,
            torn: 0,
            records,
            taken: Vec::new(),
            early: false,
        }
    }

    pub fn batch(&self) -> Batch<'_> {
        Batch {
            thread: self.thread,
            first_index: self.first_index,
            lost: self.lost,
            torn: self.torn,
            records: &self.records,
            taken: &self.taken,
            early: self.early,
        }
    }
}

/// A batch as it lies in a file, and what is known of those after it.
#[derive(Debug, Clone)]
pub struct Read {
    pub batch: OwnedBatch,
    /// No later batch has a record stamped before this, nor one that is lost.
    pub ahead_from: Tsc,
    pub last_of_thread: bool,
}

/// The batches of a file, in its order.
#[derive(Debug)]
pub struct InOrder<I> {
    batches: I,
    ended: bool,
    owners: StackOwners,
}

impl<I> InOrder<I> {
    pub fn new(batches: I, owners: StackOwners) -> InOrder<I> {
        InOrder {
            batches,
            ended: false,
            owners,
        }
    }
}

impl<I, E> Iterator for InOrder<I>
where
    I: Iterator<Item = Result<Read, E>>,
{
    type Item = Result<OwnedBatch, E>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.owners.ready() {
                return Some(Ok(ready));
            }
            if self.ended {
                return None;
            }
            match self.batches.next() {
                Some(Ok(read)) => {
                    self.owners.take(read.batch, read.last_of_thread);
                    self.owners.taken_until(read.ahead_from);
                }
                Some(Err(e)) => return Some(Err(e)),
                None => {
                    self.ended = true;
                    self.owners.taken_until(Tsc(u64::MAX));
                }
            }
        }
    }
}
