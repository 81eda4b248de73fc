//! Where a command is held, and how it gets there.
//!
//! The kernel stops it at exec, and again when a constructor or a wrapper replaces it by another
//! program before its entry point: then all begins again with that one. With a dynamic loader, a breakpoint at the entry point (`AT_ENTRY`)
//! lets that do its work. Without one the entry point is too early: there is no thread control
//! block yet, so the C library's start-up runs until it has stored the thread's id there. Then the
//! entry point's code is replaced by a `pause` that is made again and again.
use super::LaunchError;
use crate::code;
use crate::memory::TargetMemory;
use crate::preflight;
use crate::ptrace::{self, Regs};
use crate::thread_pointer::TID_OFFSETS;
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io;

/// `syscall`, and a jump to it: `rax` is SYS_pause before the first, and again after each restart.
const PAUSE: [u8; 4] = [0x0f, 0x05, 0xeb, 0xfc];
const BREAKPOINT: u8 = 0xcc;
/// linux/auxvec.h: the interpreter's base, and the program's entry point.
const AT_BASE: u64 = 7;
const AT_ENTRY: u64 = 9;
/// asm/prctl.h
const ARCH_SET_FS: u64 = 0x1002;
/// From set_tid_address to the store of what it returned: 1 instruction in glibc 2.36, 2 in musl 1.2.
const STEPS_AT_MOST: u32 = 64;

/// What starts a static program before it has a thread pointer, and changes nothing outside of it.
const START_UP: [i64; 11] = [
    libc::SYS_arch_prctl,
    libc::SYS_brk,
    libc::SYS_getrandom,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_prlimit64,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_set_tid_address,
    libc::SYS_uname,
];

/// What [`super::Held::start`] gives back.
#[derive(Debug)]
pub(super) struct Hold {
    pub at: u64,
    pub original: [u8; PAUSE.len()],
    pub regs: Regs,
}

/// Takes a child that stops at exec to where it is held, and lets go of it.
pub(super) fn hold(pid: i32) -> Result<Hold, LaunchError> {
    // At exec.
    wait(pid, ptrace::cont)?;
    let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACESYSGOOD;
    ptrace::set_options(pid, options).map_err(LaunchError::Hold)?;
    let (at, memory, regs) = loop {
        preflight::check_64_bit(pid)?;
        let auxv = std::fs::read(format!("/proc/{pid}/auxv")).map_err(LaunchError::Hold)?;
        let at = value(&auxv, AT_ENTRY).ok_or_else(|| failed("no AT_ENTRY"))?;
        let memory = TargetMemory::open(pid)?;
        let regs = match value(&auxv, AT_BASE) {
            None | Some(0) => Some(to_thread_pointer(pid, &memory)?),
            Some(_) => to_entry(pid, at, &memory)?,
        };
        if let Some(regs) = regs {
            break (at, memory, regs);
        }
    };
    let mut original = [0; PAUSE.len()];
    memory.read(at, &mut original).map_err(LaunchError::Hold)?;
    code::write(pid, &memory, at, &PAUSE).map_err(LaunchError::Hold)?;
    let held = Regs {
        rip: at,
        rax: libc::SYS_pause as u64,
        orig_rax: u64::MAX,
        ..regs
    };
    ptrace::set_regs(pid, &held).map_err(LaunchError::Hold)?;
    ptrace::detach(pid).map_err(LaunchError::Hold)?;
    Ok(Hold { at, original, regs })
}

fn failed(what: &str) -> LaunchError {
    LaunchError::Hold(io::Error::other(what))
}

fn value(auxv: &[u8], key: u64) -> Option<u64> {
    let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("8 bytes"));
    let mut pairs = auxv.chunks_exact(16);
    let pair = pairs.find(|pair| word(&pair[..8]) == key)?;
    Some(word(&pair[8..]))
}

/// The loader and what it calls run; registers at the entry point. `None`: it is another program now.
fn to_entry(pid: i32, at: u64, memory: &TargetMemory) -> Result<Option<Regs>, LaunchError> {
    let mut first = [0u8];
    memory.read(at, &mut first).map_err(LaunchError::Hold)?;
    code::write(pid, memory, at, &[BREAKPOINT]).map_err(LaunchError::Hold)?;
    let mut signal = 0;
    let regs = loop {
        ptrace::cont(pid, signal).map_err(LaunchError::Hold)?;
        if wait(pid, ptrace::cont)? == Stop::Exec {
            return Ok(None);
        }
        let regs = ptrace::regs(pid).map_err(LaunchError::Hold)?;
        if regs.rip == at + 1 {
            break regs;
        }
        // Its own: a breakpoint of a constructor, or sent to it.
        signal = libc::SIGTRAP;
    };
    code::write(pid, memory, at, &first).map_err(LaunchError::Hold)?;
    Ok(Some(Regs { rip: at, ..regs }))
}

