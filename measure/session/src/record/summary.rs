//! What `record` says: a line each second, and the closing numbers, which are one value for programs and for people.
use super::flight::Saved;
use super::slices::SlicesDone;
use super::{RecordRequest, budget, check_cost, stops};
use crate::attach::{captures, left_out};
use crate::error::Result;
use crate::slowdown;
use crate::status::text_line;
use hopscope_event::{
    BudgetEntry, CaptureEntry, CostCheckEntry, CounterEntry, OffCpuEntry, ProbeCost, RecordingMeta,
    Summary, ThinEntry, TscFrequency,
};
use hopscope_probe::locate::basename;
use hopscope_probe::plan::{InlinedPlaces, PlacesOfCalls, Plan};
use hopscope_probe::recorder::Status;
use hopscope_probe::recorder::flight::FlightCounts;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};

/// One line on stderr; on a terminal it replaces the last one.
pub(super) fn status(s: &Status, tty: bool) {
    let line = format!(
        "{:5.0} s  {:>12.0} records/s  lost {}  {}",
        s.elapsed.as_secs_f64(),
        s.records_per_s,
        s.lost,
        slowdown::text(s.slowdown_percent)
    );
    if tty {
        eprint!("\r{line}\x1b[K");
    } else {
        eprintln!("{line}");
    }
}

/// What a recording came to.
#[derive(Serialize)]
pub(super) struct Closing<'a> {
    r#type: &'static str,
    schema: u32,
    #[serde(flatten)]
    summary: &'a Summary,
    /// `None` of a flight recorder, which has several.
    file: Option<&'a Path>,
    #[serde(flatten)]
    end: AtEnd<'a>,
    functions: usize,
    inlined: Option<InlinedPart<'a>>,
    /// Timed where they are made.
    calls: Option<CallsPart>,
    refused: usize,
    left_out: usize,
    refused_by_reason: BTreeMap<&'a str, usize>,
    captures: &'a [CaptureEntry],
    counters: &'a [CounterEntry],
    not_captured: usize,
    checked_copy_tsc: Option<u64>,
    probe_cost: Option<ProbeCost>,
    tsc_hz: TscFrequency,
    #[serde(skip)]
    plan: &'a Plan,
}

/// Beside the summary that is in the file, what is known at the end of a recording.
#[derive(Serialize)]
pub(super) struct AtEnd<'a> {
    pub bytes: u64,
    /// Of a file that could not be written on: how many records are in it.
    pub records_in_file: Option<u64>,
    pub off_cpu: Option<&'a OffCpuEntry>,
    pub cost_check: Option<&'a CostCheckEntry>,
    pub choice: KeptPart<'a>,
    /// `None`: not asked for.
    pub slices: Option<&'a SlicesDone>,
}

/// What was kept of everything; nothing is set when all of it was.
#[derive(Serialize)]
pub(super) struct KeptPart<'a> {
    pub thin: Option<&'a ThinEntry>,
    pub budget: Option<&'a BudgetEntry>,
    pub flight: Option<Flight<'a>>,
}

/// Of calls that are timed where they are made.
#[derive(Serialize)]
struct CallsPart {
    places: usize,
    refused: usize,
    /// Functions that are not measured themselves.
    instead_of: usize,
}

impl CallsPart {
    fn of(plan: &Plan) -> Option<CallsPart> {
        (plan.calls != PlacesOfCalls::default()).then_some(CallsPart {
            places: plan.calls.timed,
            refused: plan.calls.refused,
            instead_of: plan.in_callers.len(),
        })
    }

    fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        text_line!(
            out,
            "calls: {} places are timed, {} refused",
            self.places,
            self.refused
        )
    }
}

/// Of functions that are timed where they were inlined.
#[derive(Serialize)]
struct InlinedPart<'a> {
    places: usize,
    refused: usize,
    places_left_out: usize,
    instructions: usize,
    instructions_of_others: usize,
    instructions_apart: usize,
    mostly_apart: &'a BTreeSet<String>,
    may_split: &'a BTreeSet<String>,
    may_join: &'a BTreeSet<String>,
    places_in_no_function: usize,
    more: bool,
}

