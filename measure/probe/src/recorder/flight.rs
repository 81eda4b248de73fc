//! Keeps the last seconds in memory and saves them only around what was worth it.
//!
//! Everything goes into memory first, encoded as in a file, and leaves it at its old end: into the
//! file that is open, when it lies in that file's window, or nowhere, when it is too old. A window
//! reaches from *before* the first trigger to *after* the last; while the window of a further one
//! would touch it, the file stays open, so that what belongs together is in one file.
mod held;
mod saving;

pub use held::Kept;

use super::rows::NewRows;
use super::trigger::Triggers;
use super::{Ended, Sink};
use held::Held;
use hopscope_event::{
    BeginsLate, ClockSync, EndsEarly, FlightEntry, Ns, OffCpuEntry, Summary, ThreadEntry, ThreadIx,
    TriggerEntry, Tsc, TscFrequency,
};
use hopscope_trace::{RecordBatch, Switches, TraceError, TraceWriter};
use saving::Saving;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Context switches come up to a second after the records.
const SWITCHES_COME_WITHIN: Duration = Duration::from_millis(1500);
/// Clock readings, one a second.
const CLOCKS: usize = 600;
/// Threads that are remembered though nothing of theirs is held.
const THREADS: usize = 4096;
/// A file is ended, and the next begun, when it is so many times what the memory may hold.
const FILE_TIMES_MEMORY: u64 = 2;

#[derive(Debug, Clone)]
pub struct FlightOptions {
    pub before: Duration,
    pub after: Duration,
    /// After a file was ended, triggers begin none for so long.
    pub cool_down: Duration,
    /// Most bytes that are held.
    pub bytes_max: u64,
    /// A trigger of this name fires when the last target has exited.
    pub at_exit: Option<String>,
    /// When the recording began.
    pub recording: ClockSync,
    pub frequency: TscFrequency,
}

/// A file to save into, with its tables written.
pub type Opened<W> = (PathBuf, TraceWriter<W>);

/// The environment of a flight recorder.
pub struct FlightParts<'a, W: Write> {
    pub triggers: Triggers,
    /// Polled once per drain: an external trigger, such as a signal.
    pub asked: &'a dyn Fn() -> Option<String>,
    /// Makes a file whose recording starts at this instant.
    pub open: &'a mut dyn FnMut(ClockSync) -> Result<Opened<W>, TraceError>,
    /// Told of each file when it is whole.
    pub saved: &'a mut dyn FnMut(&PathBuf, W, &Summary) -> Result<(), TraceError>,
    pub now: &'a dyn Fn() -> ClockSync,
}

pub struct Flight<'a, W: Write> {
    options: FlightOptions,
    parts: FlightParts<'a, W>,
    held: Held,
    threads: BTreeMap<ThreadIx, ThreadEntry>,
    clocks: VecDeque<ClockSync>,
    /// Of all files, besides those that each begins with.
    rows: NewRows,
    off_cpu: OffCpuEntry,
    file: Option<Saving<W>>,
    /// End of the last file's window.
    saved_until: Option<Tsc>,
    counts: FlightCounts,
}

/// Accounts for everything that was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlightCounts {
    pub files: u64,
    pub fired: u64,
    /// Of those: what fired in the cool-down after a file, and was not saved.
    pub fired_in_cool_down: u64,
    pub saved: Kept,
    /// Records in no window. Nothing of this is lost.
    pub left_out: u64,
    /// Of those: what was younger than the window when the memory was full.
    pub left_out_for_room: u64,
    /// Context switches that went likewise.
    pub switches_left_out_for_room: u64,
    /// Files with less time before their trigger than configured, for lack of memory.
    pub files_short_of_room: u64,
}

