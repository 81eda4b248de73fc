//! What a recording says of itself beyond its calls: context switches, and what was left out on
//! purpose.
use crate::printable_text::printable;
use crate::recording::Recording;
use crate::units::{Scale, TimeUnit, grouped, ns_text};
use hopscope_event::{
    BeginsLate, BudgetEntry, EndsEarly, FlightEntry, FunctionEntry, OffCpuEntry, RecordingMeta,
    ThinEntry, TriggerEntry,
};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Most triggers that are listed one by one.
const TRIGGERS_MAX: usize = 10;
/// Most functions that are listed.
const LEFT_OUT_MAX: usize = 10;
/// What is shown around a call that fired, on either side.
const AROUND_NS: f64 = 1e6;

pub(crate) fn write(
    out: &mut impl Write,
    recording: &Recording<'_>,
    scale: &Scale,
) -> io::Result<()> {
    if let Some(off_cpu) = recording.off_cpu {
        switches(out, off_cpu)?;
    }
    left_out(out, recording.thin, recording.flight)?;
    if let Some(entry) = recording.budget {
        budget(out, entry, recording.meta, recording.functions, scale)?;
    }
    triggers(out, recording.meta, recording.triggers, scale)
}

/// What a recording leaves out on purpose, and what fired in it: for who shows nothing else of it.
///
/// # Errors
/// Those of `out`.
pub fn write_choices(
    out: &mut impl Write,
    meta: &RecordingMeta,
    thin: Option<&ThinEntry>,
    within: Option<(&BudgetEntry, &[FunctionEntry])>,
    flight: Option<&FlightEntry>,
    fired: &[TriggerEntry],
) -> io::Result<()> {
    left_out(out, thin, flight)?;
    let scale = Scale::new(TimeUnit::Ns, meta.tsc_frequency);
    if let Some((entry, functions)) = within {
        budget(out, entry, meta, functions, &scale)?;
    }
    triggers(out, meta, fired, &scale)
}

fn left_out(
    out: &mut impl Write,
    thin: Option<&ThinEntry>,
    flight: Option<&FlightEntry>,
) -> io::Result<()> {
    thin.map_or(Ok(()), |thin| kept(out, thin))?;
    flight.map_or(Ok(()), |flight| window(out, flight))
}

fn triggers(
    out: &mut impl Write,
    meta: &RecordingMeta,
    triggers: &[TriggerEntry],
    scale: &Scale,
) -> io::Result<()> {
    for trigger in triggers.iter().take(TRIGGERS_MAX) {
        fired(out, trigger, (trigger.at - meta.start.tsc).into(), scale)?;
    }
    match triggers.len().saturating_sub(TRIGGERS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "trigger    and {more} more times"),
    }
}

fn switches(out: &mut impl Write, o: &OffCpuEntry) -> io::Result<()> {
    if let Some(why_not) = &o.why_not {
        return writeln!(out, "off CPU    not recorded: {}", printable(why_not));
    }
    writeln!(
        out,
        "off CPU    {} intervals, each begin and end known to {}; {} switches lost, {} without their other half",
        grouped(o.intervals),
        ns_text(o.clock_error_ns as f64),
        grouped(o.lost),
        grouped(o.unpaired)
    )
}

fn kept(out: &mut impl Write, t: &ThinEntry) -> io::Result<()> {
    writeln!(
        out,
        "runs       1 of {} kept: {} of {}, {} cut; {} records left out",
        grouped(t.every),
        grouped(t.runs_kept),
        grouped(t.runs_seen),
        grouped(t.runs_cut),
        grouped(t.records_left_out)
    )
}

/// Of functions that were left out while recording, when: their later calls are their callers' time.
fn budget(
    out: &mut impl Write,
    b: &BudgetEntry,
    meta: &RecordingMeta,
    functions: &[FunctionEntry],
    scale: &Scale,
) -> io::Result<()> {
    let while_recording = b.left_out.iter().filter(|one| one.at.is_some());
    let mut while_recording: Vec<_> = while_recording.collect();
    while_recording.sort_by(|a, b| b.percent.total_cmp(&a.percent));
    writeln!(
        out,
        "budget     {} % of the time: {} functions measured, {} left out before the recording and {} during it",
        b.percent,
        grouped(b.measured),
        grouped((b.left_out.len() - while_recording.len()) as u64),
        grouped(while_recording.len() as u64)
    )?;
    for one in while_recording.iter().take(LEFT_OUT_MAX) {
        let function = functions.get(one.function.0 as usize);
        let name = function.map_or("?", |f| f.name.as_str());
        let at = one.at.map_or(0, |at| (at - meta.start.tsc).into());
        writeln!(
            out,
            "           {} until {} after the start: {} calls/s, {:.1} %",
            printable(name),
            scale.text(at),
            grouped(one.calls_per_s),
            one.percent
        )?;
    }
    match while_recording.len().saturating_sub(LEFT_OUT_MAX) {
        0 => Ok(()),
        more => writeln!(out, "           and {more} more"),
    }
}

fn window(out: &mut impl Write, f: &FlightEntry) -> io::Result<()> {
    writeln!(
        out,
        "flight     {} before each of {} triggers to {} after it; {} records outside of such times \
         were left out on purpose so far",
        ns_text(f.before_ns.0 as f64),
        grouped(f.fired),
        ns_text(f.after_ns.0 as f64),
        grouped(f.records_left_out)
    )?;
    let late = f.begins_late.map(|why| match why {
        BeginsLate::RecordingBegan => "begins late: the recording itself began then",
        BeginsLate::MemoryFull => {
            "BEGINS LATE: the memory held no more before the trigger; raise --flight-memory"
        }
        BeginsLate::PreviousFile => "begins late: what lies before is in the file before this one",
    });
    let early = f.ends_early.map(|why| match why {
        EndsEarly::RecordingEnded => "ends early: the recording itself ended then",
        EndsEarly::FileFull => "ends early: the file was full and continues in the next one",
    });
    for text in late.into_iter().chain(early) {
        writeln!(out, "           {text}")?;
    }
    if f.records_left_out_for_room > 0 {
        writeln!(
            out,
            "           of the records left out, {} for lack of memory",
            grouped(f.records_left_out_for_room)
        )?;
    }
    if f.fired_in_cool_down > 0 {
        writeln!(
            out,
            "           fired {} times more in the cool-down after a file; that is in none",
            grouped(f.fired_in_cool_down)
        )?;
    }
    Ok(())
}

fn fired(out: &mut impl Write, t: &TriggerEntry, at: i128, scale: &Scale) -> io::Result<()> {
    let took = t.took_ticks.map_or(String::new(), |ticks| {
        format!(": {}", scale.text(ticks.into()))
    });
    let trigger = printable(&t.trigger);
    write!(
        out,
        "trigger    {trigger}{took}, {} after the start",
        scale.text(at)
    )?;
    let Some(ticks) = t.took_ticks else {
        return writeln!(out);
    };
    let ms = |ticks: i128, more: f64| ((scale.ns(ticks) + more) / 1e6).max(0.0);
    writeln!(
        out,
        ": --from {:.3}ms --to {:.3}ms",
        ms(at - i128::from(ticks), -AROUND_NS),
        ms(at, AROUND_NS)
    )
}

/// For the summary of the report for programs.
pub(crate) fn values(recording: &Recording<'_>) -> [(&'static str, Value); 5] {
    [
        ("off_cpu", json!(recording.off_cpu)),
        ("thin", json!(recording.thin)),
        ("budget", json!(recording.budget)),
        ("triggers", json!(recording.triggers)),
        ("flight", json!(recording.flight)),
    ]
}
