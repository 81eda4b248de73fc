//! Waiting for a thread to stop.
use super::AttachError;
use super::procfs;
use super::ptrace::{self, Waited};
use std::time::{Duration, Instant};

/// A thread that does not stop within this is in uninterruptible sleep; normal stops take
/// microseconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// A thread that is ready to run gets a processor some time, while nobody else is stopped for its sake: of low priority
/// beside others it may wait for many seconds.
const PATIENCE_WHILE_OTHERS_RUN: Duration = Duration::from_secs(60);

/// Longer than a thread waits for a processor that some others of its priority want, too.
const STARVED: Duration = Duration::from_millis(50);

/// Whoever waits for a command to end wonders by then.
const NOTICED: Duration = Duration::from_secs(1);

const LONG: Duration = Duration::from_millis(10);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(5);

/// Looked at this often before sleeping: a thread on another processor stops within microseconds.
const ROUNDS_AWAKE: u32 = 20;
/// Slept at most, should the signal that wakes us go to another thread.
const SLEEP: Duration = Duration::from_micros(200);

/// While more threads than this are waited for, not each that stops wakes us: that would keep the
/// others from stopping.
const THREADS_HEARD: usize = 4;
const SLEEP_BETWEEN_MANY: Duration = Duration::from_micros(50);

/// What threads do that are not waited for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Others {
    Run,
    Stopped,
}

/// Polls for some microseconds, then sleeps until a thread has stopped. It never yields: at a
/// real-time priority that would keep the processor from a thread that waits for it.
pub(super) struct StopTimeout {
    started: Instant,
    rounds: u32,
}

impl StopTimeout {
    pub(super) fn new() -> StopTimeout {
        StopTimeout {
            started: Instant::now(),
            rounds: 0,
        }
    }

    /// As long between two attempts as nobody is stopped; false when it is over.
    pub(super) fn wait_running(&mut self) -> bool {
        std::thread::sleep(BETWEEN_ATTEMPTS);
        self.started.elapsed() < PATIENCE
    }

    /// Longer than stops take, even of threads that wait for a processor.
    pub(super) fn is_long(&self) -> bool {
        self.started.elapsed() > LONG
    }

    /// Whether a thread that is ready to run is waited for too long.
    pub(super) fn is_starved(&self, others: Others) -> bool {
        self.started.elapsed()
            > match others {
                Others::Run => PATIENCE_WHILE_OTHERS_RUN,
                Others::Stopped => STARVED,
            }
    }

    /// It is to be said what is waited for.
    pub(super) fn is_noticed(&self) -> bool {
        self.started.elapsed() > NOTICED
    }

    /// For one of so many threads; false when it is over.
    pub(super) fn wait(&mut self, threads: usize) -> bool {
        self.rounds += 1;
        if threads > THREADS_HEARD {
            std::thread::sleep(SLEEP_BETWEEN_MANY);
        } else if self.rounds > ROUNDS_AWAKE {
            ptrace::sleep_until_child(SLEEP);
        }
        self.started.elapsed() < PATIENCE
    }
}

/// Waits for whatever comes next of a thread.
pub(super) fn wait_for_any(pid: i32, tid: i32) -> Result<Waited, AttachError> {
    next_event(pid, tid, &mut StopTimeout::new())
}

fn next_event(pid: i32, tid: i32, timeout: &mut StopTimeout) -> Result<Waited, AttachError> {
    loop {
        match ptrace::poll(tid).map_err(AttachError::ptrace(pid, tid, "waiting"))? {
            Waited::Gone => return Err(AttachError::Exited { pid }),
            Waited::NotYet if timeout.wait(1) => {}
            Waited::NotYet => {
                return Err(AttachError::DoesNotStop {
                    pid,
                    tid,
                    state: procfs::state(pid, tid),
                });
            }
            event => return Ok(event),
        }
    }
}

/// Waits for one stopped-thread event of a remote call.
pub(super) fn wait_for(pid: i32, tid: i32, wanted: Waited) -> Result<(), AttachError> {
    let mut timeout = StopTimeout::new();
    loop {
        let resumed = match next_event(pid, tid, &mut timeout)? {
            event if event == wanted => return Ok(()),
            // Blocked all signals are, but SIGSTOP cannot be: the group stop follows.
            Waited::Signal(signal) => ptrace::to_syscall_with(tid, signal),
            // SIGSTOP's group stop, or a stop that was pending: go on towards what is wanted.
            _ => ptrace::to_syscall(tid),
        };
        resumed.map_err(AttachError::ptrace(pid, tid, "continuing"))?;
    }
}
