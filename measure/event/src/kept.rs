//! Recordings that hold a choice of what happened: what was kept, and why.
use crate::{FunctionId, ThreadIx, Tsc};
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// Only whole runs were kept, and only each Nth of a thread. Written when the recording begins and
/// again, with the counts, when it ends; the last one counts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThinEntry {
    /// A run is a call of one of these that was not made from within another one.
    pub roots: alloc::vec::Vec<FunctionId>,
    pub every: u64,
    #[serde(default)]
    pub runs_seen: u64,
    #[serde(default)]
    pub runs_kept: u64,
    /// Runs that were to be kept and could not be: records of theirs were lost, they were longer
    /// than the recorder holds, or open at the end.
    #[serde(default)]
    pub runs_cut: u64,
    /// Records of other runs and of calls outside of runs.
    #[serde(default)]
    pub records_left_out: u64,
}

/// Why a flight recorder saved this file; one entry each time a trigger fired within it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriggerEntry {
    /// As the user wrote it: `acl_in > 50us`, `SIGUSR1`.
    pub trigger: String,
    /// When it fired: the end of the call that was too long, or when the signal was seen.
    pub at: Tsc,
    /// The call, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadIx>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionId>,
    /// What it took as measured, in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ticks: Option<u64>,
}
