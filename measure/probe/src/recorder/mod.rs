//! The recorder: drains the rings of all targets into one sink (a trace file, or a live view of them
//! live) until told to stop, then detaches. It never makes a target wait.
pub mod alternate;
pub mod budget;
pub mod callees;
mod children;
pub mod flight;
pub mod following;
pub mod governor;
mod looking;
mod measured;
mod numbers;
pub mod off_cpu;
mod outcome;
pub mod overhead;
mod owner;
mod pace;
pub mod rows;
pub mod salvage;
mod sink;
mod tally;
pub mod thin;
pub mod trigger;

pub use measured::{RingCounts, Target};
pub use numbers::Numbers;
pub use outcome::{Ended, RecorderResult};
pub use sink::Sink;

use crate::counters::read_tsc;
use crate::live::remove::Detached;
use alternate::Alternation;
use budget::{Budget, Keeper};
use following::Following;
use governor::{Beats, Governor};
use hopscope_event::ring::Visit;
use hopscope_event::{
    ClockSync, LeftOutEntry, OffCpuEntry, ProbeCost, Record, ThreadIx, TscFrequency,
};
use hopscope_process::stop_times;
use hopscope_trace::TraceError;
use off_cpu::OffCpuRecorder;
use std::time::{Duration, Instant};

/// When to stop without being told.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub duration: Option<Duration>,
    pub calls: Option<u64>,
    pub max_overhead_percent: f64,
}

/// Printed once a second.
#[derive(Debug, Clone, Copy)]
pub struct Status {
    pub elapsed: Duration,
    pub records_per_s: f64,
    pub lost: u64,
    pub calls_unmeasured: u64,
    pub slowdown_percent: Option<f64>,
}

pub struct Recorder<'a, S: Sink> {
    /// Adds what the targets load. It ends before them, whatever happens.
    pub following: Option<Following>,
    pub targets: Vec<Target>,
    pub writer: &'a mut S,
    pub limits: Limits,
    pub governor: Governor,
    pub frequency: TscFrequency,
    pub cost: Option<ProbeCost>,
    pub numbers: Numbers,
    /// `None`: context switches are not recorded.
    pub off_cpu: Option<OffCpuRecorder>,
    /// Leave functions out whose probes take more; the targets are tallied.
    pub budget: Option<Budget>,
    /// Measure at the end what a call costs in place; the targets were attached to with switches.
    pub alternation: Option<Alternation>,
    /// Reads the clocks (time is an argument).
    pub clock: &'a dyn Fn() -> ClockSync,
}

/// A pair costs at least two time stamps; used when nothing was measured.
const PAIR_TICKS_GUESS: u64 = 60;

