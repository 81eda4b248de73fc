//! One measured process as the recorder sees it: its rings and whose they are.
use super::sink::Sink;
use crate::live::install::Installed;
use hopscope_event::layout::Context;
use hopscope_event::ring::{Position, Ring, Visit};
use hopscope_event::{Kind, ProcessIx, Record, ThreadEntry, ThreadIx};
use hopscope_trace::{Batch, TraceError};
use std::fs;

/// Records copied out of a ring at a time.
const BATCH: usize = 1 << 16;

/// What has come out of a target's rings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub recorded: u64,
    pub lost: u64,
    pub torn: u64,
    /// Entries among the recorded; counted only when asked for.
    pub calls: u64,
    /// Rings whose counter ran backwards: their memory was overwritten by the target.
    pub damaged: u64,
}

pub struct Target {
    pub installed: Installed,
    pub process: ProcessIx,
    pub counts: Counts,
    pub count_calls: bool,
    /// Threads that had a ring at any time.
    pub threads: u64,
    rings: Vec<RingState>,
    claims_seen: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct RingState {
    in_use: bool,
    position: Position,
    thread: Option<(ThreadIx, i32)>,
    damaged: bool,
}

/// Numbers threads across all targets.
#[derive(Debug, Default)]
pub struct ThreadNumbers(u32);

impl ThreadNumbers {
    pub(super) fn next(&mut self) -> ThreadIx {
        self.0 += 1;
        ThreadIx(self.0 - 1)
    }
}

impl Target {
    pub fn new(installed: Installed, process: ProcessIx) -> Target {
        let mut rings = vec![RingState::default(); installed.table.pool_contexts as usize];
        for (_, context) in &installed.threads {
            rings[*context as usize].in_use = true;
        }
        Target {
            installed,
            process,
            counts: Counts::default(),
            count_calls: false,
            threads: 0,
            rings,
            claims_seen: 0,
        }
    }

    /// Visits every ring; returns what the busiest one gained.
    pub fn drain<S: Sink>(
        &mut self,
        visit: Visit,
        numbers: &mut ThreadNumbers,
        buffer: &mut Vec<Record>,
        writer: &mut S,
    ) -> Result<u64, TraceError> {
        self.learn_claims();
        let mut most = 0;
        for context in 0..self.rings.len() {
            if self.rings[context].in_use {
                most = most.max(self.drain_ring(context, visit, numbers, buffer, writer)?);
            }
        }
        Ok(most)
    }

    fn learn_claims(&mut self) {
        let pool = self.installed.pool();
        let taken = pool.taken();
        // A scribbled counter must not keep us here: more than the queue holds is nonsense.
        let from = self
            .claims_seen
            .max(taken.saturating_sub(self.rings.len() as u64));
        for n in from..taken {
            if let Some(ring) = self.rings.get_mut(pool.free_entry(n) as usize) {
                ring.in_use = true;
            }
        }
        self.claims_seen = taken;
    }

    fn drain_ring<S: Sink>(
        &mut self,
        context: usize,
        visit: Visit,
        numbers: &mut ThreadNumbers,
        buffer: &mut Vec<Record>,
        writer: &mut S,
    ) -> Result<u64, TraceError> {
        let state = &mut self.rings[context];
        let pool = self.installed.pool();
        let Some(ring) = pool.ring(context) else {
            return Ok(0);
        };
        if state.damaged {
            return Ok(0);
        }
        let damaged_before = self.counts.damaged;
        let (process, pid) = (self.process, self.installed.pid);
        let mut tid = state.thread.map_or(0, |(_, tid)| tid);
        let mut thread = state.thread.map(|(thread, _)| thread);
        let threads = &mut self.threads;
        let mut name = |writer: &mut S| {
            let ix = numbers.next();
            tid = ring.tid();
            *threads += 1;
            writer.thread(&thread_entry(ix, process, pid, tid))?;
            Ok(ix)
        };
        let mut drain = Drain {
            writer,
            buffer,
            counts: &mut self.counts,
            count_calls: self.count_calls,
        };
        let gained = drain.ring(&ring, &mut state.position, visit, &mut thread, &mut name)?;
        state.thread = thread.map(|thread| (thread, tid));
        state.damaged = self.counts.damaged != damaged_before;
        Ok(gained)
    }

