//! Windows of the recorded program with its probes on and off in turn, after the recording and before
//! the detach: what a call takes its thread in either. Nothing of it is recorded.
use super::target::Target;
use crate::counters::{TaskClock, read_tsc};
use hopscope_event::layout::{Context, OFF};
use hopscope_event::ring::{Position, Visit};
use hopscope_event::{Kind, Record, TscFrequency};
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
    pub calls: f64,
    /// Of these, with probes.
    pub measured: f64,
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
    /// Records read in this window, and entries among them.
    read: u64,
    entries: u64,
}

#[derive(Clone, Copy)]
struct Reading {
    ticks: f64,
    records: u64,
    calls_off: u64,
}

/// Switches all threads of a target that have a ring.
pub(super) fn switch(target: &Target, on: bool) {
    for (context, _) in target.contexts() {
        let word = if on { 0 } else { u64::from(OFF) };
        let at = target.context_at(context) + offset_of!(Context, switch) as u64;
        // A target that is gone has no calls either.
        let _ = target.installed.memory.write(at, &word.to_le_bytes());
    }
}

/// Leaves the probes off.
pub(super) fn run(targets: &mut [Target], plan: Alternation, frequency: TscFrequency) -> Vec<Turn> {
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
            entries: 0,
        }));
    }
    let began = Instant::now();
    let mut turns = Vec::new();
    let mut random = read_tsc().0 | 1;
    for pair in 0.. {
        if began.elapsed() >= plan.lasts || !targets.iter().any(Target::is_alive) {
            break;
        }
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let first = random & 1 << 20 != 0;
        for on in [first, !first] {
            targets.iter().for_each(|target| switch(target, on));
            window(
                targets,
                &mut threads,
                plan,
                frequency,
                (pair, on),
                &mut turns,
            );
        }
    }
    targets.iter().for_each(|target| switch(target, false));
    turns
}

fn window(
    targets: &[Target],
    threads: &mut [Thread],
    plan: Alternation,
    frequency: TscFrequency,
    (pair, on): (u32, bool),
    turns: &mut Vec<Turn>,
) {
    std::thread::sleep(SETTLES);
    let mut records = Vec::new();
    for thread in threads.iter_mut() {
        thread.drain(targets, &mut records);
        (thread.read, thread.entries) = (0, 0);
    }
    let before: Vec<_> = threads.iter().map(|t| t.look(targets, frequency)).collect();
    let until = Instant::now() + plan.window;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::sleep(left.min(BETWEEN_VISITS));
        for thread in threads.iter_mut() {
            thread.drain(targets, &mut records);
        }
    }
    for (n, (thread, before)) in threads.iter().zip(before).enumerate() {
        let (Some(before), Some(after)) = (before, thread.look(targets, frequency)) else {
            continue;
        };
        let records = after.records.saturating_sub(before.records) as f64;
        // What was overwritten before it was read is as likely of one kind as of another.
        let entries = match thread.read {
            0 => 0.5,
            read => thread.entries as f64 / read as f64,
        };
        let measured = records * entries;
        turns.push(Turn {
            thread: n as u32,
            pair,
            on,
            ticks: after.ticks - before.ticks,
            calls: measured + after.calls_off.saturating_sub(before.calls_off) as f64,
            measured,
        });
    }
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
        let entries = records.iter().filter(|r| r.kind() == Some(Kind::Entry));
        self.entries += entries.count() as u64;
    }

    /// `None`: it is gone.
    fn look(&self, targets: &[Target], frequency: TscFrequency) -> Option<Reading> {
        let target = &targets[self.target];
        let at = target.context_at(self.context) + offset_of!(Context, calls_off) as u64;
        let mut word = [0; 8];
        target.installed.memory.read(at, &mut word).ok()?;
        let records = target.installed.pool().ring(self.context)?.reserved();
        let ticks = match &self.clock {
            Some(clock) => clock.ns().ok()? as f64 * frequency.0 as f64 / 1e9,
            None => read_tsc().0 as f64,
        };
        Some(Reading {
            ticks,
            records,
            calls_off: u64::from_le_bytes(word),
        })
    }
}
