//! Numbered fault points: places where a recorder may be killed, so that tests can kill it at
//! every one, and some where it can be made to fail as no kernel does on demand. Without the
//! environment variables a point costs one comparison. Only in builds with the feature `fault-injection`, which
//! tests have and packages lack: elsewhere nothing reads the variables, and a point is nothing.
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// This build has the fault points.
pub const ENABLED: bool = cfg!(feature = "fault-injection");

pub const SEIZED: u32 = 1;
pub const ALL_STOPPED: u32 = 2;
pub const FRAME_WRITTEN: u32 = 3;
pub const CALL_SET: u32 = 4;
pub const CALL_ENTERED: u32 = 5;
pub const CALL_LEFT: u32 = 6;
pub const CALL_TRAPPED: u32 = 7;
pub const RESTORED_REGISTERS: u32 = 8;
pub const CREATED_ARENA: u32 = 9;
pub const MAPPED_HEADER: u32 = 10;
pub const MAPPED_ARENA: u32 = 11;
pub const CLOSED_MEMFDS: u32 = 12;
pub const PREPARED: u32 = 13;
pub const SET_GS: u32 = 14;
pub const STATE_PATCHED: u32 = 15;
pub const PATCHED: u32 = 16;
pub const RESUMING: u32 = 17;
pub const RESTORING: u32 = 18;
pub const RESTORED: u32 = 19;
pub const CLEARED_GS: u32 = 20;
pub const UNMAPPED: u32 = 21;
pub const RAISED: u32 = 22;
/// Only where probes are switched off and on (`--check-cost`).
pub const SWITCHED_OFF: u32 = 23;
/// Only with counters.
pub const HANDED: u32 = 24;
/// The highest number.
pub const LAST: u32 = HANDED;

/// Nothing is killed here: a write to code through `/proc/PID/mem` fails, as on a kernel that forces
/// none.
pub const FORCED_WRITE: u32 = 100;
/// The recorder cannot restore a target.
pub const RESTORE: u32 = 101;

/// A write to code fails for want of memory.
pub const NO_MEMORY: u32 = 102;

/// The recorder panics, with its targets attached to.
pub const PANIC: u32 = 103;

static WANTED: AtomicU32 = AtomicU32::new(0);
static WANTED_LATER: AtomicU32 = AtomicU32::new(0);
static FAILING: AtomicU32 = AtomicU32::new(0);
static DELAYED: AtomicU32 = AtomicU32::new(0);

/// How long a delayed point takes: far longer than any stop by itself.
pub const DELAY: Duration = Duration::from_millis(300);

/// Arms the points that `HOPSCOPE_FAULT_POINT` (killed there), `HOPSCOPE_FAILURE_POINT` (fails) and
/// `HOPSCOPE_DELAY_POINT` (takes [`DELAY`], each time) name. Only the process under test calls this: its guardian has the same environment and must
/// live.
pub fn arm() {
    if !ENABLED {
        return;
    }
    for (variable, point) in [
        ("HOPSCOPE_FAULT_POINT", &WANTED),
        ("HOPSCOPE_FAILURE_POINT", &FAILING),
        ("HOPSCOPE_DELAY_POINT", &DELAYED),
    ] {
        let wanted = std::env::var(variable).ok().and_then(|v| v.parse().ok());
        point.store(wanted.unwrap_or(0), Ordering::Relaxed);
    }
    if std::env::var_os("HOPSCOPE_FAULT_AFTER_READY").is_some() {
        let wanted = WANTED.swap(0, Ordering::Relaxed);
        WANTED_LATER.store(wanted, Ordering::Relaxed);
    }
}

/// The targets are attached to: points that count from then on (`HOPSCOPE_FAULT_AFTER_READY`) are armed.
pub fn ready() {
    let wanted = WANTED_LATER.swap(0, Ordering::Relaxed);
    if wanted != 0 {
        WANTED.store(wanted, Ordering::Relaxed);
    }
}

/// What is done at this point fails, when it is armed to.
pub fn failure(number: u32) -> io::Result<()> {
    if ENABLED && FAILING.load(Ordering::Relaxed) == number {
        return Err(io::Error::other("the test wants it to fail"));
    }
    Ok(())
}

/// # Panics
/// When this point is armed to fail.
pub fn panic_point(number: u32) {
    assert!(failure(number).is_ok(), "the test wants a panic");
}

/// Kills this process when this point is armed to, or takes long, as if something had kept the
/// recorder waiting.
pub fn point(number: u32) {
    if !ENABLED {
        return;
    }
    if DELAYED.load(Ordering::Relaxed) == number {
        std::thread::sleep(DELAY);
    }
    if WANTED.load(Ordering::Relaxed) == number {
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
    }
}
