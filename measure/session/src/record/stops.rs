//! How long the targets' threads were stopped, as a summary says it.
use hopscope_event::table::{Stops, TargetStops};
use std::io::{self, Write};

pub(super) fn print(out: &mut impl Write, stops: &Stops) -> io::Result<()> {
    phase(out, "attach", &stops.attach)?;
    if !stops.dlopen.is_empty() {
        phase(out, "dlopen", &stops.dlopen)?;
    }
    phase(out, "detach", &stops.detach)?;
    if stops.real_time_refused {
        writeln!(
            out,
            "note: no real-time priority for the stops (CAP_SYS_NICE): they may be longer on a busy machine"
        )?;
    }
    Ok(())
}

/// One line each target; what forked children add is theirs.
fn phase(out: &mut impl Write, name: &str, targets: &[TargetStops]) -> io::Result<()> {
    let us = |ns: u64| ns as f64 / 1e3;
    for t in targets {
        writeln!(
            out,
            "{name}: process {} stopped for at most {:.0} µs at once (thread {}), {:.0} µs in all (thread {}), {} stops a thread, {} threads",
            t.pid,
            us(t.longest_ns),
            t.longest_tid,
            us(t.sum_ns),
            t.sum_tid,
            t.stops,
            t.threads
        )?;
    }
    if targets.is_empty() {
        writeln!(out, "{name}: no thread was stopped")?;
    }
    Ok(())
}
