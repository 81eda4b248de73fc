//! The tables that give records a meaning. In a trace file they are JSON, so that a stranger can
//! read them with nothing but a text viewer.
use crate::{ClockSync, FunctionId, ProbeCost, TscFrequency};
use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessIx(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ThreadIx(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModuleIx(pub u32);

/// Everything known when the recording starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordingMeta {
    pub hopscope_version: String,
    pub command_line: Vec<String>,
    pub host: String,
    pub kernel: String,
    pub cpu: String,
    pub cpus_online: u32,
    pub tsc_frequency: TscFrequency,
    /// False when the kernel does not say `constant_tsc nonstop_tsc`: times are then doubtful.
    pub tsc_invariant: bool,
    pub start: ClockSync,
    /// Bytes per record; see [`crate::record::STRIDE`].
    pub stride: u32,
    /// Records per thread ring.
    pub ring_records: u64,
    pub probe_cost: Option<ProbeCost>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEntry {
    pub ix: ProcessIx,
    pub pid: i32,
    pub comm: String,
    pub command_line: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadEntry {
    pub ix: ThreadIx,
    pub process: ProcessIx,
    /// 0 when the thread was gone before its id could be learnt.
    pub tid: i32,
    pub comm: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleEntry {
    pub ix: ModuleIx,
    pub path: String,
    /// Hex of the GNU build id note; empty when the file has none.
    pub build_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionEntry {
    pub id: FunctionId,
    pub module: ModuleIx,
    /// Demangled.
    pub name: String,
    /// Address in the file (stated virtual memory address), not in a process.
    pub svma: u64,
    pub size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Where in a function a value is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
#[serde(rename_all = "snake_case")]
pub enum CapturePlace {
    /// At the entry: the value's record follows the entry's directly.
    Entry = 0,
    /// Inside the body, where the function itself loads the value: on paths that do not load it
    /// there is none.
    Body = 1,
    /// At a return: the value's record comes directly before the exit's. Tail exits have none.
    Return = 2,
}

/// How a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureMethod {
    /// It is in a register.
    Register,
    /// Right after an instruction of the function that has just read the same memory.
    OwnLoad,
    /// The kernel copies it (`process_vm_readv`) and reports unmapped memory.
    CheckedCopy,
    /// A load that faults where the memory is not there; only when the user trusts the pointers.
    PlainLoad,
    /// A counter is read, without the kernel ([`crate::counter`]).
    Counter,
    /// The address that a call through a pointer leads to, as the call has it ([`crate::callee`]).
    Callee,
}

/// What the value records of one function and capture number mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureEntry {
    pub function: FunctionId,
    /// Number within the function; its highest bits say where ([`crate::value::number`]).
    pub capture: u16,
    /// As the user wrote it, an array without its bounds: `frame->n`, `return`,
    /// `frame->pkts[].seq`.
    pub name: String,
    /// Width of the value; records hold it extended to 64 bits by its sign.
    pub bits: u8,
    pub signed: bool,
    pub at: CapturePlace,
    pub method: CaptureMethod,
    /// Most elements that one call records; 1 for what is no array.
    pub elements_max: u16,
}

/// A function that was selected but not measured, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub module: String,
    pub name: String,
    pub svma: u64,
    pub reason: String,
}

/// All stops of all threads of all targets. Empty in recordings made before they were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stops {
    pub attach: Vec<TargetStops>,
    /// To add what targets loaded, and to take it away again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dlopen: Vec<TargetStops>,
    /// Of forked children, too.
    pub detach: Vec<TargetStops>,
    /// The recorder was refused a real-time priority for the stops (CAP_SYS_NICE): other programs
    /// may have had its processor meanwhile.
    pub real_time_refused: bool,
}

/// How one process was stopped. A stop of a thread lasts from the request to stop until the thread
/// is resumed; system calls that it makes for the recorder meanwhile are part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetStops {
    pub pid: i32,
    /// Threads that were stopped.
    pub threads: u64,
    /// Most stops of one thread.
    pub stops: u64,
    pub longest_ns: u64,
    /// Whose that was.
    pub longest_tid: i32,
    /// Largest sum of all stops of one thread.
    pub sum_ns: u64,
    pub sum_tid: i32,
}

/// Written when the recording ends in order; its absence means the recorder was killed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub end: ClockSync,
    pub ended_because: String,
    pub recorded: u64,
    /// Overwritten in a ring before the recorder came.
    pub lost: u64,
    /// Reserved by a probe and never stored (thread killed inside the probe).
    pub torn: u64,
    pub threads_measured: u64,
    /// Calls made by threads that found no free context. `None` where only a part of the recording
    /// is in the file: of which part they were is not known.
    pub calls_unmeasured: Option<u64>,
    /// Longest stop of any thread, per target, at attach and at detach; more in `stops`.
    pub attach_pause_ns: Vec<u64>,
    pub detach_pause_ns: Vec<u64>,
    #[serde(default)]
    pub stops: Stops,
    /// `None` likewise, and of a generator of packets, which does not measure it.
    pub recorder_cpu_ns: Option<u64>,
    /// Anything the user must know: what was left mapped, what could not be restored.
    pub notes: Vec<String>,
}

impl Summary {
    /// Nothing recorded, and nothing known of calls; the rest is whoever's who recorded it.
    pub fn ended(end: ClockSync, because: impl Into<String>) -> Summary {
        Summary {
            end,
            ended_because: because.into(),
            recorded: 0,
            lost: 0,
            torn: 0,
            threads_measured: 0,
            calls_unmeasured: None,
            attach_pause_ns: Vec::new(),
            detach_pause_ns: Vec::new(),
            stops: Stops::default(),
            recorder_cpu_ns: None,
            notes: Vec::new(),
        }
    }
}
