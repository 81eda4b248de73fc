//! The file that is open, and what it holds so far.
use super::held::{Held, Kept};
use super::{Ended, FlightCounts, Sink};
use crate::recorder::rows::NewRows;
use hopscope_event::{
    ClockSync, EndsEarly, FlightEntry, OffCpuEntry, Summary, ThreadEntry, ThreadIx, TriggerEntry,
    Tsc,
};
use hopscope_trace::{TraceError, TraceWriter};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

/// Triggers that one file names; further ones are counted.
const TRIGGERS_NAMED: u64 = 10_000;

pub(super) struct Saving<W: Write> {
    path: PathBuf,
    writer: TraceWriter<W>,
    entry: FlightEntry,
    pub(super) until: Tsc,
    pub(super) kept: Kept,
    threads: BTreeSet<ThreadIx>,
}

impl<W: Write> Saving<W> {
    pub(super) fn new(path: PathBuf, writer: TraceWriter<W>, entry: FlightEntry) -> Saving<W> {
        Saving {
            path,
            writer,
            until: entry.until,
            entry,
            kept: Kept::default(),
            threads: BTreeSet::new(),
        }
    }

    pub(super) fn fired(&mut self, trigger: &TriggerEntry, until: Tsc) -> Result<(), TraceError> {
        self.until = self.until.max(until);
        self.entry.fired += 1;
        match self.entry.fired <= TRIGGERS_NAMED {
            true => self.writer.trigger(trigger),
            false => Ok(()),
        }
    }

    /// Takes what lies in the window out of memory; gives how many records before it went nowhere.
    pub(super) fn take(
        &mut self,
        held: &mut Held,
        threads: &BTreeMap<ThreadIx, ThreadEntry>,
    ) -> Result<u64, TraceError> {
        let named = &mut self.threads;
        let name = |ix: ThreadIx, writer: &mut TraceWriter<W>| match threads.get(&ix) {
            Some(entry) if named.insert(ix) => writer.thread(entry),
            _ => Ok(()),
        };
        let (kept, too_old) = held.save(self.entry.from, self.until, &mut self.writer, name)?;
        self.kept += kept;
        self.writer.flush()?;
        Ok(too_old)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.writer.bytes_written()
    }

    pub(super) fn rows(&mut self, new: &NewRows) -> Result<(), TraceError> {
        Sink::rows(&mut self.writer, new)
    }

    pub(super) fn clock(&mut self, sync: ClockSync) -> Result<(), TraceError> {
        self.writer.clock(sync)
    }

    pub(super) fn flush(&mut self) -> Result<(), TraceError> {
        self.writer.flush()
    }

    pub(super) fn end(
        mut self,
        end: ClockSync,
        ends_early: Option<EndsEarly>,
        ended: &Ended,
        (counts, off_cpu): (FlightCounts, OffCpuEntry),
    ) -> Result<(PathBuf, W, Summary), TraceError> {
        let kept = self.kept;
        let notes = match self.entry.fired > TRIGGERS_NAMED {
            true => vec![format!(
                "only the first {TRIGGERS_NAMED} of {} triggers are listed",
                self.entry.fired
            )],
            false => Vec::new(),
        };
        self.writer.flight(&FlightEntry {
            until: self.until,
            ends_early,
            fired_in_cool_down: counts.fired_in_cool_down,
            records_left_out: counts.left_out,
            records_left_out_for_room: counts.left_out_for_room,
            ..self.entry
        })?;
        self.writer.off_cpu(&OffCpuEntry {
            intervals: kept.switches,
            ..off_cpu
        })?;
        let summary = Summary {
            end,
            ended_because: match ends_early {
                None => "the time around the triggers is over".into(),
                Some(EndsEarly::FileFull) => {
                    "the file is full and continues in the next one".into()
                }
                Some(EndsEarly::RecordingEnded) => ended.to_string(),
            },
            recorded: kept.records,
            lost: kept.lost,
            torn: kept.torn,
            threads_measured: self.threads.len() as u64,
            calls_unmeasured: None,
            attach_pause_ns: Vec::new(),
            detach_pause_ns: Vec::new(),
            stops: Default::default(),
            recorder_cpu_ns: None,
            notes,
        };
        let out = self.writer.finish(&summary)?;
        Ok((self.path, out, summary))
    }
}
