//! The files of a flight recorder: one for each window, named by the time of its trigger, the
//! oldest taken away when there are too many.
use super::sampling::Asked;
use super::{FlightRequest, RecordRequest};
use crate::error::Result;
use crate::output::{self, Place, Writer};
use hopscope_event::{BudgetEntry, ClockSync, OffCpuEntry, ProcessEntry, RecordingMeta, Summary};
use hopscope_probe::counters::clock_sync;
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::flight::{Flight, FlightCounts, FlightOptions, FlightParts, Opened};
use hopscope_probe::recorder::trigger::{Trigger, Triggers};
use hopscope_probe::recorder::{RecorderResult, Sink};
use hopscope_report::utc;
use hopscope_trace::{TraceError, TraceWriter};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

type Out = BufWriter<File>;

/// What every file begins with.
pub(super) struct Tables<'a> {
    pub meta: &'a RecordingMeta,
    pub plan: &'a Plan,
    pub processes: &'a [ProcessEntry],
    pub off_cpu: &'a OffCpuEntry,
    pub budget: Option<&'a BudgetEntry>,
}

/// Files there are, and how many that were taken away again.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub(super) struct Saved {
    pub files: VecDeque<PathBuf>,
    pub removed: u64,
}

impl Tables<'_> {
    pub(super) fn write(
        &self,
        writer: &mut TraceWriter<Out>,
    ) -> std::result::Result<(), TraceError> {
        writer.modules(&self.plan.modules)?;
        writer.functions(&self.plan.functions)?;
        writer.captures(&self.plan.captures)?;
        writer.counters(&self.plan.counters)?;
        self.processes.iter().try_for_each(|p| writer.process(p))?;
        writer.refusals(&self.plan.refusals)?;
        writer.off_cpu(self.off_cpu)?;
        self.budget.map_or(Ok(()), |budget| writer.budget(budget))?;
        writer.flush()
    }

    fn open(
        &self,
        file: File,
        start: ClockSync,
    ) -> std::result::Result<TraceWriter<Out>, TraceError> {
        let out = BufWriter::with_capacity(1 << 20, file);
        let meta = RecordingMeta {
            start,
            ..self.meta.clone()
        };
        let mut writer = TraceWriter::new(out, &meta)?;
        self.write(&mut writer)?;
        Ok(writer)
    }
}

/// `nf.hop` becomes `nf-2026-11-21T05.07.09-1.hop`: names sort by time and never meet.
fn path(output: &Path, number: u64) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let at = utc(clock_sync().realtime_ns);
    let at = at
        .trim_end_matches(" UTC")
        .replace(' ', "T")
        .replace(':', ".");
    output.with_file_name(format!("{stem}-{at}-{number}.hop"))
}

/// Files that a killed recorder was writing.
pub(crate) fn begun(output: &Path, recorder: Writer) -> Vec<PathBuf> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    let (begin, end) = (format!("{stem}-"), recorder.ending());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let whole = name.strip_suffix(&end)?;
            whole
                .starts_with(&begin)
                .then(|| output.with_file_name(whole))
        })
        .collect()
}

/// Runs `drive` with a flight recorder as what the rings are drained into.
pub(super) fn run(
    request: &RecordRequest,
    flight: &FlightRequest,
    tables: &Tables<'_>,
    asked: &Asked,
    triggers: Vec<Trigger>,
    drive: impl FnOnce(&mut Flight<'_, Out>) -> RecorderResult,
) -> Result<(RecorderResult, FlightCounts, Saved)> {
    let options = FlightOptions {
        before: flight.before,
        after: flight.after,
        cool_down: flight.cool_down,
        bytes_max: flight.memory as u64,
        at_exit: asked.at_exit(),
        recording: tables.meta.start,
        frequency: tables.meta.tsc_frequency,
    };
    let saved = RefCell::new(Saved::default());
    // The file that is being written: one at a time.
    let open_place: RefCell<Option<Place>> = RefCell::default();
    let mut number = 0;
    let mut open = |start| -> std::result::Result<Opened<Out>, TraceError> {
        number += 1;
        let path = path(&request.output, number);
        let (file, place) = output::create(&path, request.mode).map_err(io::Error::other)?;
        let writer = tables.open(file, start)?;
        // An error leaves what was saved until then.
        let mut place = place;
        place.keep();
        open_place.replace(Some(place));
        Ok((path, writer))
    };
    let mut done = |path: &PathBuf, mut out: Out, summary: &Summary| {
        out.flush()?;
        out.get_ref().sync_data()?;
        if let Some(place) = open_place.take() {
            place.put().map_err(io::Error::other)?;
        }
        let mut saved = saved.borrow_mut();
        crate::status::say!("saved {} ({} records)", path.display(), summary.recorded);
        saved.files.push_back(path.clone());
        // Only what this recording has saved itself.
        while saved.files.len() > flight.keep {
            if let Some(oldest) = saved.files.pop_front() {
                saved.removed += 1;
                match fs::remove_file(oldest) {
                    // Somebody has moved it to where it is wanted.
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    other => other?,
                }
            }
        }
        Ok(())
    };
    let parts = FlightParts {
        triggers: Triggers::new(triggers),
        asked: &|| asked.signalled(),
        open: &mut open,
        saved: &mut done,
        now: &clock_sync,
    };
    let mut flight = Flight::new(options, parts);
    flight.off_cpu(tables.off_cpu);
    let outcome = drive(&mut flight);
    let counts = flight.finish(&outcome.ended)?;
    Ok((outcome, counts, saved.into_inner()))
}
