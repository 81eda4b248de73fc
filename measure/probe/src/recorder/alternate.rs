//! Windows of the recorded program with its probes on and off in turn, after the recording and before
//! the detach: what a call takes its thread in either. Nothing of it is recorded.
use super::measured::Target;
use crate::counters::{TaskClock, read_tsc};
use hopscope_event::layout::{Context, OFF, OFF_CLASSES, off_class};
use hopscope_event::ring::{Position, Visit};
use hopscope_event::{Record, RecordKind, TscFrequency};
use hopscope_process::fault;
use std::mem::offset_of;
use std::time::{Duration, Instant};

/// How long the whole takes, and each window.
#[derive(Debug, Clone, Copy)]
pub struct Alternation {
    pub lasts: Duration,
    pub window: Duration,
}

/// One thread in one window.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub thread: u32,
    pub pair: u32,
    pub on: bool,
    /// That it ran, in ticks.
    pub ticks: f64,
    /// By class ([`off_class`]).
    pub calls: [f64; OFF_CLASSES],
    /// Of these, with probes.
    pub measured: f64,
}

/// What the windows gave.
#[derive(Debug, Default)]
pub struct Alternated {
    pub turns: Vec<Turn>,
    /// Calls that found no ring meanwhile: those with their probes off are counted for another thread.
    pub unmeasured: u64,
    /// Threads whose processor time the kernel does not tell: taken to run always.
    pub without_clock: usize,
    /// Who may unwind measured functions since then: it ended there.
    pub may_unwind: Option<String>,
}

/// Calls that began in the other state are over by then, most of them.
const SETTLES: Duration = Duration::from_micros(300);
const BETWEEN_VISITS: Duration = Duration::from_millis(1);
const BATCH: usize = 1 << 16;

/// A thread with a ring.
struct Thread {
    target: usize,
    context: usize,
    /// `None`: the kernel does not say what it runs, and it is taken to run always.
    clock: Option<TaskClock>,
    position: Position,
    /// Records read in this window, and entries among them by class.
    read: u64,
    entries: [u64; OFF_CLASSES],
}

#[derive(Clone, Copy)]
struct Reading {
    ticks: f64,
    records: u64,
    calls_off: [u64; OFF_CLASSES],
}

/// Switches all threads of a target that have a ring.
pub(super) fn switch(target: &Target, on: bool) {
    let word = if on { 0 } else { OFF };
    for (context, _) in target.contexts() {
        let at = target.context_at(context) + offset_of!(Context, switch) as u64;
        // A target that is gone has no calls either.
        let _ = target.installed.memory.write(at, &word.to_le_bytes());
    }
    if !on {
        fault::point(fault::SWITCHED_OFF);
    }
}