    /// Gives the rings of threads that are gone to new ones.
    pub fn recycle<S: Sink>(
        &mut self,
        numbers: &mut ThreadNumbers,
        buffer: &mut Vec<Record>,
        writer: &mut S,
    ) -> Result<(), TraceError> {
        for context in 0..self.rings.len() {
            let tid = self.rings[context].thread.map_or(0, |(_, tid)| tid);
            let gone = tid != 0
                && !fs::exists(format!("/proc/{}/task/{tid}", self.installed.pid)).unwrap_or(true);
            if !self.rings[context].in_use || !gone {
                continue;
            }
            self.drain_ring(context, Visit::Final, numbers, buffer, writer)?;
            // The context first: nobody may take it for its own any more.
            let at = self.installed.table.contexts.at + (context * size_of::<Context>()) as u64;
            if self.installed.memory.write(at, &[0; 8]).is_err() {
                continue; // the target is going away
            }
            let pool = self.installed.pool();
            if let Some(ring) = pool.ring(context) {
                ring.set_owner(0, 0);
            }
            let state = &mut self.rings[context];
            (state.in_use, state.thread) = (false, None);
            if !state.damaged {
                pool.offer(context as u32);
            }
        }
        Ok(())
    }

    /// Whether the measured program still runs (not exited, not replaced by exec).
    pub fn is_alive(&self) -> bool {
        let mut byte = [0u8];
        self.installed
            .memory
            .read(self.installed.table.contexts.at, &mut byte)
            .is_ok()
    }

    pub fn calls_unmeasured(&self) -> u64 {
        let pool = self.installed.pool();
        pool.calls_unmeasured() + pool.calls_foreign()
    }

    /// Thread ids with rings now.
    pub fn tids(&self) -> impl Iterator<Item = i32> {
        self.named().map(|(tid, _)| tid)
    }

    /// Threads that have records, with their numbers.
    pub fn named(&self) -> impl Iterator<Item = (i32, ThreadIx)> {
        let named = self.rings.iter().filter_map(|r| r.thread);
        named
            .map(|(ix, tid)| (tid, ix))
            .filter(|(tid, _)| *tid != 0)
    }
}

/// Where the records of a ring go.
pub(super) struct Drain<'a, S: Sink> {
    pub writer: &'a mut S,
    pub buffer: &'a mut Vec<Record>,
    pub counts: &'a mut Counts,
    pub count_calls: bool,
}

impl<S: Sink> Drain<'_, S> {
    /// Writes what is new in a ring; `name` introduces its thread before the first record.
    /// Returns how many records the ring gained.
    pub(super) fn ring(
        &mut self,
        ring: &Ring,
        position: &mut Position,
        visit: Visit,
        thread: &mut Option<ThreadIx>,
        name: &mut dyn FnMut(&mut S) -> Result<ThreadIx, TraceError>,
    ) -> Result<u64, TraceError> {
        let mut gained = 0;
        loop {
            self.buffer.clear();
            let drained = ring.drain(position, visit, BATCH, self.buffer);
            self.counts.damaged += drained.damaged as u64;
            if self.buffer.is_empty() && drained.lost + drained.torn == 0 {
                return Ok(gained);
            }
            let thread = match *thread {
                Some(thread) => thread,
                None => *thread.insert(name(self.writer)?),
            };
            self.writer.records(Batch {
                thread,
                first_index: drained.first_index,
                lost_before: drained.lost,
                torn_before: drained.torn,
                records: self.buffer,
            })?;
            ring.set_consumed(position.next);
            if self.count_calls {
                let entries = self.buffer.iter().filter(|r| r.kind() == Some(Kind::Entry));
                self.counts.calls += entries.count() as u64;
            }
            gained += self.buffer.len() as u64 + drained.lost;
            self.counts.recorded += self.buffer.len() as u64;
            self.counts.lost += drained.lost;
            self.counts.torn += drained.torn;
            if visit == Visit::Live && self.buffer.len() < BATCH {
                return Ok(gained);
            }
        }
    }
}

pub(super) fn thread_entry(ix: ThreadIx, process: ProcessIx, pid: i32, tid: i32) -> ThreadEntry {
    let comm = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    ThreadEntry {
        ix,
        process,
        tid,
        comm: comm.trim_end().to_owned(),
    }
}