impl<'a, W: Write> Flight<'a, W> {
    pub fn new(options: FlightOptions, parts: FlightParts<'a, W>) -> Flight<'a, W> {
        Flight {
            clocks: VecDeque::from([options.recording]),
            options,
            parts,
            held: Held::default(),
            threads: BTreeMap::new(),
            rows: NewRows::default(),
            off_cpu: OffCpuEntry::default(),
            file: None,
            saved_until: None,
            counts: FlightCounts::default(),
        }
    }

    fn ticks(&self, span: Duration) -> u64 {
        self.options.frequency.ticks(ns(span))
    }

    fn fire(&mut self, trigger: TriggerEntry) -> Result<(), TraceError> {
        self.counts.fired += 1;
        let from = Tsc(trigger.at.0.saturating_sub(self.ticks(self.options.before)));
        let until = trigger.at + self.ticks(self.options.after);
        // A window that joins leaves no hole between it and the one before.
        let gone = self.held.gone_for_room;
        let apart = |file: &Saving<W>| from > file.until || gone > Some(file.until);
        if self.file.as_ref().is_some_and(apart) {
            self.close(None, &Ended::Asked)?;
        }
        if self.file.is_none() {
            let cool_down = self.ticks(self.options.cool_down);
            if self.saved_until.is_some_and(|u| trigger.at < u + cool_down) {
                self.counts.fired_in_cool_down += 1;
                return Ok(());
            }
            self.begin(from, until)?;
        }
        match &mut self.file {
            Some(file) => file.fired(&trigger, until),
            None => Ok(()),
        }
    }

    fn begin(&mut self, asked: Tsc, until: Tsc) -> Result<(), TraceError> {
        let bounds = [
            (Some(self.options.recording.tsc), BeginsLate::RecordingBegan),
            (
                self.held.gone_for_room.map(|t| t + 1),
                BeginsLate::MemoryFull,
            ),
            (self.saved_until.map(|t| t + 1), BeginsLate::PreviousFile),
        ];
        let known = bounds.into_iter().filter_map(|(at, why)| Some((at?, why)));
        let latest = known
            .max_by_key(|(at, _)| *at)
            .filter(|(at, _)| *at >= asked);
        let from = latest.map_or(asked, |(at, _)| at);
        let begins_late = latest.map(|(_, why)| why);
        let start = self.sync_at(from);
        let (path, mut writer) = (self.parts.open)(start)?;
        let entry = FlightEntry {
            before_ns: ns(self.options.before),
            after_ns: ns(self.options.after),
            bytes_max: self.options.bytes_max,
            recording: self.options.recording,
            from,
            until,
            begins_late,
            ends_early: None,
            fired: 0,
            fired_in_cool_down: self.counts.fired_in_cool_down,
            records_left_out: self.counts.left_out,
            records_left_out_for_room: self.counts.left_out_for_room,
        };
        Sink::rows(&mut writer, &self.rows)?;
        writer.flight(&entry)?;
        writer.off_cpu(&self.off_cpu)?;
        for clock in &self.clocks {
            writer.clock(*clock)?;
        }
        self.counts.files += 1;
        self.counts.files_short_of_room += u64::from(begins_late == Some(BeginsLate::MemoryFull));
        self.file = Some(Saving::new(path, writer, entry));
        Ok(())
    }

    /// The instant `tsc` on all clocks, by the reading that is nearest.
    fn sync_at(&self, tsc: Tsc) -> ClockSync {
        let nearest = self
            .clocks
            .iter()
            .min_by_key(|c| (c.tsc - tsc).unsigned_abs());
        let near = nearest.copied().unwrap_or(self.options.recording);
        let ns = self.options.frequency.ns(tsc - near.tsc);
        ClockSync {
            tsc,
            monotonic_ns: near.monotonic_ns.saturating_add_signed(ns),
            realtime_ns: near.realtime_ns.saturating_add_signed(ns),
            ..near
        }
    }

    /// Moves what lies in the window of the open file from memory to the file.
    fn save(&mut self) -> Result<(), TraceError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        self.counts.left_out += file.take(&mut self.held, &self.threads)?;
        Ok(())
    }

    /// Ends the file that is open.
    fn close(&mut self, early: Option<EndsEarly>, ended: &Ended) -> Result<(), TraceError> {
        self.save()?;
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        self.saved_until = Some(file.until);
        self.counts.saved += file.kept;
        let counts = (self.counts, self.off_cpu.clone());
        let end = self.sync_at(file.until);
        let (path, out, summary) = file.end(end, early, ended, counts)?;
        (self.parts.saved)(&path, out, &summary)
    }