impl<S: Sink> Recorder<'_, S> {
    /// Records until `stop` is set or a limit is reached, then detaches from every target.
    pub fn run(
        mut self,
        stop: &dyn Fn() -> bool,
        status: &mut dyn FnMut(Status),
    ) -> RecorderResult {
        let mut left_out = Vec::new();
        let mut ended = self.record(stop, status, &mut left_out);
        let mut outcome = RecorderResult {
            ended: Ended::Asked,
            counts: RingCounts::default(),
            threads: 0,
            calls_unmeasured: 0,
            detach_pauses: Vec::new(),
            dlopen_stops: Vec::new(),
            detach_stops: Vec::new(),
            not_restored: Vec::new(),
            not_unmapped: Vec::new(),
            off_cpu: None,
            until: None,
            alternated: None,
            left_out,
            functions_not_switched: 0,
            notes: Vec::new(),
            plan: None,
        };
        let following = self.following.take();
        if let Some(following) = &following {
            following.end();
            self.targets.iter_mut().for_each(Target::take_additions);
        }
        let mut buffer = Vec::new();
        let mut switches = None;
        let alternation = self.alternation.filter(|_| ended.is_in_order());
        if let Some(plan) = alternation {
            outcome.calls_unmeasured = unmeasured(&self.targets);
            let without = self.targets.iter().filter_map(Target::without_ring);
            outcome.notes.extend(without);
            if let Err(e) = self.last_before_switching(&mut buffer) {
                ended = Ended::WriteFailed(e.to_string());
            }
            outcome.until = Some((self.clock)());
            switches = Some(self.last_switches());
            // Who ended the recording by a signal has asked for this.
            let asked = ended == Ended::Asked;
            let stop = || !asked && stop();
            let done = alternate::run(&mut self.targets, plan, self.frequency, &stop);
            if let Some(who) = &done.may_unwind {
                ended = Ended::MayUnwind(who.clone());
            }
            outcome.alternated = Some(done);
        }
        for target in &mut self.targets {
            outcome.notes.extend(target.take_install_notes());
            if target.runs_another_program() {
                outcome.notes.push(format!(
                    "process {} has replaced its program (exec): it runs on, and was measured until then",
                    target.installed.pid
                ));
            }
            let restored = target.is_alive().then(|| target.restore());
            let mut last = None;
            // Children are told apart by what is mapped in them.
            if target.follows_forks() {
                let (numbers, writer) = (&mut self.numbers, &mut *self.writer);
                let read = target.drain(Visit::Live, numbers, &mut buffer, writer);
                last = read.err().map(Err);
            }
            if let Some(restored) = restored {
                let pid = target.installed.pid;
                // What runs in a loop is measured until its copy goes.
                let loops = target.has_loops() && alternation.is_none();
                if restored.is_ok() && loops && last.is_none() {
                    let (numbers, writer) = (&mut self.numbers, &mut *self.writer);
                    last = Some(target.drain(Visit::Live, numbers, &mut buffer, writer));
                }
                let done = restored.and_then(|mut done| {
                    target.take_away(&mut done)?;
                    Ok(done)
                });
                let stops = stop_times::take_all();
                match done {
                    Ok(Detached {
                        notes,
                        frozen,
                        children_not_restored,
                        ..
                    }) => {
                        outcome.not_unmapped.extend(frozen.then_some(pid));
                        outcome.not_restored.extend(children_not_restored);
                        let own = stops.iter().find(|(stopped, _)| *stopped == pid);
                        let longest = own.map_or(Duration::ZERO, |(_, stops)| stops.longest());
                        outcome.detach_pauses.push(longest);
                        outcome.notes.extend(notes);
                    }
                    Err(_) if !target.is_alive() => {}
                    Err(e) => {
                        outcome.not_restored.push(pid);
                        outcome.notes.push(format!(
                            "process {pid} could not be restored: {e}; run: hopscope detach -p {pid}"
                        ));
                    }
                }
                let totals = stops.iter().map(|(pid, stops)| stops.totals(*pid));
                outcome.detach_stops.extend(totals);
            }
            if target.follows_forks() {
                let left = target.take_children_away();
                outcome
                    .not_unmapped
                    .extend(left.frozen.then_some(target.installed.pid));
                outcome.not_restored.extend(left.children_not_restored);
                let stops = stop_times::take_all();
                let totals = stops.iter().map(|(pid, stops)| stops.totals(*pid));
                outcome.detach_stops.extend(totals);
                outcome.notes.extend(left.notes);
            }
            outcome.notes.extend(target.not_looked_at());
            let last = match (last, alternation) {
                (Some(last), _) => last,
                (None, None) => {
                    target.drain(Visit::Final, &mut self.numbers, &mut buffer, self.writer)
                }
                // What came since then is not of the recording, and what came before is kept.
                (None, Some(_)) => Ok(0),
            };
            let last = last.and_then(|_| self.writer.keep());
            if last.is_ok() && alternation.is_none() {
                target.kept();
            }
            if let Err(e) = last
                && !matches!(ended, Ended::WriteFailed(_))
            {
                ended = Ended::WriteFailed(e.to_string());
            }
            // Some were first seen just now.
            outcome.notes.extend(target.note_children());
            outcome.notes.extend(target.note_slots());
            outcome.notes.extend(target.note_counters());
            outcome.notes.extend(target.note_callees());
            outcome.counts.recorded += target.counts.recorded;
            outcome.counts.lost += target.counts.lost;
            outcome.counts.torn += target.counts.torn;
            outcome.counts.damaged += target.counts.damaged;
            outcome.threads += target.threads;
            outcome.functions_not_switched += target.installed.not_switched;
            if alternation.is_none() {
                let calls = target.calls_unmeasured();
                outcome.calls_unmeasured = outcome.calls_unmeasured.saturating_add(calls);
                outcome.notes.extend(target.without_ring());
            }
        }
        if let Some(following) = following {
            // Of what was refused, and of what nobody called.
            let last = following.take_rows();
            let last = last.map_or(Ok(()), |rows| self.writer.rows(&rows));
            if let Err(e) = last
                && !matches!(ended, Ended::WriteFailed(_))
            {
                ended = Ended::WriteFailed(e.to_string());
            }
            let done = following.finish();
            outcome.notes.extend(done.notes);
            outcome.dlopen_stops = done.stops;
            outcome.plan = done.plan;
        }
        if outcome.counts.damaged > 0 {
            outcome.notes.push(format!(
                "{} rings were overwritten by the target; their records after that are missing",
                outcome.counts.damaged
            ));
        }
        match switches.unwrap_or_else(|| self.last_switches()) {
            Ok(entry) => outcome.off_cpu = entry,
            Err(e) if !matches!(ended, Ended::WriteFailed(_)) => {
                ended = Ended::WriteFailed(e.to_string());
            }
            Err(_) => {}
        }
        outcome.ended = ended;
        outcome
    }

    /// The end of the recording where the targets are measured on for a while.
    fn last_before_switching(&mut self, buffer: &mut Vec<Record>) -> Result<(), TraceError> {
        for target in &mut self.targets {
            alternate::switch(target, false);
            target.drain(Visit::Live, &mut self.numbers, buffer, self.writer)?;
        }
        self.writer.keep()?;
        self.targets.iter_mut().for_each(Target::kept);
        Ok(())
    }

    fn measured_threads(&self) -> Vec<(i32, ThreadIx)> {
        self.targets.iter().flat_map(Target::named).collect()
    }

    /// `all`: also those that are too few yet to make a chunk.
    fn visit_switches(&mut self, all: bool) -> Result<(), TraceError> {
        let threads = self.measured_threads();
        match &mut self.off_cpu {
            Some(off_cpu) => off_cpu.visit(&threads, self.writer, all),
            None => Ok(()),
        }
    }

    fn last_switches(&mut self) -> Result<Option<OffCpuEntry>, TraceError> {
        self.visit_switches(true)?;
        let off_cpu = self.off_cpu.as_mut();
        off_cpu.map(|o| o.finish(self.writer)).transpose()
    }

    fn record(
        &mut self,
        stop: &dyn Fn() -> bool,
        status: &mut dyn FnMut(Status),
        left_out: &mut Vec<LeftOutEntry>,
    ) -> Ended {
        match self.record_until(stop, status, left_out) {
            Ok(ended) => ended,
            Err(e) => Ended::WriteFailed(e.to_string()),
        }
    }

    fn record_until(
        &mut self,
        stop: &dyn Fn() -> bool,
        status: &mut dyn FnMut(Status),
        left_out: &mut Vec<LeftOutEntry>,
    ) -> Result<Ended, TraceError> {
        let started = Instant::now();
        let ring_records = self
            .targets
            .first()
            .map_or(1u64 << 16, |t| 1 << t.installed.table.ring_records_log2);
        let mut pace = pace::Pace::new(ring_records);
        let mut buffer: Vec<Record> = Vec::new();
        let mut last_visit = started;
        let mut seconds = Seconds::new(started);
        seconds.prime(&self.targets);
        let mut keeper = self.budget.map(|budget| Keeper::new(budget, &self.targets));
        let mut left_out_before = 0;
        let mut beats = Beats::begin(self.governor.heartbeat.take(), started);
        let mut counted = governor::Counted::default();
        for target in &mut self.targets {
            target.count_calls = self.limits.calls.is_some();
            target.watch_calls(&self.governor.slow_calls);
        }
        loop {
            if stop() {
                return Ok(Ended::Asked);
            }
            hopscope_process::detach_late_stoppers();
            let (began, drained) = (read_tsc(), Instant::now());
            let mut most = 0;
            for target in &mut self.targets {
                most = most.max(target.drain(
                    Visit::Live,
                    &mut self.numbers,
                    &mut buffer,
                    self.writer,
                )?);
            }
            let slow = self.targets.iter_mut().find_map(Target::slow_call);
            if let Some(call) = slow {
                return Ok(Ended::Distress(self.governor.slow(call, self.frequency)));
            }
            // Written before it is given up in the rings: who is killed in between leaves records
            // twice, not nowhere.
            if most > 0 {
                self.writer.keep()?;
                self.targets.iter_mut().for_each(Target::kept);
            }
            if let Some(keeper) = &mut keeper {
                let before = left_out.len();
                let kept = keeper.step(&mut self.targets, drained, true, left_out);
                if left_out.len() > before {
                    self.writer.left_out(&left_out[before..])?;
                }
                if let Err(e) = kept {
                    return Ok(Ended::NotLeftOut(e.to_string()));
                }
            }
            let now = Instant::now();
            if seconds.switches_due(now) {
                self.visit_switches(false)?;
            }
            self.writer.visited(began)?;
            let calls: u64 = self.targets.iter().map(|t| t.counts.calls).sum();
            if self.limits.calls.is_some_and(|limit| calls >= limit) {
                return Ok(Ended::Calls);
            }
            if self.limits.duration.is_some_and(|d| now - started >= d) {
                return Ok(Ended::Duration);
            }
            if seconds.housekeeping_due(now) {
                if let Some(distress) = beats.look(now) {
                    return Ok(Ended::Distress(distress));
                }
                for target in &mut self.targets {
                    target.recycle(&mut self.numbers, &mut buffer, self.writer)?;
                    target.keep_entries();
                }
                if !self.targets.iter_mut().any(Target::is_measured) {
                    return Ok(
                        match self.targets.iter().any(Target::runs_another_program) {
                            true => Ended::TargetsReplaced,
                            false => Ended::TargetsGone,
                        },
                    );
                }
                if let Some(who) = self.targets.iter_mut().find_map(Target::may_unwind) {
                    return Ok(Ended::MayUnwind(who));
                }
            }
            if let Some(span) = seconds.status_due(now) {
                self.visit_switches(true)?;
                if let Some(off_cpu) = &self.off_cpu {
                    self.writer.off_cpu(&off_cpu.so_far());
                }
                self.writer.clock((self.clock)())?;
                self.writer.flush()?;
                let line = self.status(&mut seconds, span, now - started);
                status(line);
                let counts = self.targets.iter().map(|t| t.counts);
                if let Some(distress) = counted.loss_since(&self.governor, counts) {
                    return Ok(Ended::Distress(distress));
                }
                // What was left out since may have been what it was.
                let is_less =
                    left_out.len() > std::mem::replace(&mut left_out_before, left_out.len());
                if let Some(percent) = line.slowdown_percent
                    && percent > self.limits.max_overhead_percent
                    && !is_less
                {
                    return Ok(Ended::Overhead {
                        percent,
                        limit: self.limits.max_overhead_percent,
                    });
                }
            }
            // Half a ring or more since the last visit: there is no time to sleep.
            if most >= ring_records / 2 {
                last_visit = now;
                continue;
            }
            let sleep = pace.next(most, now - last_visit);
            last_visit = now;
            std::thread::sleep(sleep);
        }
    }

    fn status(&mut self, seconds: &mut Seconds, span: Duration, elapsed: Duration) -> Status {
        let pair = self.cost.map_or(PAIR_TICKS_GUESS, |c| c.pair_ticks[1]);
        let (mut written, mut lost) = (0, 0);
        let mut slowdown: Option<f64> = None;
        for (i, target) in self.targets.iter().enumerate() {
            let total = target.counts.recorded + target.counts.lost;
            let (overhead, before) = seconds.target(i);
            let since = total - std::mem::replace(before, total);
            let ran_ns = overhead.ran_ns(target.tids(), 0);
            let percent = overhead::percent(ran_ns, since, pair, self.frequency);
            slowdown = slowdown.into_iter().chain(percent).reduce(f64::max);
            written += since;
            lost += target.counts.lost;
        }
        Status {
            elapsed,
            records_per_s: written as f64 / span.as_secs_f64(),
            lost,
            calls_unmeasured: unmeasured(&self.targets),
            slowdown_percent: slowdown,
        }
    }
}

