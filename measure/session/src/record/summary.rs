//! What `record` says: a line each second, the closing numbers, the dry run.
use super::flight::Saved;
use super::slices::SlicesDone;
use super::{RecordRequest, check_cost, stops};
use crate::attach::{captures, left_out};
use crate::error::Result;
use crate::slowdown;
use crate::status::text_line;
use hopscope_event::slice::Counter;
use hopscope_event::{CostCheckEntry, OffCpuEntry, RecordingMeta, Summary, ThinEntry};
use hopscope_probe::plan::Plan;
use hopscope_probe::recorder::Status;
use hopscope_probe::recorder::flight::FlightCounts;
use std::collections::BTreeMap;
use std::io::Write;

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

fn reasons(plan: &Plan) -> BTreeMap<&str, usize> {
    plan.refusals.iter().fold(BTreeMap::new(), |mut m, r| {
        *m.entry(r.reason.as_str()).or_default() += 1;
        m
    })
}

/// What was kept of everything; nothing is set when all of it was.
#[derive(Clone, Copy)]
pub(super) struct Choice<'a> {
    /// Of a file that could not be written on: how many records are in it.
    pub in_file: Option<u64>,
    pub thin: Option<&'a ThinEntry>,
    pub flight: Option<&'a (FlightCounts, Saved)>,
    pub slices: Option<&'a SlicesDone>,
    pub checked: Option<&'a CostCheckEntry>,
}

impl Choice<'_> {
    fn value(&self) -> serde_json::Value {
        let flight = self.flight.map(|(c, saved)| {
            serde_json::json!({
                "files": saved.files, "files_saved": c.files, "files_removed": saved.removed,
                "files_short_of_room": c.files_short_of_room, "fired": c.fired,
                "fired_in_cool_down": c.fired_in_cool_down, "records_saved": c.saved.records,
                "records_left_out": c.left_out, "records_left_out_for_room": c.left_out_for_room,
                "switches_left_out_for_room": c.switches_left_out_for_room,
            })
        });
        serde_json::json!({"thin": self.thin, "flight": flight})
    }

    /// `null`: not asked for.
    fn slices_value(&self) -> serde_json::Value {
        self.slices.map_or(serde_json::Value::Null, |done| {
            let (summary, failed) = (done.summary.as_ref().ok(), done.summary.as_ref().err());
            serde_json::json!({"packets": done.packets, "summary": summary, "failed": failed})
        })
    }

    fn slices_text(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Some(done) = self.slices else {
            return Ok(());
        };
        let summary = match &done.summary {
            Ok(summary) => summary,
            Err(why) => {
                return text_line!(
                    out,
                    "{} packets sliced; losses are unknown: {why}",
                    done.packets
                );
            }
        };
        let count = |counter| summary.counters.get(counter);
        text_line!(
            out,
            "{} packets sliced; lost: {} without a slot, {} the ring was full, {} never ended; \
             {} under way at the end",
            done.packets,
            count(Counter::NoSlot),
            count(Counter::RingFull),
            count(Counter::Aged) + count(Counter::StaleEnded),
            summary.in_flight
        )
    }

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
        let Some((c, saved)) = self.flight else {
            return Ok(());
        };
        text_line!(
            out,
            "fired {} times, {} of these in the cool-down and not saved; {} records in {} files, \
             {} of them taken away again; {} records left out on purpose",
            c.fired,
            c.fired_in_cool_down,
            c.saved.records,
            c.files,
            saved.removed,
            c.left_out
        )?;
        if c.left_out_for_room + c.switches_left_out_for_room > 0 {
            text_line!(
                out,
                "the memory was full before its time: {} records and {} context switches went, \
                 {} files hold less time before their trigger; raise --flight-memory",
                c.left_out_for_room,
                c.switches_left_out_for_room,
                c.files_short_of_room
            )?;
        }
        Ok(())
    }
}

pub(super) fn print(
    request: &RecordRequest,
    s: &Summary,
    off_cpu: Option<&OffCpuEntry>,
    choice: Choice<'_>,
    plan: &Plan,
    meta: &RecordingMeta,
    bytes: u64,
) -> Result<()> {
    // A command that is measured has standard output to itself.
    let mut out: Box<dyn Write> = if request.command.is_empty() {
        Box::new(std::io::stdout().lock())
    } else {
        Box::new(std::io::stderr().lock())
    };
    let functions = plan.functions.len();
    if request.json {
        let mut line = serde_json::to_value(s)?;
        let extra = serde_json::json!({
            "type": "summary", "schema": 1, "file": choice.flight.is_none().then_some(&request.output), "functions": functions,
            "refused": plan.refusals.len(), "left_out": plan.left_out(), "refused_by_reason": reasons(plan),
            "captures": plan.captures, "not_captured": plan.not_captured.len(),
            "checked_copy_tsc": captures::copy_cost_ticks(plan),
            "bytes": bytes, "probe_cost": meta.probe_cost, "cost_check": choice.checked, "tsc_hz": meta.tsc_frequency,
            "records_in_file": choice.in_file, "off_cpu": off_cpu, "choice": choice.value(), "slices": choice.slices_value(),
        });
        if let (Some(line), serde_json::Value::Object(extra)) = (line.as_object_mut(), extra) {
            line.extend(extra);
        }
        writeln!(out, "{line}")?;
        return Ok(());
    }
    text_line!(
        out,
        "{} records of {functions} functions on {} threads{}: {}",
        s.recorded,
        s.threads_measured,
        left_out(plan),
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
    if let Some(in_file) = choice.in_file {
        text_line!(
            out,
            "{} is incomplete: {in_file} of {} records are in it",
            request.output.display(),
            s.recorded
        )?;
    }
    choice.text(&mut out)?;
    choice.slices_text(&mut out)?;
    match off_cpu {
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
    for (reason, n) in reasons(plan) {
        text_line!(out, "refused {n}: {reason}")?;
    }
    captures::print(&mut out, plan)?;
    stops::print(&mut out, &s.stops)?;
    match meta.probe_cost {
        Some(cost) => text_line!(
            out,
            "probe cost {} ticks a call ({}…{}) in a loop of calls, {} of them inside the measured time{}; tick = {:.3} ns",
            cost.pair_ticks[1],
            cost.pair_ticks[0],
            cost.pair_ticks[2],
            cost.bias_ticks[1],
            cost.memory_bound.map_or_else(String::new, |most| format!(
                "; up to {} where a call misses the caches",
                most.pair_ticks
            )),
            1e9 / meta.tsc_frequency.0 as f64
        )?,
        None => text_line!(out, "probe cost not measured: times are raw")?,
    }
    if let Some(checked) = choice.checked {
        text_line!(out, "{}", check_cost::text(checked))?;
    }
    for note in &s.notes {
        text_line!(out, "note: {note}")?;
    }
    if let Some((_, saved)) = choice.flight {
        match saved.files.back() {
            Some(last) => text_line!(out, "next: hopscope report {}", last.display())?,
            None => text_line!(out, "nothing fired, so there is no file")?,
        }
        return Ok(());
    }
    if std::fs::metadata(&request.output).is_ok_and(|found| found.is_file()) {
        let (path, megabytes) = (request.output.display(), bytes as f64 / 1e6);
        text_line!(
            out,
            "{path} ({megabytes:.1} MB); next: hopscope report {path}"
        )?;
    }
    Ok(())
}