    fn end_if_over(&mut self, began: Tsc) -> Result<(), TraceError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let until = file.until;
        let full = file.bytes() > self.options.bytes_max.saturating_mul(FILE_TIMES_MEMORY);
        if full && began < until {
            // All that was recorded before that has come, and nothing younger is in the file.
            file.until = Tsc(began.0 - 1);
            self.close(Some(EndsEarly::FileFull), &Ended::Asked)?;
            return self.begin(began, until);
        }
        // A trigger that comes until then has a window that touches this one.
        let wait = self.ticks(self.options.before.max(SWITCHES_COME_WITHIN));
        match began > until + wait {
            true => self.close(None, &Ended::Asked),
            false => Ok(()),
        }
    }

    /// The recording ends: what fired is saved as far as it goes.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(mut self, ended: &Ended) -> Result<FlightCounts, TraceError> {
        let now = (self.parts.now)();
        let at_exit = self.options.at_exit.take();
        let exited =
            at_exit.filter(|_| matches!(ended, Ended::TargetsGone | Ended::TargetsReplaced));
        for trigger in (self.parts.asked)().into_iter().chain(exited) {
            self.fire(outside(trigger, now.tsc))?;
        }
        let early = self.file.as_mut().filter(|file| now.tsc < file.until);
        let early = early.map(|file| {
            file.until = now.tsc;
            EndsEarly::RecordingEnded
        });
        self.close(early, ended)?;
        self.counts.left_out += self.held.records();
        Ok(self.counts)
    }

    fn make_room(&mut self) {
        let (records, switches) = self.held.drop_beyond(self.options.bytes_max);
        self.counts.left_out += records;
        self.counts.left_out_for_room += records;
        self.counts.switches_left_out_for_room += switches;
    }

    fn drop_old(&mut self, now: Tsc) {
        // What a preempted probe stores late is still to find its place.
        let kept = self.ticks(self.options.before + SWITCHES_COME_WITHIN);
        self.counts.left_out += self.held.drop_before(Tsc(now.0.saturating_sub(kept)));
        self.make_room();
        if self.threads.len() > THREADS {
            let held = self.held.threads();
            self.threads.retain(|ix, _| held.contains(ix));
            let threads = &self.threads;
            self.parts.triggers.forget(|ix| threads.contains_key(&ix));
        }
    }
}

fn ns(span: Duration) -> Ns {
    Ns(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// A trigger that is no call.
fn outside(trigger: String, at: Tsc) -> TriggerEntry {
    TriggerEntry {
        trigger,
        at,
        thread: None,
        function: None,
        took_ticks: None,
    }
}

impl<W: Write> Sink for Flight<'_, W> {
    fn thread(&mut self, entry: &ThreadEntry) -> Result<(), TraceError> {
        self.threads.insert(entry.ix, entry.clone());
        Ok(())
    }

    fn rows(&mut self, new: &NewRows) -> Result<(), TraceError> {
        self.rows.append(new);
        match &mut self.file {
            Some(file) => file.rows(new),
            None => Ok(()),
        }
    }

    fn records(&mut self, batch: RecordBatch<'_>) -> Result<(), TraceError> {
        self.held.records_of(&batch);
        for trigger in self.parts.triggers.fired(&batch) {
            self.fire(trigger)?;
        }
        // A visit of a large ring brings many times what may be held.
        if self.held.bytes() > self.options.bytes_max {
            self.save()?;
            self.make_room();
        }
        Ok(())
    }

    fn switches(&mut self, batch: Switches<'_>) -> Result<(), TraceError> {
        self.held.switches_of(&batch);
        Ok(())
    }

    fn off_cpu(&mut self, so_far: &OffCpuEntry) {
        self.off_cpu = so_far.clone();
    }

    /// All that was recorded before `began` has come.
    fn visited(&mut self, began: Tsc) -> Result<(), TraceError> {
        if let Some(trigger) = (self.parts.asked)() {
            self.fire(outside(trigger, began))?;
        }
        self.end_if_over(began)?;
        self.save()?;
        self.drop_old(began);
        Ok(())
    }

    fn clock(&mut self, sync: ClockSync) -> Result<(), TraceError> {
        if self.clocks.len() == CLOCKS {
            self.clocks.pop_front();
        }
        let oldest = sync
            .tsc
            .0
            .saturating_sub(2 * self.ticks(self.options.before));
        self.clocks.retain(|c| c.tsc.0 >= oldest);
        self.clocks.push_back(sync);
        match &mut self.file {
            Some(file) => file.clock(sync),
            None => Ok(()),
        }
    }

    /// Memory is all there is.
    fn keep(&mut self) -> Result<(), TraceError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        match &mut self.file {
            Some(file) => file.flush(),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
