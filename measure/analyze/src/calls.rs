//! Every paired call with its place, for pictures. Nothing is kept of it here.
use crate::Measured;
use crate::analysis::Thread;
use crate::balance::{Balance, Fate, Orphan};
use crate::batch::Batch;
use crate::index::Index;
use crate::pair::{Call, Enter, Mark, Sink};
use hopscope_event::{FunctionEntry, FunctionId, ThreadIx, Tsc};
use std::collections::HashMap;

/// A call whose entry and exit were paired, and how deep it lay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacedCall {
    pub thread: ThreadIx,
    pub function: FunctionId,
    /// Measured calls of the same stack that were open when it began.
    pub depth: u32,
    pub entry: Tsc,
    /// Exit stamp minus entry stamp, as measured; negative when the clock ran backwards.
    pub ticks: i64,
    /// Sum of the times of the measured calls made by it.
    pub callee_ticks: i64,
    /// Measured calls made by it, and by those in turn.
    pub callees: Measured,
    pub descendants: Measured,
    /// Its entry has the stamp of the exit before it.
    pub fused: bool,
    pub tail: bool,
}

/// Feed it each thread's records in ring order, threads in any interleaving. Calls are given out
/// when they end: a caller after its callees.
#[derive(Debug, Default)]
pub struct Calls {
    index: Index,
    threads: HashMap<ThreadIx, Thread>,
    balance: Balance,
}

impl Calls {
    pub fn new(index: Index) -> Calls {
        Calls {
            index,
            threads: HashMap::new(),
            balance: Balance::default(),
        }
    }

    /// Functions that came later.
    pub fn add(&mut self, functions: &[FunctionEntry]) {
        self.index.add(functions);
    }

    /// See [`Balance::calls_moved`].
    pub fn calls_moved(&self) -> u64 {
        self.balance.calls_moved()
    }

    pub fn feed(&mut self, batch: &Batch<'_>, each: &mut dyn FnMut(PlacedCall)) {
        let thread = self.threads.entry(batch.thread).or_default();
        let mut sink = Placing {
            index: &self.index,
            thread: batch.thread,
            balance: &mut self.balance,
            each,
        };
        let gap = thread.continues(batch);
        thread.pairer.gap(gap, &mut sink);
        thread.pairer.feed_batch(batch, &mut sink);
    }
}

struct Placing<'a> {
    index: &'a Index,
    thread: ThreadIx,
    balance: &'a mut Balance,
    each: &'a mut dyn FnMut(PlacedCall),
}

impl Sink for Placing<'_> {
    fn enter(&mut self, enter: Enter<'_>) -> Mark {
        Mark {
            node: enter.open.len() as u32,
            ..Mark::default()
        }
    }

    fn call(&mut self, call: &Call) {
        (self.each)(PlacedCall {
            thread: self.thread,
            function: call.function,
            depth: call.mark.node,
            entry: Tsc(call.entry),
            ticks: call.inclusive,
            callee_ticks: call.callee_ticks,
            callees: call.callees,
            descendants: call.descendants,
            fused: call.fused,
            tail: call.tail,
        });
    }

    fn fate(&mut self, _: FunctionId, _: Mark, _: u64, fate: Fate) {
        self.balance.add_fate(fate);
    }

    fn orphan(&mut self, _: FunctionId, _: u64, orphan: Orphan) {
        self.balance.add_orphan(orphan);
    }

    fn known(&self, function: FunctionId) -> bool {
        self.index.module(function).is_some()
    }
}
