//! Starting a command and holding it before its first instruction, with its libraries loaded.
//!
//! The kernel stops the process at exec; a breakpoint at its entry point (`AT_ENTRY`) lets the
//! dynamic loader do its work; there the entry becomes a jump to itself, and the process is let
//! go: it spins, untraced, until [`Held::start`] puts the two bytes back.
use super::AttachError;
use super::memory::TargetMemory;
use super::stop::stop_all;
use super::sys;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// `jmp` to itself.
const SPIN: [u8; 2] = [0xeb, 0xfe];
const AT_ENTRY: u64 = 9;

/// A started command that has not run yet. Dropped, it is killed: it must not run unmeasured.
#[derive(Debug)]
pub struct Held {
    child: Option<Child>,
    entry: u64,
    original: [u8; 2],
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{command}: {source}")]
    Start { command: String, source: io::Error },
    #[error("the command ended before it reached its entry point ({0})")]
    Ended(String),
    #[error("holding the command at its entry point: {0}")]
    Hold(io::Error),
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// Starts `command` (program and arguments) and holds it.
pub fn launch(command: &[String]) -> Result<Held, LaunchError> {
    let mut builder = Command::new(&command[0]);
    builder.args(&command[1..]);
    // SAFETY: runs in the forked child before exec; ptrace(PTRACE_TRACEME) is a bare system call,
    // it neither allocates nor takes a lock.
    unsafe {
        builder.pre_exec(|| nix::sys::ptrace::traceme().map_err(io::Error::from));
    }
    let started = builder.spawn();
    let child = started.map_err(|source| LaunchError::Start {
        command: command[0].clone(),
        source,
    })?;
    let pid = child.id() as i32;
    let mut held = Held {
        child: Some(child),
        entry: 0,
        original: SPIN,
    };
    held.entry = hold(pid, &mut held.original)?;
    Ok(held)
}

fn hold(pid: i32, original: &mut [u8; 2]) -> Result<u64, LaunchError> {
    stopped(pid)?;
    let auxv = std::fs::read(format!("/proc/{pid}/auxv")).map_err(LaunchError::Hold)?;
    let word = |b: &[u8]| u64::from_le_bytes(b.try_into().expect("8 bytes"));
    let entry = auxv
        .chunks_exact(16)
        .find(|pair| word(&pair[..8]) == AT_ENTRY)
        .map(|pair| word(&pair[8..]))
        .ok_or_else(|| LaunchError::Hold(io::Error::other("no AT_ENTRY")))?;
    let memory = TargetMemory::open(pid)?;
    memory.read(entry, original).map_err(LaunchError::Hold)?;
    memory.write(entry, &[0xcc]).map_err(LaunchError::Hold)?;
    sys::cont(pid, 0).map_err(LaunchError::Hold)?;
    stopped(pid)?;
    memory.write(entry, &SPIN).map_err(LaunchError::Hold)?;
    sys::set_rip(pid, entry).map_err(LaunchError::Hold)?;
    sys::detach(pid).map_err(LaunchError::Hold)?;
    Ok(entry)
}

fn stopped(pid: i32) -> Result<(), LaunchError> {
    match waitpid(Pid::from_raw(pid), None) {
        Ok(WaitStatus::Stopped(..) | WaitStatus::PtraceEvent(..)) => Ok(()),
        Ok(other) => Err(LaunchError::Ended(format!("{other:?}"))),
        Err(e) => Err(LaunchError::Hold(e.into())),
    }
}

impl Held {
    pub fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |c| c.id() as i32)
    }

    /// Lets the command run.
    pub fn start(mut self) -> Result<Child, LaunchError> {
        let pid = self.pid();
        let memory = TargetMemory::open(pid)?;
        let stopped = stop_all(pid)?;
        let written = memory.write(self.entry, &self.original);
        stopped.resume()?;
        written.map_err(LaunchError::Hold)?;
        Ok(self.child.take().expect("taken only here"))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
