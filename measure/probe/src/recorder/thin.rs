//! Keeps each Nth run whole and leaves the others out: fewer bytes in the file, and no torn run.
//! The probes run as before; their cost is the same.
use super::Sink;
use super::rows::NewRows;
use hopscope_event::{
    ClockSync, FunctionId, LeftOutEntry, OffCpuEntry, ProcessEntry, Record, RecordKind, ThinEntry,
    ThreadEntry, ThreadIx, Tsc,
};
use hopscope_trace::{RecordBatch, Switches, TraceError};
use std::collections::HashMap;

/// A run that is longer is cut: 16 MiB of a thread.
const RUN_RECORDS_MAX: usize = 1 << 20;
/// How far above a run's first frame a call counts as being of the same stack.
const SAME_STACK_BYTES: u32 = 1 << 20;

pub struct Thin<'a, S: Sink> {
    sink: &'a mut S,
    entry: ThinEntry,
    threads: HashMap<ThreadIx, Thread>,
    kept: Vec<Record>,
}

#[derive(Debug, Default)]
struct Thread {
    run: Option<Run>,
    runs: u64,
    held: Vec<Record>,
    /// Where the ring went on, to see gaps that nobody declared.
    next: u64,
    /// Records kept so far: the file counts these.
    written: u64,
    lost: u64,
    torn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    /// What it ends with: the root, or what the root has left to by a jump.
    last: FunctionId,
    rsp: u32,
    keep: bool,
    /// `last` has left by a jump: what it jumped to, if measured, comes next and is part of the run.
    jumped: bool,
}

impl<'a, S: Sink> Thin<'a, S> {
    /// `every` is at least 1: every run then, and nothing else.
    pub fn new(sink: &'a mut S, roots: Vec<FunctionId>, every: u64) -> Thin<'a, S> {
        Thin {
            sink,
            entry: ThinEntry {
                roots,
                every,
                ..ThinEntry::default()
            },
            threads: HashMap::new(),
            kept: Vec::new(),
        }
    }

    /// Where the sink is a file: says in it that it holds a choice.
    pub fn begin(&mut self) -> Result<(), TraceError> {
        self.sink.thin(&self.entry)
    }

    /// What was kept; runs that are open now are cut.
    pub fn finish(mut self) -> ThinEntry {
        for thread in self.threads.values_mut() {
            thread.cut(&mut self.entry);
        }
        self.entry
    }
}

impl Thread {
    /// The run that is open will not be whole.
    fn cut(&mut self, entry: &mut ThinEntry) {
        if self.run.take().is_some_and(|run| run.keep) {
            entry.runs_cut += 1;
        }
        entry.records_left_out += self.held.len() as u64;
        self.held.clear();
    }

    fn add(&mut self, record: Record, entry: &mut ThinEntry, kept: &mut Vec<Record>) {
        let (kind, function, rsp) = (record.kind(), record.function(), record.rsp_lo32());
        let begins = kind == Some(RecordKind::Entry) && entry.roots.contains(&function);
        if let Some(run) = self.run.filter(|run| run.jumped) {
            match kind == Some(RecordKind::Entry) && rsp == run.rsp && !begins {
                true => {
                    self.run = Some(Run {
                        last: function,
                        jumped: false,
                        ..run
                    });
                }
                false => self.whole(run, entry, kept),
            }
        }
        if begins {
            // A run that was left without an exit ended before this one, at or above its place.
            let above = |run: Run| rsp.wrapping_sub(run.rsp) < SAME_STACK_BYTES;
            if self.run.is_some_and(above) {
                self.cut(entry);
            }
            if self.run.is_none() {
                entry.runs_seen += 1;
                self.run = Some(Run {
                    last: function,
                    rsp,
                    keep: self.runs.is_multiple_of(entry.every),
                    jumped: false,
                });
                self.runs += 1;
            }
        }
        let Some(run) = self.run else {
            entry.records_left_out += 1;
            return;
        };
        match run.keep {
            true => self.held.push(record),
            false => entry.records_left_out += 1,
        }
        let its = function == run.last && rsp == run.rsp;
        match kind {
            Some(RecordKind::Exit) if its => self.whole(run, entry, kept),
            Some(RecordKind::TailExit) if its => {
                self.run = Some(Run {
                    jumped: true,
                    ..run
                });
            }
            // Its exit will not be seen.
            Some(RecordKind::Escape) if function == run.last => self.cut(entry),
            _ if self.held.len() >= RUN_RECORDS_MAX => {
                self.cut(entry);
                // Its rest is not the beginning of another one.
                self.run = Some(Run { keep: false, ..run });
            }
            _ => {}
        }
    }

    fn whole(&mut self, run: Run, entry: &mut ThinEntry, kept: &mut Vec<Record>) {
        self.run = None;
        entry.runs_kept += u64::from(run.keep);
        kept.append(&mut self.held);
    }
}

impl<S: Sink> Sink for Thin<'_, S> {
    fn process(&mut self, entry: &ProcessEntry) -> Result<(), TraceError> {
        self.sink.process(entry)
    }

    fn thread(&mut self, entry: &ThreadEntry) -> Result<(), TraceError> {
        self.sink.thread(entry)
    }

    fn rows(&mut self, new: &NewRows) -> Result<(), TraceError> {
        self.sink.rows(new)
    }

    fn records(&mut self, batch: RecordBatch<'_>) -> Result<(), TraceError> {
        let thread = self.threads.entry(batch.thread).or_default();
        let gap = batch.lost_before + batch.torn_before > 0 || batch.first_index != thread.next;
        if gap {
            thread.cut(&mut self.entry);
        }
        thread.lost += batch.lost_before;
        thread.torn += batch.torn_before;
        thread.next = batch.first_index + batch.records.len() as u64;
        self.kept.clear();
        for record in batch.records {
            thread.add(*record, &mut self.entry, &mut self.kept);
        }
        if self.kept.is_empty() && thread.lost + thread.torn == 0 {
            return Ok(());
        }
        thread.written += thread.lost;
        let first_index = thread.written;
        thread.written += self.kept.len() as u64;
        self.sink.records(RecordBatch {
            thread: batch.thread,
            first_index,
            lost_before: std::mem::take(&mut thread.lost),
            torn_before: std::mem::take(&mut thread.torn),
            records: &self.kept,
        })
    }

    fn switches(&mut self, batch: Switches<'_>) -> Result<(), TraceError> {
        self.sink.switches(batch)
    }

    fn off_cpu(&mut self, so_far: &OffCpuEntry) {
        self.sink.off_cpu(so_far);
    }

    fn left_out(&mut self, entries: &[LeftOutEntry]) -> Result<(), TraceError> {
        self.sink.left_out(entries)
    }

    fn keep(&mut self) -> Result<(), TraceError> {
        self.sink.keep()
    }

    fn visited(&mut self, began: Tsc) -> Result<(), TraceError> {
        self.sink.visited(began)
    }

    fn clock(&mut self, sync: ClockSync) -> Result<(), TraceError> {
        self.sink.clock(sync)
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        self.sink.flush()
    }
}

#[cfg(test)]
mod tests;