/// Leaves the probes off.
pub(super) fn run(
    targets: &mut [Target],
    plan: Alternation,
    frequency: TscFrequency,
    stop: &dyn Fn() -> bool,
) -> Alternated {
    let unmeasured = |targets: &[Target]| targets.iter().map(Target::calls_unmeasured).sum();
    let before: u64 = unmeasured(targets);
    let mut threads: Vec<Thread> = Vec::new();
    for (n, target) in targets.iter().enumerate() {
        let pool = target.installed.pool();
        threads.extend(target.contexts().map(|(context, tid)| Thread {
            target: n,
            context,
            clock: TaskClock::open(tid).ok(),
            position: Position {
                next: pool.ring(context).map_or(0, |ring| ring.reserved()),
            },
            read: 0,
            entries: [0; OFF_CLASSES],
        }));
    }
    let mut alternated = Alternated {
        without_clock: threads.iter().filter(|t| t.clock.is_none()).count(),
        ..Alternated::default()
    };
    let began = Instant::now();
    let mut random = read_tsc().0 | 1;
    for pair in 0.. {
        let over = began.elapsed() >= plan.lasts || stop();
        if over || !targets.iter().any(Target::is_alive) {
            break;
        }
        // What a recorder looks after as long as anything is patched.
        hopscope_process::detach_late_stoppers();
        targets.iter_mut().for_each(Target::keep_entries);
        alternated.may_unwind = targets.iter_mut().find_map(Target::may_unwind);
        if alternated.may_unwind.is_some() {
            break;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let first = random & 1 << 20 != 0;
        for on in [first, !first] {
            targets.iter().for_each(|target| switch(target, on));
            let turns = window(targets, &mut threads, plan.window, frequency, on);
            let turns = turns.into_iter().map(|turn| Turn { pair, ..turn });
            alternated.turns.extend(turns);
        }
    }
    targets.iter().for_each(|target| switch(target, false));
    alternated.unmeasured = unmeasured(targets).saturating_sub(before);
    alternated
}

fn window(
    targets: &[Target],
    threads: &mut [Thread],
    lasts: Duration,
    frequency: TscFrequency,
    on: bool,
) -> Vec<Turn> {
    std::thread::sleep(SETTLES);
    let mut records = Vec::new();
    for thread in threads.iter_mut() {
        thread.drain(targets, &mut records);
        (thread.read, thread.entries) = (0, [0; OFF_CLASSES]);
    }
    let before: Vec<_> = threads.iter().map(|t| t.look(targets, frequency)).collect();
    let until = Instant::now() + lasts;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::sleep(left.min(BETWEEN_VISITS));
        for thread in threads.iter_mut() {
            thread.drain(targets, &mut records);
        }
    }
    let mut turns = Vec::new();
    for (n, (thread, before)) in threads.iter().zip(before).enumerate() {
        let (Some(before), Some(after)) = (before, thread.look(targets, frequency)) else {
            continue;
        };
        let stored = after.records.saturating_sub(before.records) as f64;
        // What was overwritten before it was read is as likely of one kind as of another.
        let part = |entries: u64| stored * entries as f64 / thread.read.max(1) as f64;
        let measured = thread.entries.map(part);
        let mut calls = measured;
        for (class, calls) in calls.iter_mut().enumerate() {
            let off = after.calls_off[class].saturating_sub(before.calls_off[class]);
            *calls += off as f64;
        }
        turns.push(Turn {
            thread: n as u32,
            pair: 0,
            on,
            ticks: after.ticks - before.ticks,
            calls,
            measured: measured.iter().sum(),
        });
    }
    turns
}

impl Thread {
    /// As a recording would.
    fn drain(&mut self, targets: &[Target], records: &mut Vec<Record>) {
        let target = &targets[self.target];
        let Some(ring) = target.installed.pool().ring(self.context) else {
            return;
        };
        records.clear();
        ring.drain(&mut self.position, Visit::Live, BATCH, records);
        ring.set_consumed(self.position.next);
        self.read += records.len() as u64;
        for record in records
            .iter()
            .filter(|r| r.kind() == Some(RecordKind::Entry))
        {
            self.entries[off_class(record.function())] += 1;
        }
    }

    /// `None`: it is gone.
    fn look(&self, targets: &[Target], frequency: TscFrequency) -> Option<Reading> {
        let target = &targets[self.target];
        let at = target.context_at(self.context) + offset_of!(Context, calls_off) as u64;
        let mut bytes = [0; 8 * OFF_CLASSES];
        target.installed.memory.read(at, &mut bytes).ok()?;
        let mut calls_off = [0; OFF_CLASSES];
        for (calls, word) in calls_off.iter_mut().zip(bytes.chunks_exact(8)) {
            *calls = u64::from_le_bytes(word.try_into().expect("8 bytes"));
        }
        let records = target.installed.pool().ring(self.context)?.reserved();
        let ticks = match &self.clock {
            Some(clock) => clock.ns().ok()? as f64 * frequency.0 as f64 / 1e9,
            None => read_tsc().0 as f64,
        };
        Some(Reading {
            ticks,
            records,
            calls_off,
        })
    }
}
