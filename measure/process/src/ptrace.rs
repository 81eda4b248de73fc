//! The ptrace requests that are used, as safe functions on thread ids.
use super::classic_bpf::Instruction;
use super::ended;
use nix::libc::{self, c_void};
use std::io;
use std::mem::offset_of;

pub type Regs = libc::user_regs_struct;

/// `PTRACE_EVENT_STOP` (linux/ptrace.h).
const EVENT_STOP: i32 = 128;
/// linux/ptrace.h
const PTRACE_SECCOMP_GET_FILTER: libc::c_uint = 0x420c;
const PTRACE_GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
const PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG: libc::c_uint = 0x4211;
const NT_X86_XSTATE: usize = 0x202;

fn request(request: libc::c_uint, tid: i32, addr: usize, data: usize) -> io::Result<i64> {
    // SAFETY: every caller passes an address argument that is either a plain number or a pointer
    // to live memory of the size that the request reads or writes.
    let r = unsafe { libc::ptrace(request, tid, addr as *mut c_void, data as *mut c_void) };
    if r == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(r)
    }
}

pub fn seize(tid: i32) -> io::Result<()> {
    request(
        libc::PTRACE_SEIZE,
        tid,
        0,
        libc::PTRACE_O_TRACESYSGOOD as usize,
    )
    .map(drop)
}

/// `PTRACE_O_*` of a stopped thread; those of [`seize`] are replaced.
pub fn set_options(tid: i32, options: i32) -> io::Result<()> {
    request(libc::PTRACE_SETOPTIONS, tid, 0, options as usize).map(drop)
}

pub fn interrupt(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0).map(drop)
}

pub fn cont(tid: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize).map(drop)
}

/// Lets a thread that was asked to stop go on from another stop, with that one's signal or 0, towards the one it was asked
/// for.
///
/// It has to be asked again. Every stop takes a pending interrupt with it, also one that came after the thread had looked
/// for it: for a timer's signal the kernel lets go of its lock in between (`get_signal`, `dequeue_signal`, `ptrace_stop`,
/// kernel/signal.c). The thread would run on, and stop at each of its signals instead. Where these come faster than we
/// pass them on and their handler does not block them, handlers nest, each before its first instruction, until their stack
/// is full.
pub fn cont_to_interrupt(tid: i32, signal: i32) -> io::Result<()> {
    interrupt(tid)?;
    cont(tid, signal)
}

/// One instruction.
pub fn step(tid: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SINGLESTEP, tid, 0, signal as usize).map(drop)
}

pub fn to_syscall(tid: i32) -> io::Result<()> {
    to_syscall_with(tid, 0)
}

pub fn to_syscall_with(tid: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize).map(drop)
}

pub fn detach(tid: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, 0).map(drop)
}

pub fn regs(tid: i32) -> io::Result<Regs> {
    let mut regs = std::mem::MaybeUninit::<Regs>::zeroed();
    request(libc::PTRACE_GETREGS, tid, 0, regs.as_mut_ptr() as usize)?;
    // SAFETY: zeroed, then filled by the kernel; all fields are integers.
    Ok(unsafe { regs.assume_init() })
}

pub fn set_regs(tid: i32, regs: &Regs) -> io::Result<()> {
    request(libc::PTRACE_SETREGS, tid, 0, regs as *const Regs as usize).map(drop)
}

pub fn set_gs_base(tid: i32, value: u64) -> io::Result<()> {
    set_reg(tid, offset_of!(Regs, gs_base), value)
}

pub fn set_rip(tid: i32, value: u64) -> io::Result<()> {
    set_reg(tid, offset_of!(Regs, rip), value)
}

pub fn set_rax(tid: i32, value: u64) -> io::Result<()> {
    set_reg(tid, offset_of!(Regs, rax), value)
}

fn set_reg(tid: i32, at: usize, value: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEUSER, tid, at, value as usize).map(drop)
}

/// Writes a word, also to pages that the target may only read.
pub fn poke(tid: i32, at: u64, word: u64) -> io::Result<()> {
    request(libc::PTRACE_POKEDATA, tid, at as usize, word as usize).map(drop)
}

