//! Accounts for everything that could have been a run or a part of one.
use crate::balance::Oddities;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Given out; the sum of the four below.
    pub runs: u64,
    pub complete: u64,
    /// Cut by lost records.
    pub cut: u64,
    /// Left without an exit (longjmp, exception), or gone on unmeasured.
    pub left: u64,
    /// Of these: another thread was on their stack meanwhile.
    pub moved: u64,
    /// Still under way when the recording ended.
    pub open_at_end: u64,

    /// Passes of a polling loop that did nothing but poll; not given out.
    pub idle_passes: u64,
    /// Not given out because they began outside the window.
    pub outside_window: u64,
    /// Given out although one with a later end had been.
    pub out_of_order: u64,
    /// Runs with more calls or values than are kept, and how many were not kept.
    pub overfull: u64,
    pub calls_left_out: u64,
    pub values_left_out: u64,
    /// Calls within runs, and calls that belong to none.
    pub calls: u64,
    pub calls_outside: u64,
    /// Ends of calls that came after their run was given out.
    pub late_ends: u64,
    /// Of all threads; complete when the input has ended.
    pub oddities: Oddities,
}

impl RunCounts {
    /// Runs that are not known whole.
    pub fn incomplete(&self) -> u64 {
        self.cut + self.left + self.open_at_end
    }
}
