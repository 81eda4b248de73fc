//! What analysis is fed with.
use crate::taken::Taken;
use hopscope_event::{Record, ThreadIx, Tsc};

/// Consecutive records of one thread's ring.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    pub thread: ThreadIx,
    /// Ring index of the first record.
    pub first_index: u64,
    /// Records overwritten just before the first.
    pub lost: u64,
    /// Slots that were reserved and never stored, before or among these.
    pub torn: u64,
    pub records: &'a [Record],
    /// Pages of its stacks that other threads of the process took over, from [`crate::StackOwners`].
    pub taken: &'a [Taken],
    /// What others did meanwhile was not all read when this was passed on.
    pub early: bool,
}

impl<'a> Batch<'a> {
    /// Stamps of its records: captured values and readings of counters have none.
    pub(crate) fn stamps(&self) -> impl DoubleEndedIterator<Item = Tsc> + use<'a> {
        let stamped = self.records.iter().filter(|r| r.value().is_none());
        stamped.map(|r| Tsc(r.tsc))
    }
}
