//! What pairing tells, and to whom.
use crate::balance::{Fate, Orphan};
use crate::counts::{CallCounts, CounterKind};
use crate::mark::Mark;
use crate::measured::Measured;
use crate::stacks::Frame;
use hopscope_event::{FunctionId, Value};

/// A call begins.
#[derive(Debug, Clone, Copy)]
pub struct Enter<'a> {
    pub function: FunctionId,
    pub tsc: u64,
    /// Open calls of this stack, outermost first; the last one is the caller.
    pub open: &'a [Frame],
    /// The call that ended in the very record before, by a jump from the same stack position.
    pub tail_of: Option<Mark>,
    /// The function of that call.
    pub tail_from: Option<FunctionId>,
    /// The callers are not known because records before this one were lost.
    pub after_gap: bool,
}

/// A call whose entry and exit were paired. Times in ticks, as measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub function: FunctionId,
    pub mark: Mark,
    pub entry: u64,
    /// Exit stamp minus entry stamp; negative when the clock ran backwards, then not to be used.
    pub inclusive: i64,
    /// Sum of the inclusive times of the measured calls made by it, and `suspended_ticks`: what is left of
    /// `inclusive` is its own time.
    pub callee_ticks: i64,
    /// For so long at least its stack was left, and others of the thread ran.
    pub suspended_ticks: i64,
    /// Measured calls made by it, and by those in turn.
    pub callees: Measured,
    pub descendants: Measured,
    /// Its entry has the stamp of the exit before it.
    pub fused: bool,
    /// Left by a jump to another function.
    pub tail: bool,
}

/// Receives what the pairing finds. Each entered call gets exactly one `call` or `fate`.
pub trait Sink {
    fn enter(&mut self, enter: Enter<'_>) -> Mark;
    fn call(&mut self, call: &Call);
    fn fate(&mut self, function: FunctionId, mark: Mark, entry: u64, fate: Fate);
    /// An end without an entry.
    fn orphan(&mut self, function: FunctionId, tsc: u64, orphan: Orphan);
    /// What a call counted on the counters that its function has, right before its `call`.
    fn counts(&mut self, _call: &Call, _counts: &CallCounts) {}
    /// The recording has this counter, and the sink wants to know what calls counted on it.
    fn counter(&self, _number: u8) -> Option<CounterKind> {
        None
    }
    /// What an open call captured, before its `call` or `fate`: also that there is no value, and
    /// why. Contents that this version does not know are counted and not passed on.
    fn value(&mut self, _function: FunctionId, _mark: Mark, _entry: u64, _value: &Value) {}
    /// Whether the recording knows this function.
    fn known(&self, function: FunctionId) -> bool;
}

/// What lies between two batches of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gap {
    /// Overwritten before they were read.
    pub lost: u64,
    /// Reserved and never stored, before or among the records that follow.
    pub torn: u64,
    /// Read once, but no longer in the file.
    pub missing: u64,
    /// The batch does not continue where the last one ended.
    pub discontinuous: bool,
    /// Torn slots may lie among the records that follow.
    pub torn_among: bool,
}