impl<'a> InlinedPart<'a> {
    fn of(places: &'a InlinedPlaces) -> Option<InlinedPart<'a>> {
        let counts = &places.counts;
        (*places != InlinedPlaces::default()).then_some(InlinedPart {
            places: places.timed,
            refused: places.refused,
            places_left_out: places.left_out,
            instructions: counts.own,
            instructions_of_others: counts.of_others,
            instructions_apart: counts.apart,
            mostly_apart: &places.mostly_apart,
            may_split: &places.splits,
            may_join: &places.joins,
            places_in_no_function: places.homeless,
            more: places.more,
        })
    }

    fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        text_line!(
            out,
            "inlined: {} places of {} instructions are timed, {} of others among them; {} instructions lie apart and count for the code around; {} places refused, {} left out, {} in no function{}",
            self.places,
            self.instructions + self.instructions_of_others,
            self.instructions_of_others,
            self.instructions_apart,
            self.refused,
            self.places_left_out,
            self.places_in_no_function,
            if self.more { "; a file has more" } else { "" }
        )?;
        let apart = "most instructions lie apart, so that not all of their calls may be seen";
        named(out, self.mostly_apart, apart)?;
        let split = "one call may count as several, since control comes in at several points";
        named(out, self.may_split, split)?;
        let join = "several calls may count as one, since a loop leads to the begin, or copies are not told apart";
        named(out, self.may_join, join)
    }
}

fn named(out: &mut impl Write, functions: &BTreeSet<String>, what: &str) -> std::io::Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let some = functions.iter().take(NAMES_AT_MOST);
    let some: Vec<&str> = some.map(String::as_str).collect();
    let more = if functions.len() > NAMES_AT_MOST {
        ", …"
    } else {
        ""
    };
    text_line!(
        out,
        "of {} functions {what}: {}{more}",
        functions.len(),
        some.join(", ")
    )
}

#[derive(Serialize)]
pub(super) struct Flight<'a> {
    files: &'a VecDeque<PathBuf>,
    files_saved: u64,
    files_removed: u64,
    files_short_of_room: u64,
    fired: u64,
    fired_in_cool_down: u64,
    records_saved: u64,
    records_left_out: u64,
    records_left_out_for_room: u64,
    switches_left_out_for_room: u64,
}

impl<'a> Flight<'a> {
    pub(super) fn of((counts, saved): &'a (FlightCounts, Saved)) -> Flight<'a> {
        Flight {
            files: &saved.files,
            files_saved: counts.files,
            files_removed: saved.removed,
            files_short_of_room: counts.files_short_of_room,
            fired: counts.fired,
            fired_in_cool_down: counts.fired_in_cool_down,
            records_saved: counts.saved.records,
            records_left_out: counts.left_out,
            records_left_out_for_room: counts.left_out_for_room,
            switches_left_out_for_room: counts.switches_left_out_for_room,
        }
    }
}

impl<'a> Closing<'a> {
    pub(super) fn new(
        request: &'a RecordRequest,
        summary: &'a Summary,
        plan: &'a Plan,
        meta: &RecordingMeta,
        end: AtEnd<'a>,
    ) -> Closing<'a> {
        let mut reasons = BTreeMap::new();
        for refusal in &plan.refusals {
            *reasons.entry(refusal.reason.as_str()).or_default() += 1;
        }
        Closing {
            r#type: "summary",
            schema: 1,
            summary,
            file: end.choice.flight.is_none().then_some(&request.output),
            end,
            functions: plan.functions.len(),
            inlined: InlinedPart::of(&plan.inlined),
            calls: CallsPart::of(plan),
            refused: plan.refusals.len(),
            left_out: plan.left_out(),
            refused_by_reason: reasons,
            captures: &plan.captures,
            counters: &plan.counters,
            not_captured: plan.not_captured.len(),
            checked_copy_tsc: captures::copy_cost_ticks(plan),
            probe_cost: meta.probe_cost,
            tsc_hz: meta.tsc_frequency,
            plan,
        }
    }

    /// A command that is measured has standard output to itself.
    pub(super) fn print(&self, request: &RecordRequest) -> Result<()> {
        let mut out: Box<dyn Write> = if request.command.is_empty() {
            Box::new(std::io::stdout().lock())
        } else {
            Box::new(std::io::stderr().lock())
        };
        if request.json {
            writeln!(out, "{}", serde_json::to_value(self)?)?;
            return Ok(());
        }
        Ok(self.text(&mut out)?)
    }

    fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let s = self.summary;
        text_line!(
            out,
            "{} records of {} functions on {} threads{}: {}",
            s.recorded,
            self.functions,
            s.threads_measured,
            left_out(self.plan),
            s.ended_because
        )?;
        text_line!(
            out,
            "lost {}, torn {}, calls of threads without a ring {}",
            s.lost,
            s.torn,
            s.calls_unmeasured
                .map_or("not known".into(), |calls| calls.to_string())
        )?;
        if let (Some(in_file), Some(path)) = (self.end.records_in_file, self.file) {
            text_line!(
                out,
                "{} is incomplete: {in_file} of {} records are in it",
                path.display(),
                s.recorded
            )?;
        }
        if let Some(inlined) = &self.inlined {
            inlined.text(out)?;
        }
        if let Some(calls) = &self.calls {
            calls.text(out)?;
        }
        self.end.choice.text(out)?;
        if let Some(budget) = self.end.choice.budget {
            budget::text(out, budget, self.plan, self.tsc_hz)?;
        }
        if let Some(slices) = self.end.slices {
            slices.text(out)?;
        }
        match self.end.off_cpu {
            Some(o) => text_line!(
                out,
                "off CPU: {} intervals, each begin and end known to ±{} ns; {} context switches lost, {} without their other half",
                o.intervals,
                o.clock_error_ns,
                o.lost,
                o.unpaired
            )?,
            None => text_line!(out, "off-CPU time not recorded")?,
        }
        for (reason, n) in &self.refused_by_reason {
            let names = refused_names(self.plan, reason, *n);
            text_line!(out, "refused {n}: {reason}{names}")?;
        }
        captures::print(out, self.plan)?;
        stops::print(out, &s.stops)?;
        match self.probe_cost {
            Some(cost) => text_line!(
                out,
                "probe cost {} ticks a call ({}…{}) in a loop of calls, {} of them inside the measured time{}{}; tick = {:.3} ns",
                cost.pair_ticks[1],
                cost.pair_ticks[0],
                cost.pair_ticks[2],
                cost.bias_ticks[1],
                cost.fused.map_or_else(String::new, |fused| format!(
                    ", {} ({}…{}), all of it inside, where the begin has the stamp of the end before it",
                    fused.call_ticks[1], fused.call_ticks[0], fused.call_ticks[2]
                )),
                cost.memory_bound.map_or_else(String::new, |most| format!(
                    "; up to {} where a call misses the caches",
                    most.pair_ticks
                )),
                1e9 / self.tsc_hz.0 as f64
            )?,
            None => text_line!(out, "probe cost not measured: times are raw")?,
        }
        if let Some(checked) = self.end.cost_check {
            text_line!(out, "{}", check_cost::text(checked))?;
        }
        for note in &s.notes {
            text_line!(out, "note: {note}")?;
        }
        if let Some(flight) = &self.end.choice.flight {
            return match flight.files.back() {
                Some(last) => text_line!(out, "next: hopscope report {}", last.display()),
                None => text_line!(out, "nothing fired, so there is no file"),
            };
        }
        let is_file = |path: &&Path| std::fs::metadata(path).is_ok_and(|found| found.is_file());
        if let Some(path) = self.file.filter(is_file) {
            let (path, megabytes) = (path.display(), self.end.bytes as f64 / 1e6);
            text_line!(
                out,
                "{path} ({megabytes:.1} MB); next: hopscope report {path}"
            )?;
        }
        Ok(())
    }
}

impl KeptPart<'_> {
    fn text(&self, out: &mut impl Write) -> std::io::Result<()> {
        if let Some(t) = self.thin {
            text_line!(
                out,
                "1 of {} runs kept: {} of {}, {} cut; {} records left out on purpose",
                t.every,
                t.runs_kept,
                t.runs_seen,
                t.runs_cut,
                t.records_left_out
            )?;
        }
        let Some(flight) = &self.flight else {
            return Ok(());
        };
        text_line!(
            out,
            "fired {} times, {} of these in the cool-down and not saved; {} records in {} files, \
             {} of them taken away again; {} records left out on purpose",
            flight.fired,
            flight.fired_in_cool_down,
            flight.records_saved,
            flight.files_saved,
            flight.files_removed,
            flight.records_left_out
        )?;
        if flight.records_left_out_for_room + flight.switches_left_out_for_room > 0 {
            text_line!(
                out,
                "the memory was full before its time: {} records and {} context switches went, \
                 {} files hold less time before their trigger; raise --flight-memory",
                flight.records_left_out_for_room,
                flight.switches_left_out_for_room,
                flight.files_short_of_room
            )?;
        }
        Ok(())
    }
}

/// Most names behind a reason.
const NAMES_AT_MOST: usize = 3;

/// Of the functions that are refused for one reason, where they are few.
fn refused_names(plan: &Plan, reason: &str, n: usize) -> String {
    if n > NAMES_AT_MOST {
        return String::new();
    }
    let theirs = plan.refusals.iter().filter(|r| r.reason == reason);
    let names = theirs.map(|r| format!("{}!{}", basename(Path::new(&r.module)), r.name));
    format!(" ({})", names.collect::<Vec<_>>().join(", "))
}
