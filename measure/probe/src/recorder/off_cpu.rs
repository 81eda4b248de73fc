//! Records when measured threads were off CPU.
mod clock;
mod pairs;

use super::Sink;
use crate::counters::{Said, Switch, Switches, raw_sync};
use clock::SwitchClock;
use hopscope_event::{OffCpuEntry, ThreadIx, Tsc, TscFrequency};
use hopscope_trace::{Switches as SwitchBatch, TraceError};
use pairs::Pairs;
use std::collections::HashSet;

/// Switches younger than this wait for the next visit: a processor may not have written yet what
/// it stamped before another one's that is here already.
const SETTLES_NS: u64 = 2_000_000;
/// Rows of a thread that make a chunk; fewer wait for the next second.
const CHUNK_ROWS: usize = 1024;

pub struct OffCpuRecorder {
    switches: Switches,
    clock: SwitchClock,
    frequency: TscFrequency,
    waiting: Vec<Switch>,
    pairs: Pairs,
    /// When the visit before began: rows of threads unknown at this one that ended earlier lie
    /// before their first call.
    last_visit: Tsc,
}

impl OffCpuRecorder {
    pub fn new(switches: Switches, frequency: TscFrequency) -> OffCpuRecorder {
        let mut clock = SwitchClock::default();
        let first = raw_sync();
        clock.add(first);
        OffCpuRecorder {
            switches,
            clock,
            frequency,
            waiting: Vec::new(),
            pairs: Pairs::default(),
            last_visit: first.tsc,
        }
    }

    /// After the rings of `threads` (tid and number of each measured one) were drained.
    pub fn visit(
        &mut self,
        threads: &[(i32, ThreadIx)],
        sink: &mut impl Sink,
        all: bool,
    ) -> Result<(), TraceError> {
        let began = raw_sync();
        threads
            .iter()
            .for_each(|(tid, ix)| self.pairs.name(*tid, *ix));
        self.take(began.raw_ns.saturating_sub(SETTLES_NS), sink)?;
        self.tell(if all { 0 } else { CHUNK_ROWS }, sink)?;
        let measured: HashSet<i32> = threads.iter().map(|(tid, _)| *tid).collect();
        self.pairs
            .forget(self.last_visit, |tid| measured.contains(&tid));
        self.last_visit = began.tsc;
        Ok(())
    }

    /// No switch comes any more that concerns a call.
    pub fn finish(&mut self, sink: &mut impl Sink) -> Result<OffCpuEntry, TraceError> {
        self.take(u64::MAX, sink)?;
        self.pairs.end(raw_sync().tsc);
        self.tell(0, sink)?;
        Ok(self.so_far())
    }

    pub fn so_far(&self) -> OffCpuEntry {
        OffCpuEntry {
            why_not: None,
            clock_error_ns: self.clock.error_ns(self.frequency),
            intervals: self.pairs.intervals,
            lost: self.pairs.lost,
            unpaired: self.pairs.unpaired,
        }
    }

    fn take(&mut self, until_ns: u64, sink: &mut impl Sink) -> Result<(), TraceError> {
        self.switches.read(&mut self.waiting);
        // After the reading: what was read lies between this reading of the clocks and the last.
        self.clock.add(raw_sync());
        let until_ns = until_ns.min(self.clock.known_until_ns());
        self.waiting.sort_by_key(|s| s.raw_ns);
        let ripe = self.waiting.partition_point(|s| s.raw_ns <= until_ns);
        for at in 0..ripe {
            let Switch { raw_ns, said, .. } = self.waiting[at];
            if let Said::Lost { records } = said {
                self.tell(0, sink)?;
                self.pairs.lose(records);
            } else if let Some(at) = self.clock.tsc(raw_ns) {
                self.pairs.add(said, at);
            }
        }
        self.waiting.drain(..ripe);
        Ok(())
    }

    fn tell(&mut self, at_least: usize, sink: &mut impl Sink) -> Result<(), TraceError> {
        self.pairs.tell(at_least, |thread, lost_before, rows| {
            sink.switches(SwitchBatch {
                thread,
                lost_before,
                rows,
            })
        })
    }
}
