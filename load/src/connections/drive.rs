//! Runs the threads of a test, and says each second how it goes.
use super::{LoadError, Tally};
use crate::interval::Interval;
use crate::kernel_counters::KernelCounters;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// When a run ends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Of the measured part, without the warm-up.
    pub duration: Option<Duration>,
    /// Requests of the measured part.
    pub count: Option<u64>,
    pub warmup: Duration,
}

/// What a run gave.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// Requests whose intended time lies after the warm-up.
    pub run: Tally,
    pub warmup: Tally,
    /// From the end of the warm-up until the last answer, or until nothing more was asked.
    pub elapsed: Duration,
    /// What the kernel of this side counted meanwhile; `None` where it cannot be read.
    pub kernel: Option<KernelCounters>,
}

#[derive(Debug, Default)]
pub(super) struct Phases {
    warmup: Tally,
    run: Tally,
    asked_until_ns: u64,
}

/// What a thread of a test knows.
pub(super) struct Worker<'a> {
    start: Instant,
    warmup_ns: u64,
    end_ns: u64,
    stop: &'a AtomicBool,
    phases: &'a Mutex<Phases>,
    /// Requests of the measured part that this thread may ask.
    pub(super) count: u64,
}

impl Worker<'_> {
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Whether no request that is due at this time may be asked.
    pub(super) fn is_over(&self, at_ns: u64) -> bool {
        at_ns >= self.end_ns || self.stop.load(Ordering::Relaxed)
    }

    /// Whether a request that is due at this time is measured.
    pub(super) fn is_measured(&self, due_ns: u64) -> bool {
        due_ns >= self.warmup_ns
    }

    /// Counts for a request that is due at `due_ns`. The lock is this thread's but once a second.
    #[inline]
    pub(super) fn count(&self, due_ns: u64, add: impl FnOnce(&mut Tally)) {
        let mut phases = lock(self.phases);
        if self.is_measured(due_ns) {
            add(&mut phases.run)
        } else {
            add(&mut phases.warmup)
        }
    }

    /// Nothing more will be asked from now on.
    pub(super) fn asked_all(&self, now_ns: u64) {
        lock(self.phases).asked_until_ns = now_ns;
    }
}

fn lock(phases: &Mutex<Phases>) -> MutexGuard<'_, Phases> {
    // A thread that panicked ends the run below; its figures are as good as they were.
    phases
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

type Task<'a> = Box<dyn FnOnce(&Worker<'_>) -> Result<(), LoadError> + Send + 'a>;

/// Runs the tasks, a thread each, from one common start.
pub(super) fn drive(
    limits: &Limits,
    stop: &AtomicBool,
    tasks: Vec<Task<'_>>,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    let before = KernelCounters::now().ok();
    let phases: Vec<Mutex<Phases>> = tasks.iter().map(|_| Mutex::default()).collect();
    let warmup_ns = limits.warmup.as_nanos() as u64;
    let end_ns = limits
        .duration
        .map_or(u64::MAX, |d| warmup_ns + d.as_nanos() as u64);
    let threads = tasks.len() as u64;
    let mut seconds = Seconds::default();
    let start = Instant::now();
    let failed = std::thread::scope(|scope| {
        let (ended, end_of) = channel();
        for (number, task) in tasks.into_iter().enumerate() {
            let spare = limits.count.unwrap_or(u64::MAX) % threads > number as u64;
            let worker = Worker {
                start,
                warmup_ns,
                end_ns,
                stop,
                phases: &phases[number],
                count: limits
                    .count
                    .map_or(u64::MAX, |c| c / threads + u64::from(spare)),
            };
            let ended = ended.clone();
            let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                // The receiver outlives all threads.
                let _ = ended.send(task(&worker));
            });
            if let Err(error) = spawned {
                stop.store(true, Ordering::Relaxed);
                return Some(LoadError::Thread(error));
            }
        }
        drop(ended);
        let mut failed = None;
        let mut next = start + Duration::from_secs(1);
        loop {
            match end_of.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.get_or_insert(error);
                }
                Err(RecvTimeoutError::Timeout) => {
                    seconds.line(&phases, start.elapsed(), limits.warmup, each_second);
                    next += Duration::from_secs(1);
                }
                Err(RecvTimeoutError::Disconnected) => return failed,
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    seconds.line(&phases, start.elapsed(), limits.warmup, each_second);
    let until = seconds.asked_until_ns.max(seconds.run.last_done_ns);
    Ok(RunResult {
        run: seconds.run,
        warmup: seconds.warmup,
        elapsed: Duration::from_nanos(until.saturating_sub(warmup_ns)),
        kernel: KernelCounters::now()
            .ok()
            .zip(before)
            .map(|(now, then)| now.since(&then)),
    })
}

/// The sums so far.
#[derive(Default)]
struct Seconds {
    run: Tally,
    warmup: Tally,
    asked_until_ns: u64,
    last_line: Duration,
}

impl Seconds {
    /// Takes what the threads counted since the last line.
    fn line(
        &mut self,
        phases: &[Mutex<Phases>],
        now: Duration,
        warmup: Duration,
        each_second: &mut dyn FnMut(&Interval),
    ) {
        let mut both = Tally::default();
        for phases in phases {
            let taken = std::mem::take(&mut *lock(phases));
            both.merge(&taken.run);
            both.merge(&taken.warmup);
            self.run.merge(&taken.run);
            self.warmup.merge(&taken.warmup);
            self.asked_until_ns = self.asked_until_ns.max(taken.asked_until_ns);
        }
        let length = now - self.last_line;
        let anything = both.asked + both.done + both.failures.total() + both.corrupt;
        if length >= Duration::from_millis(900) || anything > 0 {
            each_second(&Interval {
                start: self.last_line,
                length,
                warmup: now <= warmup,
                asked: both.asked,
                done: both.done,
                failed: both.failures.total() + both.corrupt,
                behind: both.behind,
                latency: both.latency,
            });
        }
        self.last_line = now;
    }
}
