//! What a measured call costs, in TSC ticks: what reports take out of the times.
use serde::{Deserialize, Serialize};

/// What a probe pair costs on this machine, measured at the start of the recording on a program of
/// the recorder's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCost {
    /// What an empty body reads between its own entry and exit stamp (lowest, median, highest).
    pub bias_ticks: [u64; 3],
    /// What one measured call adds to whoever calls it (lowest, median, highest).
    pub pair_ticks: [u64; 3],
    /// `None`: not measured. In place a call may then cost anything up to the time that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bound: Option<MemoryBoundCost>,
}

/// The same where the stamps end the overlap of cache misses: each `rdtsc` waits for those before
/// it, and those behind it wait for `rdtsc`. Highest tenth of a loop in which each call misses once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBoundCost {
    pub bias_ticks: u64,
    pub pair_ticks: u64,
}

impl ProbeCost {
    /// Measured in a loop of calls only.
    pub const fn in_a_loop(bias_ticks: [u64; 3], pair_ticks: [u64; 3]) -> ProbeCost {
        ProbeCost {
            bias_ticks,
            pair_ticks,
            memory_bound: None,
        }
    }
}