pub fn signal_mask(tid: i32) -> io::Result<u64> {
    let mut mask = 0u64;
    request(libc::PTRACE_GETSIGMASK, tid, 8, &raw mut mask as usize)?;
    Ok(mask)
}

pub fn set_signal_mask(tid: i32, mask: u64) -> io::Result<()> {
    request(libc::PTRACE_SETSIGMASK, tid, 8, &raw const mask as usize).map(drop)
}

/// The whole extended state in the standard (non-compacted) XSAVE format.
pub fn xstate(tid: i32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; 16 << 10];
    let mut iov = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    request(
        libc::PTRACE_GETREGSET,
        tid,
        NT_X86_XSTATE,
        &raw mut iov as usize,
    )?;
    bytes.truncate(iov.iov_len);
    Ok(bytes)
}

/// Filter number `index` of a stopped thread, newest first; ENOENT behind the last. Needs
/// CAP_SYS_ADMIN.
pub fn seccomp_filter(tid: i32, index: usize) -> io::Result<Vec<Instruction>> {
    let len = request(PTRACE_SECCOMP_GET_FILTER, tid, index, 0)? as usize;
    let mut filter = vec![Instruction::default(); len];
    // A filter cannot change and the thread is stopped: the length still holds.
    request(
        PTRACE_SECCOMP_GET_FILTER,
        tid,
        index,
        filter.as_mut_ptr() as usize,
    )?;
    Ok(filter)
}

/// Address of the thread's `struct rseq`, if it has registered one.
pub fn rseq_area(tid: i32) -> io::Result<Option<u64>> {
    // struct ptrace_rseq_configuration {u64 pointer, u32 size, signature, flags, pad}
    let mut configuration = [0u64; 3];
    let (size, at) = (
        size_of_val(&configuration),
        configuration.as_mut_ptr() as usize,
    );
    request(PTRACE_GET_RSEQ_CONFIGURATION, tid, size, at)?;
    Ok(Some(configuration[0]).filter(|at| *at != 0))
}

/// Whether the thread may have its own system calls turned into SIGSYS (Syscall User Dispatch, prctl(2)): whoever makes
/// one in it cannot know what becomes of it. Before Linux 6.4 this is not to be seen.
pub fn has_user_dispatch(tid: i32) -> io::Result<bool> {
    // struct ptrace_sud_config {u64 mode, selector, offset, len}
    let mut configuration = [0u64; 4];
    let (size, at) = (
        size_of_val(&configuration),
        configuration.as_mut_ptr() as usize,
    );
    match request(PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, tid, size, at) {
        Ok(_) => Ok(configuration[0] != 0),
        Err(e) if matches!(e.raw_os_error(), Some(libc::EIO | libc::EINVAL)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Sleeps until a traced thread may have stopped (SIGCHLD, which must be blocked) or `at_most` is
/// over. Another thread of this process may take the signal, so the time must be short.
pub fn sleep_until_child(at_most: std::time::Duration) {
    let timeout = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(at_most.subsec_nanos()),
    };
    // SAFETY: the set is initialised before it is used, all pointers are to live memory, and a null
    // siginfo is allowed.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const timeout);
    }
}

/// What a thread that was waited for is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    NotYet,
    /// Stopped by our interrupt, or in a job-control stop.
    Stopped,
    SystemCall,
    /// Stopped before this signal is delivered.
    Signal(i32),
    Gone,
}

/// Looks at a traced thread without blocking.
pub fn poll(tid: i32) -> io::Result<Waited> {
    let mut status = 0;
    // SAFETY: `status` is live; waitpid writes one int.
    let r = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
    if r == -1 {
        let e = io::Error::last_os_error();
        return if e.raw_os_error() == Some(libc::ECHILD) {
            Ok(Waited::Gone)
        } else {
            Err(e)
        };
    }
    Ok(if r == 0 {
        Waited::NotYet
    } else if !libc::WIFSTOPPED(status) {
        ended::note(tid, status);
        Waited::Gone
    } else if status >> 16 == EVENT_STOP {
        Waited::Stopped
    } else if libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
        Waited::SystemCall
    } else {
        Waited::Signal(libc::WSTOPSIG(status))
    })
}
