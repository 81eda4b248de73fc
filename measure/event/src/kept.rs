//! Recordings that hold a choice of what happened: what was kept, and why.
use crate::{ClockSync, FunctionId, Ns, ProcessIx, ThreadIx, Tsc};
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

/// Functions were left out so that probes take no more than a part of the targets' time. Written when the recording
/// begins; later ones have nothing but what was left out since.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct BudgetEntry {
    /// As asked for: time of probes, in percent of the time without them.
    pub percent: f64,
    /// How long it took to choose, before the recording.
    pub first_pass_ns: Ns,
    /// What probes took at the end of that; `None`: nothing ran, or the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_pass_percent: Option<f64>,
    /// Functions with probes when the recording began.
    pub measured: u64,
    /// In the order in which it happened.
    pub left_out: alloc::vec::Vec<LeftOutEntry>,
}

/// A function whose probes were taken away, in one process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOutEntry {
    pub function: FunctionId,
    pub process: ProcessIx,
    /// When it was over; later calls are not in the recording. `None`: before it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Tsc>,
    /// Until then.
    pub calls_per_s: u64,
    /// What its probes took then, in percent of the time without any.
    pub percent: f64,
    /// Mean of a call, as read, without the calls in it that were measured; `None`: no call ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ticks: Option<u64>,
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

/// The time span of a flight recorder's file, and what happened to the rest. Written when
/// the file begins and again, with the counts, when it ends; the last one counts.
///
/// The file's `meta` starts and its `summ` ends with this window, so that rates and times are the
/// window's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlightEntry {
    /// As configured: time before and after a trigger, and the memory limit.
    pub before_ns: Ns,
    pub after_ns: Ns,
    pub bytes_max: u64,
    /// When the flight recorder began to record: before, by days perhaps, this file begins.
    pub recording: ClockSync,
    /// All that was recorded from here on …
    pub from: Tsc,
    /// … to here is in the file, but for what it declares as lost.
    pub until: Tsc,
    /// Why the window is shorter than configured before its first trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begins_late: Option<BeginsLate>,
    /// Why the window is shorter than configured after its last trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_early: Option<EndsEarly>,
    /// Triggers that fired in the window, also those that have no entry of their own.
    #[serde(default)]
    pub fired: u64,
    /// Triggers since the recording began that fired in the cool-down after a file: no file has them.
    #[serde(default)]
    pub fired_in_cool_down: u64,
    /// Records since the recording began that are in no window. None of these is *lost*.
    #[serde(default)]
    pub records_left_out: u64,
    /// Of those: what was younger than the window when the memory was full.
    #[serde(default)]
    pub records_left_out_for_room: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeginsLate {
    /// The recording itself began only then.
    RecordingBegan,
    /// The memory held no more.
    MemoryFull,
    /// What lies before is in the previous file.
    PreviousFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndsEarly {
    /// The recording itself ended.
    RecordingEnded,
    /// The file reached its size limit; the next file continues where it ends.
    FileFull,
}
