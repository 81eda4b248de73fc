//! A connection for each request: netperf's TCP_CRR, and many clients released together.
use super::drive::{RunResult, Worker, drive};
use super::due::Due;
use super::pattern::Pattern;
use super::{LoadError, LoadPlan, Pace, limits, socket};
use crate::interval::Interval;
use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

mod slot;
mod turn;

/// Connect, request, answer, close, at intended times; at most `plan.connections` at a time.
///
/// # Errors
/// What keeps the run from beginning. What fails later is counted.
pub fn crr(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    let pattern = &prepare(plan)?;
    let threads = plan.threads.min(plan.connections);
    let tasks = (0..threads).map(|thread| {
        let slots = plan.connections / threads;
        let slots = slots + usize::from(plan.connections % threads > thread);
        Box::new(move |worker: &Worker<'_>| {
            let mut begin = Paced {
                due: Due::new(plan, worker, thread, slots)?,
                closed: plan.pace == Pace::Closed,
                queue: VecDeque::new(),
            };
            turn::run(plan, pattern, worker, slots, thread, &mut begin)
        }) as _
    });
    drive(&plan.limits, stop, tasks.collect(), each_second)
}

/// `plan.connections` clients that connect, send and read the answer at the same moment, and again
/// when the last of them is done, until a limit. The sockets are made beforehand: what is released
/// together is `connect`. One thread, whatever the plan says, and latency counts from the release.
///
/// # Errors
/// What keeps the run from beginning. What fails later is counted.
pub fn echo(
    plan: &LoadPlan,
    stop: &AtomicBool,
    each_second: &mut dyn FnMut(&Interval),
) -> Result<RunResult, LoadError> {
    let pattern = &prepare(plan)?;
    let task = Box::new(move |worker: &Worker<'_>| {
        let mut begin = Together { left: worker.count };
        turn::run(plan, pattern, worker, plan.connections, 0, &mut begin)
    });
    drive(&plan.limits, stop, vec![task as _], each_second)
}

fn prepare(plan: &LoadPlan) -> Result<Pattern, LoadError> {
    plan.check()?;
    limits::ports_for(plan.connections, plan.sources.len())?;
    socket::check_sources(plan)?;
    // A server that is not there is said before the run, not counted in it.
    drop(socket::must_open(plan, 0)?);
    Ok(Pattern::new(plan.seed, plan.request))
}

/// What decides when slots begin.
trait Begin {
    /// Begins what is due in slots that are free.
    fn begin(&mut self, turn: &mut turn::Turn<'_>, now_ns: u64) -> Result<(), LoadError>;
    /// When to look again at the latest; `None` where only answers matter.
    fn next_ns(&self) -> Option<u64>;
    /// Nothing more will be asked.
    fn ended(&self, worker: &Worker<'_>, now_ns: u64) -> bool;
    /// An intended time waits for a slot.
    fn has_waiting(&self) -> bool;
    /// Takes the intended times that still wait for a slot.
    fn drain(&mut self) -> VecDeque<u64>;
}

struct Paced {
    due: Due,
    closed: bool,
    queue: VecDeque<u64>,
}

impl Begin for Paced {
    fn begin(&mut self, turn: &mut turn::Turn<'_>, now_ns: u64) -> Result<(), LoadError> {
        let worker = turn.worker;
        while (!self.closed || turn.has_free())
            && let Some(due_ns) = self.due.take(worker, now_ns)
        {
            worker.count(due_ns, |tally| tally.asked += 1);
            if self.closed {
                turn.start(due_ns, None)?
            } else {
                self.queue.push_back(due_ns)
            }
        }
        while turn.has_free()
            && let Some(due_ns) = self.queue.pop_front()
        {
            turn.start(due_ns, None)?;
        }
        Ok(())
    }

    fn next_ns(&self) -> Option<u64> {
        self.due.next_ns()
    }

    fn ended(&self, worker: &Worker<'_>, now_ns: u64) -> bool {
        self.due.ended(worker, now_ns)
    }

    fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    fn drain(&mut self) -> VecDeque<u64> {
        std::mem::take(&mut self.queue)
    }
}

struct Together {
    left: u64,
}

impl Begin for Together {
    fn begin(&mut self, turn: &mut turn::Turn<'_>, _: u64) -> Result<(), LoadError> {
        if !turn.all_free() || self.left == 0 {
            return Ok(());
        }
        let clients = turn
            .slots()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let sockets = turn.prepare(clients)?;
        let release_ns = turn.worker.now_ns();
        if turn.worker.is_over(release_ns) {
            return Ok(());
        }
        if turn.worker.is_measured(release_ns) {
            self.left -= clients as u64;
        }
        let asked = clients as u64;
        turn.worker.count(release_ns, |tally| tally.asked += asked);
        for stream in sockets {
            turn.start(release_ns, Some(stream))?;
        }
        Ok(())
    }

    fn next_ns(&self) -> Option<u64> {
        None
    }

    fn ended(&self, worker: &Worker<'_>, now_ns: u64) -> bool {
        worker.is_over(now_ns) || self.left == 0
    }

    fn has_waiting(&self) -> bool {
        false
    }

    fn drain(&mut self) -> VecDeque<u64> {
        VecDeque::new()
    }
}
