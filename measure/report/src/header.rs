//! Where the numbers come from: the first thing to read on every report.
use crate::printable_text::{printable, utc};
use crate::recording::Recording;
use crate::units::{Scale, grouped, ns_text};
use hopscope_event::{CostCheckEntry, ProbeCost, RecordingMeta, Summary};
use std::io::{self, Write};

pub(crate) fn write(
    out: &mut impl Write,
    recording: &Recording<'_>,
    scale: &Scale,
) -> io::Result<()> {
    let meta = recording.meta;
    let words: Vec<String> = meta.command_line.iter().map(|w| printable(w)).collect();
    writeln!(out, "command    {}", words.join(" "))?;
    for process in recording.processes {
        let words: Vec<String> = process.command_line.iter().map(|w| printable(w)).collect();
        writeln!(out, "target     {}: {}", process.pid, words.join(" "))?;
    }
    write_machine(out, meta, "")?;
    match meta.probe_cost {
        None if recording.is_of_packets_only() => {}
        Some(cost) => {
            let text = cost_text(cost, recording.cost_check, scale);
            writeln!(out, "probes     {text}")?;
        }
        None => writeln!(out, "probes     cost not measured: times are not corrected")?,
    }
    crate::counters::write(out, recording.counters)?;
    summary(out, recording)?;
    crate::choices::write(out, recording, scale)?;
    if !recording.filter.is_empty() {
        writeln!(out, "shown      {}", recording.filter)?;
    }
    writeln!(out)
}

/// The machine, its clock with `more` of it, and the begin.
///
/// # Errors
/// Those of `out`.
pub fn write_machine(out: &mut impl Write, meta: &RecordingMeta, more: &str) -> io::Result<()> {
    let (host, kernel) = (printable(&meta.host), printable(&meta.kernel));
    writeln!(
        out,
        "host       {host}, {kernel}, {} × {}",
        meta.cpus_online,
        printable(&meta.cpu)
    )?;
    let doubt = if meta.tsc_invariant {
        "invariant"
    } else {
        "NOT known to be invariant: times are doubtful"
    };
    let mhz = meta.tsc_frequency.0 as f64 / 1e6;
    writeln!(out, "clock      TSC at {mhz:.3} MHz, {doubt}{more}")?;
    writeln!(out, "started    {}", utc(meta.start.realtime_ns))
}

fn cost_text(cost: ProbeCost, check: Option<&CostCheckEntry>, scale: &Scale) -> String {
    let range = |[low, median, high]: [u64; 3]| {
        let text = |ticks| scale.text(i128::from(ticks));
        format!("{} ({}..{})", text(median), text(low), text(high))
    };
    let mut in_place = match (cost.in_place, cost.memory_bound) {
        (Some(found), _) => format!(
            "{} a call, by {} pairs of windows with probes and without: taken out instead",
            range(found.call_ticks),
            found.pairs,
        ),
        (None, Some(most)) => format!(
            "up to {} and {} where its stamps end the overlap of cache misses; ranges take that in",
            scale.text(i128::from(most.bias_ticks)),
            scale.text(i128::from(most.pair_ticks))
        ),
        (None, None) => "not measured, so that ranges begin at 0".to_owned(),
    };
    let fused = cost.fused.map_or_else(String::new, |fused| {
        format!(
            "           a call right behind the end of another one has that end's stamp for its begin: it reads {} too long, which is all that it costs\n",
            range(fused.call_ticks)
        )
    });
    if cost.ahead_ticks > 0 {
        in_place += &format!(
            "\n           an exit's clock may be read up to {} before the body is done (this processor's rdtsc does not wait for it):\n           that much may be the caller's own time instead; ranges take that in",
            scale.text(i128::from(cost.ahead_ticks))
        );
    }
    if let Some(check) = check {
        if let Some(why) = &check.why_not {
            in_place += &format!(
                "\n           not checked in the program: {}",
                printable(why)
            );
        }
        if let (Some(found), functions @ 1..) = (check.in_place, check.functions_not_switched) {
            let percent = f64::from(found.not_switched_per_mille) / 10.0;
            in_place += &format!(
                "\n           without {functions} functions ({percent:.1} % of the calls), whose probes stay on"
            );
        }
    }
    format!(
        "in a loop of calls a call reads {} too long and costs its caller {}: taken out where it says corrected\n{fused}           \
         in place {in_place}",
        range(cost.bias_ticks),
        range(cost.pair_ticks)
    )
}

fn summary(out: &mut impl Write, recording: &Recording<'_>) -> io::Result<()> {
    if let Some(damage) = recording.damage {
        writeln!(out, "DAMAGED    {}", printable(damage))?;
    }
    let Some(s) = recording.summary else {
        return writeln!(
            out,
            "ended      not in order: the recorder's own counts of lost records are missing"
        );
    };
    let took = s
        .end
        .monotonic_ns
        .saturating_sub(recording.meta.start.monotonic_ns);
    let why = printable(&s.ended_because);
    writeln!(out, "ended      after {}: {why}", ns_text(took as f64))?;
    if recording.is_of_packets_only() {
        return write_notes(out, s);
    }
    writeln!(
        out,
        "records    {} recorded, {} lost, {} torn; {} calls unmeasured; functions refused: {}",
        grouped(s.recorded),
        grouped(s.lost),
        grouped(s.torn),
        s.calls_unmeasured
            .map_or("an unknown number of".to_owned(), grouped),
        grouped(recording.refusals.len() as u64),
    )?;
    let pauses = |ns: &[u64]| {
        let texts: Vec<_> = ns.iter().map(|ns| ns_text(*ns as f64)).collect();
        if texts.is_empty() {
            "not measured".to_owned()
        } else {
            texts.join(", ")
        }
    };
    match s.recorder_cpu_ns {
        Some(cpu_ns) => writeln!(
            out,
            "pauses     attach {}, detach {}; recorder used {} of CPU; threads measured: {}",
            pauses(&s.attach_pause_ns),
            pauses(&s.detach_pause_ns),
            ns_text(cpu_ns as f64),
            grouped(s.threads_measured),
        )?,
        None => writeln!(
            out,
            "part       of a recording, with pauses and processor time that are not known here; threads measured: {}",
            grouped(s.threads_measured),
        )?,
    }
    write_notes(out, s)
}

/// # Errors
/// Those of `out`.
pub fn write_notes(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    for note in &summary.notes {
        writeln!(out, "note       {}", printable(note))?;
    }
    Ok(())
}
