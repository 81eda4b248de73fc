//! When a measured thread was off CPU: the scheduler's context switches, on the clock of the probes.
use crate::Tsc;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// In [out, back) the thread had no processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct OffCpu {
    pub out: Tsc,
    pub back: Tsc,
    /// It still wanted to run when it was taken off (another task was put in its place, or it
    /// called `sched_yield`). Otherwise it went to sleep by itself (a lock, a read, a timer), and `back` is when it
    /// ran again: the wait for a processor after its wake-up, which is not recorded, is in the interval.
    pub preempted: bool,
}

impl OffCpu {
    /// 0 where the clock conversion put the return before the leaving.
    pub const fn ticks(&self) -> u64 {
        self.back.0.saturating_sub(self.out.0)
    }
}

/// Whether context switches were recorded, and how well. Written when the recording begins and
/// again, with the counts, when it ends; the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OffCpuEntry {
    /// Why they were not recorded; `None` when they were.
    pub why_not: Option<String>,
    /// How far a switch may be off on the clock of the records, at most: half the widest window in
    /// which the two clocks were read, and what interpolating between the readings was found to
    /// miss. In ns.
    #[serde(default)]
    pub clock_error_ns: u64,
    /// Intervals that were recorded, of all threads.
    #[serde(default)]
    pub intervals: u64,
    /// Switches that the kernel had no room for.
    #[serde(default)]
    pub lost: u64,
    /// Returns whose leaving was not seen, and leavings without a return, not explained by `lost`.
    #[serde(default)]
    pub unpaired: u64,
}
