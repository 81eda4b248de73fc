//! Why a process cannot be attached to. Each line says what to do about it.
use super::procfs;
use std::io;

impl AttachError {
    /// Why a process that has a tracer cannot be had.
    pub(super) fn traced_by(pid: i32, tracer: i32) -> AttachError {
        match procfs::is_hopscope(tracer) {
            true => AttachError::AnotherHopscope {
                pid,
                recorder: tracer,
            },
            false => AttachError::AlreadyTraced { pid, tracer },
        }
    }

    /// For `map_err`: what of ptrace(2) failed.
    pub(super) fn ptrace(
        pid: i32,
        tid: i32,
        what: &'static str,
    ) -> impl FnOnce(io::Error) -> AttachError {
        move |source| AttachError::Ptrace {
            pid,
            tid,
            what,
            source,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("no process {0}")]
    NoSuchProcess(i32),
    #[error("process {0} has exited (zombie)")]
    Zombie(i32),
    #[error("process {0} is a kernel thread")]
    KernelThread(i32),
    #[error("process {0} is this hopscope itself")]
    Ourselves(i32),
    #[error(
        "no permission to trace process {pid} (owner uid {uid}): run as root, as that user, or with CAP_SYS_PTRACE; see: hopscope check"
    )]
    NoPermission { pid: i32, uid: u32 },
    #[error(
        "process {pid} is traced already by process {tracer} (gdb, strace …); stop that one first"
    )]
    AlreadyTraced { pid: i32, tracer: i32 },
    #[error(
        "process {pid} is being recorded, or restored, by hopscope, pid {recorder}; stop that one first"
    )]
    AnotherHopscope { pid: i32, recorder: i32 },
    #[error("process {0} runs 32-bit code; hopscope measures x86-64 only")]
    Not64Bit(i32),
    #[error(
        "process {pid} shares its memory with process {other}, which would run unprepared into changed code"
    )]
    SharedMemory { pid: i32, other: i32 },
    #[error("this CPU or kernel has no FSGSBASE, which probes need to identify threads")]
    NoFsgsbase,
    #[error(
        "process {pid}: thread {tid} is under strict seccomp, where it may neither make system calls nor read the time stamp counter, as probes do"
    )]
    SeccompStrict { pid: i32, tid: i32 },
    #[error(
        "process {pid}: thread {tid} turns its system calls into SIGSYS (PR_SET_SYSCALL_USER_DISPATCH), so that none can be made in it"
    )]
    UserDispatch { pid: i32, tid: i32 },
    #[error(
        "process {pid}: its seccomp filter does not allow system call {nr} with the arguments needed"
    )]
    SeccompForbids { pid: i32, nr: i64 },
    #[error(
        "process {pid}: its seccomp filter cannot be read ({source}); reading it needs CAP_SYS_ADMIN"
    )]
    SeccompUnreadable { pid: i32, source: io::Error },
    #[error(
        "process {pid}: thread {tid} does not stop (state {state}; D: uninterruptible, often a vfork in progress; R: it gets no processor); try again"
    )]
    DoesNotStop { pid: i32, tid: i32, state: char },
    #[error(
        "process {pid} is frozen by its control group (cgroup.freeze, freezer.state), so that no system call can be made in it"
    )]
    Frozen { pid: i32 },
    #[error("process {pid} has no thread in which a system call can be made")]
    NoUsableThread { pid: i32 },
    #[error(
        "process {pid}: no {what} instruction sequence is mapped in it, so no system call can be made safely"
    )]
    NoGadget { pid: i32, what: &'static str },
    #[error("process {pid}: no unused stack memory to prepare a system call in")]
    NoScratch { pid: i32 },
    #[error("process {pid} exited while it was being attached to")]
    Exited { pid: i32 },
    #[error("process {pid}: memory access failed: {source}")]
    Memory { pid: i32, source: io::Error },
    #[error("process {pid}, thread {tid}: ptrace {what} failed: {source}")]
    Ptrace {
        pid: i32,
        tid: i32,
        what: &'static str,
        source: io::Error,
    },
    #[error("process {pid}: reading /proc failed: {source}")]
    Proc { pid: i32, source: io::Error },
}
