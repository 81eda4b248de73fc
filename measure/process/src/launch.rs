//! Starting a command and holding it before its first instruction, with its libraries loaded.
//!
//! It sleeps in `pause`, untraced, until [`Held::start`] gives it back its registers and its code.
use super::AttachError;
use super::memory::TargetMemory;
use super::ptrace;
use super::stop::stop_all;
use hold::Hold;
use nix::libc;
use nix::sys::signal::{SigHandler, Signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

mod hold;
mod launched;

pub use launched::Launched;

const PR_SET_PDEATHSIG: u64 = libc::PR_SET_PDEATHSIG as u64;

/// A started command that has not run yet. Dropped, it is killed: it must not run unmeasured. So it
/// is when we are killed meanwhile: nobody else could let it run.
#[derive(Debug)]
pub struct Held {
    child: Option<Child>,
    hold: Option<Hold>,
}

#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("{command}: {source}")]
    Start { command: String, source: io::Error },
    #[error("the command ended before it reached its entry point ({0})")]
    Ended(String),
    #[error("{0} is not a 64-bit x86 program; hopscope measures x86-64 only")]
    Not64Bit(String),
    #[error("holding the command at its entry point: {0}")]
    Hold(io::Error),
    #[error(
        "the command is linked statically and makes system call {nr} before it has a thread control block, which probes need to identify threads; start it separately and use -p"
    )]
    NoThreadPointer { nr: u64 },
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// glibc ignores its own two signals (SIGCANCEL, SIGSETXID) in what it spawns, this process among them, and refuses to
/// change them back (posix/spawni.c).
const SIGNALS_OF_GLIBC: [i64; 2] = [32, 33];

/// As any program begins: by the kernel's own call.
fn default_signals_of_glibc() -> io::Result<()> {
    // `struct kernel_sigaction`: handler (SIG_DFL), flags, restorer and mask are zero.
    let default = [0u64; 4];
    for signal in SIGNALS_OF_GLIBC {
        // SAFETY: the structure is live and as long as the kernel reads; the old one is not asked for.
        let set = unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                0usize,
                size_of::<u64>(),
            )
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Starts `command` (program and arguments) and holds it. Its environment is ours; it begins with the signals in
/// `ignored` ignored.
pub fn launch(command: &[String], ignored: &[i32]) -> Result<Held, LaunchError> {
    let mut builder = Command::new(&command[0]);
    // Any change of the environment by `Command` would sort it.
    builder.args(&command[1..]);
    let recorder = nix::unistd::getpid();
    let ignored = ignored.to_vec();
    let to_be_held = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        if nix::unistd::getppid() != recorder {
            // Killed before that call, which tells only of what comes.
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        default_signals_of_glibc()?;
        for &signal in &ignored {
            let signal = Signal::try_from(signal)?;
            // SAFETY: no handler of this program is named, and what is replaced is not used again.
            unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) }?;
        }
        nix::sys::ptrace::traceme().map_err(io::Error::from)
    };
    // SAFETY: runs in the forked child before exec; these are bare system calls, they neither
    // allocate nor take a lock.
    unsafe {
        builder.pre_exec(to_be_held);
    }
    let started = builder.spawn();
    let child = started.map_err(|source| LaunchError::Start {
        command: command[0].clone(),
        source,
    })?;
    let pid = child.id() as i32;
    let mut held = Held {
        child: Some(child),
        hold: None,
    };
    let hold = hold::hold(pid).map_err(|e| match e {
        LaunchError::Attach(AttachError::Not64Bit(_)) => LaunchError::Not64Bit(command[0].clone()),
        other => other,
    });
    held.hold = Some(hold?);
    Ok(held)
}

impl Held {
    pub fn pid(&self) -> i32 {
        self.child.as_ref().map_or(0, |c| c.id() as i32)
    }

    /// Lets the command run.
    pub fn start(mut self) -> Result<Launched, LaunchError> {
        let pid = self.pid();
        if let Some(hold) = &self.hold {
            let memory = TargetMemory::open(pid)?;
            let mut stopped = stop_all(pid)?;
            // The probes' base is in gs now.
            let gs_base = stopped.regs(pid).gs_base;
            // Between the call that lets it outlive us and its first instruction, tracing ends it.
            stopped.end_with_us().map_err(LaunchError::Hold)?;
            stopped.remote_call(libc::SYS_prctl, [PR_SET_PDEATHSIG, 0, 0, 0, 0, 0])?;
            let released = stopped.write_code(&memory, hold.at, &hold.original);
            let released = released.and_then(|()| {
                let regs = ptrace::Regs {
                    gs_base,
                    // No system call is in progress: `pause` is not restarted.
                    orig_rax: u64::MAX,
                    ..hold.regs
                };
                stopped.set_regs(pid, regs)
            });
            stopped.resume()?;
            released.map_err(LaunchError::Hold)?;
        }
        let child = self.child.take().expect("taken only here");
        Ok(Launched::new(child))
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