fn unmeasured(targets: &[Target]) -> u64 {
    let calls = targets.iter().map(Target::calls_unmeasured);
    calls.fold(0, u64::saturating_add)
}

/// What happens at intervals.
struct Seconds {
    last_status: Instant,
    last_switches: Instant,
    last_housekeeping: Instant,
    targets: Vec<(overhead::Overhead, u64)>,
}

impl Seconds {
    fn new(now: Instant) -> Seconds {
        Seconds {
            last_status: now,
            last_switches: now,
            last_housekeeping: now,
            targets: Vec::new(),
        }
    }

    /// CPU times from here on count, also those of threads that have no record yet.
    fn prime(&mut self, targets: &[Target]) {
        for (i, target) in targets.iter().enumerate() {
            let pid = target.installed.pid;
            let tids = target.installed.threads.iter().map(|(tid, _)| (pid, *tid));
            self.target(i).0.prime(tids);
        }
    }

    fn housekeeping_due(&mut self, now: Instant) -> bool {
        let due = now - self.last_housekeeping >= Duration::from_millis(50);
        if due {
            self.last_housekeeping = now;
        }
        due
    }

    /// Often enough for two million switches a second on a processor.
    fn switches_due(&mut self, now: Instant) -> bool {
        let due = now - self.last_switches >= Duration::from_millis(5);
        if due {
            self.last_switches = now;
        }
        due
    }

    fn status_due(&mut self, now: Instant) -> Option<Duration> {
        let span = now - self.last_status;
        if span < Duration::from_secs(1) {
            return None;
        }
        self.last_status = now;
        Some(span)
    }

    fn target(&mut self, i: usize) -> (&mut overhead::Overhead, &mut u64) {
        while self.targets.len() <= i {
            self.targets.push(Default::default());
        }
        let (overhead, before) = &mut self.targets[i];
        (overhead, before)
    }
}
