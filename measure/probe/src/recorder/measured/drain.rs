//! Records copied out of one ring into the sink.
use crate::recorder::callees::{Callees, OpenCalls};
use crate::recorder::following::Told;
use crate::recorder::sink::Sink;
use crate::recorder::tally::Tally;
use crate::recorder::trigger::SlowCalls;
use hopscope_event::ring::{Position, Ring, Visit};
use hopscope_event::{ProcessIx, Record, RecordKind, ThreadEntry, ThreadIx};
use hopscope_process::procfs;
use hopscope_trace::{RecordBatch, TraceError};

/// Records copied out of a ring at a time.
const BATCH: usize = 1 << 16;

/// What has come out of a target's rings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounts {
    pub recorded: u64,
    pub lost: u64,
    pub torn: u64,
    /// Entries among the recorded; counted only on request.
    pub calls: u64,
    /// Rings whose counter ran backwards: their memory was overwritten by the target.
    pub damaged: u64,
}

/// Where the records of a ring go.
pub(in crate::recorder) struct Drain<'a, S: Sink> {
    /// Who adds functions while they are drained.
    pub told: Option<&'a Told>,
    pub writer: &'a mut S,
    pub buffer: &'a mut Vec<Record>,
    pub counts: &'a mut RingCounts,
    pub count_calls: bool,
    pub tally: Option<&'a mut Tally>,
    pub slow_calls: Option<&'a mut SlowCalls>,
    /// Of calls through pointers, those of this ring's thread that are open, and its process.
    pub callees: Option<(&'a mut Callees, &'a mut OpenCalls, i32)>,
}

impl<S: Sink> Drain<'_, S> {
    /// Writes what is new in a ring; `name` introduces its thread before the first record.
    /// Returns how many records the ring gained.
    pub(in crate::recorder) fn ring(
        &mut self,
        ring: &Ring,
        position: &mut Position,
        visit: Visit,
        thread: &mut Option<ThreadIx>,
        name: &mut dyn FnMut(&mut S) -> Result<ThreadIx, TraceError>,
    ) -> Result<u64, TraceError> {
        let mut gained = 0;
        // What comes after this visit began is the next one's: a producer that is faster than we
        // are, or that only pretends, must not keep us here.
        let until = ring.reserved();
        loop {
            self.buffer.clear();
            let drained = ring.drain(position, visit, BATCH, self.buffer);
            if let Some((callees, open, pid)) = &mut self.callees {
                // Its value is in the next slot: both are read together.
                let cut = self.buffer.len() == BATCH
                    && self.buffer.last().is_some_and(|r| callees.awaits_value(r));
                if cut {
                    self.buffer.pop();
                    position.next -= 1;
                }
                let gap = drained.lost + drained.torn > 0;
                callees.name(*pid, open, gap, self.buffer);
            }
            self.counts.damaged += drained.damaged as u64;
            if self.buffer.is_empty() && drained.lost + drained.torn == 0 {
                return Ok(gained);
            }
            // Whose probes wrote these was told of before.
            if let Some(rows) = self.told.and_then(Told::take_rows) {
                self.writer.rows(&rows)?;
            }
            let thread = match *thread {
                Some(thread) => thread,
                None => *thread.insert(name(self.writer)?),
            };
            if let Some((callees, ..)) = &mut self.callees {
                self.writer.rows(&callees.take_new())?;
            }
            let batch = RecordBatch {
                thread,
                first_index: drained.first_index,
                lost_before: drained.lost,
                torn_before: drained.torn,
                records: self.buffer,
            };
            if let Some(tally) = &mut self.tally {
                tally.add(&batch);
            }
            if let Some(slow) = &mut self.slow_calls {
                slow.see(&batch);
            }
            self.writer.records(batch)?;
            if self.count_calls {
                let entries = self
                    .buffer
                    .iter()
                    .filter(|r| r.kind() == Some(RecordKind::Entry));
                self.counts.calls += entries.count() as u64;
            }
            gained += self.buffer.len() as u64 + drained.lost;
            self.counts.recorded += self.buffer.len() as u64;
            self.counts.lost += drained.lost;
            self.counts.torn += drained.torn;
            let whole = visit == Visit::Live && self.buffer.len() < BATCH - 1;
            if whole || position.next >= until {
                return Ok(gained);
            }
        }
    }
}

pub(super) fn nameless_entry(ix: ThreadIx, process: ProcessIx, tid: i32) -> ThreadEntry {
    ThreadEntry {
        ix,
        process,
        tid,
        comm: String::new(),
    }
}

pub(in crate::recorder) fn thread_entry(
    ix: ThreadIx,
    process: ProcessIx,
    pid: i32,
    tid: i32,
) -> ThreadEntry {
    ThreadEntry {
        ix,
        process,
        tid,
        comm: comm(pid, tid),
    }
}

/// Empty where the thread is gone.
pub(super) fn comm(pid: i32, tid: i32) -> String {
    let comm = procfs::text(&format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    comm.trim_end().to_owned()
}
