//! What can go wrong while a target is instrumented; each names the next step.
use super::build::BuildError;
use super::table::TableError;
use hopscope_process::AttachError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(
        "process {pid} is in a control group that may use {room_kib} KiB more memory, and {needed_kib} KiB of its code would have to become its own; select fewer functions"
    )]
    MemoryLimit {
        pid: i32,
        needed_kib: u64,
        room_kib: u64,
    },
    #[error(transparent)]
    Attach(#[from] AttachError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("process {pid}: {what}: {source}")]
    Io {
        pid: i32,
        what: String,
        source: io::Error,
    },
    #[error("process {pid}: {call} failed: {source}{hint}")]
    Remote {
        pid: i32,
        call: &'static str,
        source: io::Error,
        hint: &'static str,
    },
    #[error(
        "process {pid}: the mapping at {at:#x} is not the memfd created for it: the process replaced it"
    )]
    NotMapped { pid: i32, at: u64 },
    #[error(
        "process {pid} has an arena of hopscope mapped, and does not execute the copies that its table names: it was not attached to, and nothing is changed in it"
    )]
    NotExecuted { pid: i32 },
    #[error(
        "process {pid} is not attached to: the limit of {limit} open files is too low to restore it reliably ({source}); raise it (ulimit -n)"
    )]
    Descriptors {
        pid: i32,
        limit: u64,
        source: io::Error,
    },
    #[error("process {pid} is being recorded by hopscope, pid {recorder}; stop that one first")]
    AlreadyRecorded { pid: i32, recorder: i32 },
    #[error(
        "process {pid} still carries what an earlier recording left; run: hopscope detach -p {pid}"
    )]
    Orphan { pid: i32 },
    #[error("process {pid}: unwinders cannot be given the tables of copies: {why}")]
    Lookup { pid: i32, why: String },
    #[error("process {pid}: rdtsc is disabled (PR_SET_TSC), which probes need")]
    TscOff { pid: i32 },
    #[error("process {pid}, thread {tid}: its gs base is in use ({gs_base:#x}); probes need it")]
    GsInUse { pid: i32, tid: i32, gs_base: u64 },
    #[error(
        "process {pid}, thread {tid}: no thread control block (fs base 0); probes tell threads apart by it"
    )]
    NoThreadPointer { pid: i32, tid: i32 },
    #[error(
        "process {pid}: a breakpoint is set at {at:#x}, by a uprobe of perf or bpftrace or by a debugger; remove it and try again"
    )]
    Breakpoint { pid: i32, at: u64 },
    #[error(
        "process {pid}: code at {at:#x} differs from its file; is a debugger or another tracer attached?"
    )]
    CodeDiffers { pid: i32, at: u64 },
    #[error(
        "process {pid}: the chosen functions are no longer mapped: their module was unloaded during the attach, or the process exited"
    )]
    Gone { pid: i32 },
    #[error(
        "process {pid} keeps {mib} MiB of unused copies of earlier recordings to which something in it may refer, more than {limit_mib} MiB besides those of one recording; run: hopscope detach -p {pid} --search-all"
    )]
    TooMuchLeft { pid: i32, mib: u64, limit_mib: u64 },
}

impl LiveError {
    /// Nothing is wrong with the process, but that what was to be measured does not run there as it was read.
    pub fn is_of_what_was_chosen(&self) -> bool {
        matches!(
            self,
            LiveError::Gone { .. } | LiveError::CodeDiffers { .. } | LiveError::Breakpoint { .. }
        )
    }

    pub fn io(pid: i32, what: impl Into<String>) -> impl FnOnce(io::Error) -> LiveError {
        let what = what.into();
        move |source| LiveError::Io { pid, what, source }
    }
}
