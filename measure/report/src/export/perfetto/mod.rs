//! A Perfetto trace: a track for each thread with its calls nested, tracks of packets from send to
//! receive, tracks of runs, and a flow for each packet that joins them.
//!
//! Times are CLOCK_MONOTONIC. A call that is open at the end stays open; one whose end is not known
//! ends where that is noticed and says so (`end_unknown`).
mod calls;
mod counts;
mod lanes;
mod packets;
mod proto;
mod runs;
mod slices;
mod trace;

use super::Facts;
use crate::recording::{Names, Recording};
use crate::timeline::Timeline;
use calls::Stack;
use hopscope_analyze::CallCounts;
use hopscope_event::{FunctionId, StreamIx, ThreadIx, Tsc};
use lanes::Lanes;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use trace::{Event, Name, Note, TraceFile, Track, What};

// Numbers of tracks: what it is in the top byte, never 0.
const PROCESS: u64 = 1 << 56;
const THREAD: u64 = 2 << 56;
const STACK: u64 = 3 << 56;
const RECORDING: u64 = 4 << 56;
const STREAM: u64 = 5 << 56;
const LANE: u64 = 6 << 56;
const RUN: u64 = 7 << 56;

/// Flows of packets that go through one call, and that end there.
#[derive(Debug, Default, Clone)]
struct KernelFlows {
    through: Vec<u64>,
    last: Vec<u64>,
}

/// What could not be drawn as it was.
#[derive(Debug, Default, Clone, Copy)]
struct Misdrawn {
    moved: u64,
    closed_early: u64,
    without_lane: u64,
    runs_without_lane: u64,
}

pub struct Perfetto<'a, W: Write> {
    file: TraceFile<W>,
    names: &'a Names<'a>,
    recording: Recording<'a>,
    timeline: &'a Timeline,
    interned: HashSet<FunctionId>,
    stacks: HashMap<(ThreadIx, u32), Stack>,
    streams: HashMap<StreamIx, Lanes>,
    runs: HashMap<ThreadIx, Lanes>,
    kernel: Lanes,
    /// Packets that a call made, or handled, by the call's thread and entry.
    kernel_flows: HashMap<(ThreadIx, Tsc), KernelFlows>,
    counts: Misdrawn,
    /// Of the call that ends next, and names of the arguments that say it.
    counted: Option<CallCounts>,
    counters: Vec<counts::Names>,
    failed: Option<io::Error>,
}

impl<'a, W: Write> Perfetto<'a, W> {
    /// Writes the clocks and the tracks that are known.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(
        out: W,
        recording: Recording<'a>,
        names: &'a Names<'a>,
        timeline: &'a Timeline,
    ) -> io::Result<Perfetto<'a, W>> {
        let mut file = TraceFile::new(out, timeline.points())?;
        for process in recording.processes {
            let track = Track(PROCESS | u64::from(process.ix.0));
            file.process(track, process.pid, &process.comm)?;
        }
        for thread in recording.threads {
            let process = names.process_entry(thread.process);
            let parent = Track(PROCESS | u64::from(thread.process.0));
            let track = Track(THREAD | u64::from(thread.ix.0));
            match (process, thread.tid) {
                (None, _) => file.track(track, None, &names.thread(thread.ix))?,
                (Some(_), 0) => file.track(track, Some(parent), &names.thread(thread.ix))?,
                (Some(p), tid) => file.thread(track, parent, (p.pid, tid), &thread.comm)?,
            }
        }
        file.track(Track(RECORDING), None, "recording")?;
        Ok(Perfetto {
            file,
            names,
            recording,
            timeline,
            interned: HashSet::new(),
            stacks: HashMap::new(),
            streams: HashMap::new(),
            runs: HashMap::new(),
            kernel: Lanes::default(),
            kernel_flows: HashMap::new(),
            counts: Misdrawn::default(),
            counted: None,
            counters: counts::names(recording.counters),
            failed: None,
        })
    }

    /// # Errors
    /// The first error of the output; after it nothing is written.
    pub fn check(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// What could not be drawn as it was, to be added to the facts before the end.
    pub fn facts(&self, facts: &mut Facts) {
        facts.doubt("stamps_moved_to_keep_order", self.counts.moved);
        facts.doubt("calls_drawn_too_short", self.counts.closed_early);
        facts.doubt("packets_without_a_lane", self.counts.without_lane);
        facts.doubt("runs_without_a_lane", self.counts.runs_without_lane);
    }

    /// The facts become arguments of one event at the start of the recording.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, facts: &Facts) -> io::Result<()> {
        self.check()?;
        let texts: Vec<String> = facts.0.iter().map(super::Fact::text).collect();
        let mut notes = Vec::new();
        for (fact, text) in facts.0.iter().zip(&texts) {
            notes.push(match fact.value.as_u64() {
                Some(n) => (fact.name, Note::Unsigned(n)),
                None => (fact.name, Note::Text(text)),
            });
        }
        let event = Event {
            track: Track(RECORDING),
            at_ns: self.recording.meta.start.monotonic_ns,
            what: What::Instant(Name::Here("hopscope")),
            category: "recording",
            notes: &notes,
            flows: &[],
            last_of_flows: &[],
        };
        self.file.event(&event)?;
        self.file.flush()
    }

    fn event(&mut self, event: &Event<'_>) {
        if self.failed.is_none() {
            self.failed = self.file.event(event).err();
        }
    }

    fn function(&mut self, function: FunctionId) -> Name<'static> {
        let number = u64::from(function.0) + 1;
        if self.interned.insert(function) && self.failed.is_none() {
            let name = self.names.qualified(function);
            self.failed = self.file.intern(number, &name).err();
        }
        Name::Interned(number)
    }

    fn ns(&self, ticks: i64) -> f64 {
        self.timeline.tenths_ns(ticks)
    }
}