/// The C library's start-up runs until the thread control block says whose it is; registers there.
fn to_thread_pointer(pid: i32, memory: &TargetMemory) -> Result<Regs, LaunchError> {
    let mut has_pointer = false;
    loop {
        let begun = to_syscall(pid)?;
        let nr = begun.orig_rax;
        if !START_UP.contains(&(nr as i64))
            || (nr == libc::SYS_set_tid_address as u64 && !has_pointer)
        {
            return Err(LaunchError::NoThreadPointer { nr });
        }
        let done = to_syscall(pid)?;
        has_pointer |=
            nr == libc::SYS_arch_prctl as u64 && begun.rdi == ARCH_SET_FS && done.rax == 0;
        if nr == libc::SYS_set_tid_address as u64 {
            return to_stored_tid(pid, memory, done);
        }
    }
}

/// A libc that stores it elsewhere, or later, is held where it is: its threads have no names.
fn to_stored_tid(pid: i32, memory: &TargetMemory, returned: Regs) -> Result<Regs, LaunchError> {
    let tid = (returned.rax as u32).to_le_bytes();
    let mut regs = returned;
    for _ in 0..STEPS_AT_MOST {
        let stored = TID_OFFSETS.iter().any(|offset| {
            let mut word = [0u8; 4];
            let at = regs.fs_base.wrapping_add(*offset as u64);
            memory.read(at, &mut word).is_ok() && word == tid
        });
        if stored {
            return Ok(regs);
        }
        advance(pid, ptrace::step)?;
        regs = ptrace::regs(pid).map_err(LaunchError::Hold)?;
    }
    Ok(regs)
}

fn to_syscall(pid: i32) -> Result<Regs, LaunchError> {
    let mut signal = 0;
    loop {
        ptrace::to_syscall_with(pid, signal).map_err(LaunchError::Hold)?;
        match wait(pid, ptrace::to_syscall_with)? {
            Stop::SystemCall => return ptrace::regs(pid).map_err(LaunchError::Hold),
            Stop::Trap => signal = libc::SIGTRAP,
            // Seen before as a call that no start-up makes.
            Stop::Exec => return Err(failed("it became another program meanwhile")),
        }
    }
}

fn advance(pid: i32, go_on: GoOn) -> Result<(), LaunchError> {
    go_on(pid, 0).map_err(LaunchError::Hold)?;
    wait(pid, go_on).map(drop)
}

/// A ptrace request that lets a thread go on, with a signal or 0.
type GoOn = fn(i32, i32) -> io::Result<()>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// SIGTRAP: a breakpoint, ours or not, a single step, or sent by somebody.
    Trap,
    /// On its way into a system call, or out of it.
    SystemCall,
    /// It is another program, before its first instruction.
    Exec,
}

/// Waits for a stop that may be ours; another signal that comes meanwhile is delivered.
fn wait(pid: i32, go_on: GoOn) -> Result<Stop, LaunchError> {
    loop {
        match waitpid(Pid::from_raw(pid), None) {
            Ok(WaitStatus::Stopped(_, Signal::SIGTRAP)) => return Ok(Stop::Trap),
            Ok(WaitStatus::PtraceSyscall(_)) => return Ok(Stop::SystemCall),
            Ok(WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC)) => return Ok(Stop::Exec),
            Ok(WaitStatus::PtraceEvent(..)) => go_on(pid, 0).map_err(LaunchError::Hold)?,
            Ok(WaitStatus::Stopped(_, signal)) => {
                go_on(pid, signal as i32).map_err(LaunchError::Hold)?;
            }
            Ok(WaitStatus::Exited(_, code)) => {
                return Err(LaunchError::Ended(format!("exit code {code}")));
            }
            Ok(WaitStatus::Signaled(_, signal, _)) => {
                return Err(LaunchError::Ended(signal.to_string()));
            }
            Ok(other) => return Err(LaunchError::Ended(format!("{other:?}"))),
            Err(e) => return Err(LaunchError::Hold(e.into())),
        }
    }
}
