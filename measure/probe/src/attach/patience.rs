//! Waiting for a thread to stop.
use super::AttachError;
use super::proc;
use super::sys::{self, Waited};
use std::time::{Duration, Instant};

/// A thread that does not stop within this is in uninterruptible sleep; normal stops take
/// microseconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// Polls with yields first (a stop takes microseconds), then with short sleeps.
pub(super) struct Patience {
    started: Instant,
    rounds: u32,
}

impl Patience {
    pub(super) fn new() -> Patience {
        Patience {
            started: Instant::now(),
            rounds: 0,
        }
    }

    /// False when it is over.
    pub(super) fn wait(&mut self) -> bool {
        self.rounds += 1;
        if self.rounds < 200 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.started.elapsed() < PATIENCE
    }
}

/// Waits for one stopped-thread event of a remote call.
pub(super) fn wait_for(pid: i32, tid: i32, wanted: Waited) -> Result<(), AttachError> {
    let mut patience = Patience::new();
    loop {
        match sys::poll(tid).map_err(|source| AttachError::Ptrace {
            pid,
            tid,
            what: "waiting",
            source,
        })? {
            w if w == wanted => return Ok(()),
            Waited::Gone => return Err(AttachError::Exited { pid }),
            Waited::NotYet => {
                if !patience.wait() {
                    return Err(AttachError::DoesNotStop {
                        pid,
                        tid,
                        state: proc::state(pid, tid),
                    });
                }
            }
            // SIGSTOP's group stop, or a stop that was pending: go on towards what is wanted.
            Waited::Stopped | Waited::SystemCall => {
                sys::to_syscall(tid).map_err(|source| AttachError::Ptrace {
                    pid,
                    tid,
                    what: "continuing",
                    source,
                })?;
            }
            // Blocked all signals are, but SIGSTOP cannot be: the group stop follows.
            Waited::Signal(signal) => {
                sys::to_syscall_with(tid, signal).map_err(|source| AttachError::Ptrace {
                    pid,
                    tid,
                    what: "continuing",
                    source,
                })?;
            }
        }
    }
}
