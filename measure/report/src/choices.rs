//! What a recording says of itself beyond its calls: context switches, and what was left out on
//! purpose.
use crate::recording::Recording;
use crate::units::{Scale, grouped, ns_text};
use crate::words::printable;
use hopscope_event::{OffCpuEntry, ThinEntry, TriggerEntry};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Most triggers that are listed one by one.
const TRIGGERS_MAX: usize = 10;

pub(crate) fn write(
    out: &mut impl Write,
    recording: &Recording<'_>,
    scale: &Scale,
) -> io::Result<()> {
    if let Some(off_cpu) = recording.off_cpu {
        switches(out, off_cpu)?;
    }
    if let Some(thin) = recording.thin {
        kept(out, thin)?;
    }
    let start = recording.meta.start.tsc;
    for trigger in recording.triggers.iter().take(TRIGGERS_MAX) {
        fired(out, trigger, (trigger.at - start).into(), scale)?;
    }
    match recording.triggers.len().saturating_sub(TRIGGERS_MAX) {
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
        "off CPU    {} times, each to {}; {} switches lost, {} without their other half",
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

fn fired(out: &mut impl Write, t: &TriggerEntry, at: i128, scale: &Scale) -> io::Result<()> {
    let took = t.took_ticks.map_or(String::new(), |ticks| {
        format!(": {}", scale.text(ticks.into()))
    });
    let (trigger, at) = (printable(&t.trigger), scale.text(at));
    writeln!(out, "trigger    {trigger}{took}, {at} after the start")
}

/// For the summary of the report for programs.
pub(crate) fn values(recording: &Recording<'_>) -> [(&'static str, Value); 3] {
    [
        ("off_cpu", json!(recording.off_cpu)),
        ("thin", json!(recording.thin)),
        ("triggers", json!(recording.triggers)),
    ]
}
