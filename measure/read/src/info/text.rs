//! The same for people.
use super::contents::{Held, Info};
use super::slices;
use hopscope_event::Summary;
use hopscope_report::{printable, write_machine, write_notes};
use std::io::{self, Write};

impl Info<'_> {
    /// Lines for people.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let info = self;
        file(out, info)?;
        origin(out, info)?;
        for process in info.processes {
            let words = printable(&process.command_line.join(" "));
            writeln!(out, "target     {}: {words}", process.pid)?;
        }
        packets(out, info)?;
        if let Some(slices) = &info.slices {
            slices::write(out, slices)?;
        }
        if info.is_of_packets_only() {
            return match info.summary {
                Some(summary) => write_notes(out, summary),
                None => Ok(()),
            };
        }
        records(out, info)?;
        hopscope_report::write_counters(out, info.counters)?;
        let budget = info.budget.map(|entry| (entry, info.function_entries));
        hopscope_report::write_choices(
            out,
            info.meta,
            info.thin,
            budget,
            info.flight,
            info.triggers,
        )?;
        let Some(summary) = info.summary else {
            return Ok(());
        };
        counted_by_the_recorder(out, info.held, summary)
    }
}

fn file(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    writeln!(
        out,
        "file       {}: hopscope trace, format {}, {} bytes in {} chunks",
        printable(info.file),
        info.format,
        info.file_bytes,
        info.chunks
    )?;
    if let Some(d) = &info.damage {
        writeln!(
            out,
            "DAMAGED    at byte {}: {}; {} places skipped, {} bytes at the end given up",
            d.at,
            printable(d.what),
            d.places_skipped,
            d.bytes_given_up_at_the_end
        )?;
    }
    if info.unknown_chunks > 0 {
        writeln!(
            out,
            "newer      {} chunks of types that this hopscope does not know were passed over",
            info.unknown_chunks
        )?;
    }
    Ok(())
}

fn origin(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    let meta = info.meta;
    let version = printable(&meta.hopscope_version);
    let command = printable(&meta.command_line.join(" "));
    writeln!(out, "written by hopscope {version}: {command}")?;
    write_machine(out, meta, &format!("; {} sync points", info.clock_syncs))?;
    let Some(summary) = info.summary else {
        let why = match info.damage {
            Some(_) => "the recorder was killed, or the end of the file is lost",
            None => "the recorder was killed, or still runs",
        };
        return writeln!(out, "ended      not in order: {why}");
    };
    let ns = i128::from(summary.end.monotonic_ns) - i128::from(meta.start.monotonic_ns);
    let (seconds, why) = (ns as f64 / 1e9, printable(&summary.ended_because));
    writeln!(out, "ended      after {seconds:.3} s: {why}")
}

fn records(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    writeln!(
        out,
        "measured   {} functions of {} modules, {} refused; {} processes, {} threads",
        info.functions,
        info.modules,
        info.refusals,
        info.processes.len(),
        info.threads.len()
    )?;
    let Held {
        records,
        lost,
        torn,
    } = info.held;
    write!(out, "records    {records} in {} batches", info.batches)?;
    if let Some(bytes) = info.bytes_per_record {
        write!(out, ", {bytes:.2} bytes each")?;
    }
    writeln!(out, "; a ring held {} a thread", info.meta.ring_records)?;
    writeln!(
        out,
        "losses     {lost} lost (overwritten before the recorder came), {torn} torn (never stored)"
    )?;
    for thread in info
        .threads
        .iter()
        .filter(|t| t.held.lost > 0 || t.held.torn > 0)
    {
        let tid = match thread.tid {
            Some(0) | None => "of unknown id".to_owned(),
            Some(tid) => tid.to_string(),
        };
        let comm = thread
            .comm
            .map_or(String::new(), |comm| format!(" ({})", printable(comm)));
        let Held {
            records,
            lost,
            torn,
        } = thread.held;
        writeln!(
            out,
            "           thread {tid}{comm}: {records} recorded, {lost} lost, {torn} torn"
        )?;
    }
    Ok(())
}

fn counted_by_the_recorder(out: &mut impl Write, held: Held, summary: &Summary) -> io::Result<()> {
    let s = summary;
    if (s.recorded, s.lost, s.torn) != (held.records, held.lost, held.torn) {
        writeln!(
            out,
            "DIFFERS    the recorder counted {} recorded, {} lost, {} torn",
            s.recorded, s.lost, s.torn
        )?;
    }
    match s.calls_unmeasured {
        Some(calls) => writeln!(out, "unmeasured {calls} calls of threads that had no ring")?,
        None => writeln!(out, "unmeasured not known of a part of a recording")?,
    }
    write_notes(out, s)
}

fn packets(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    for s in info.streams {
        let (from, to, traffic) = (
            printable(&s.sender),
            printable(&s.receiver),
            printable(&s.traffic),
        );
        writeln!(out, "stream     {from} to {to}: {traffic}")?;
    }
    let s = info.stamps;
    if info.streams.is_empty() && s.rows + s.unwritten == 0 {
        return Ok(());
    }
    let bytes = s
        .bytes_per_row
        .map_or(String::new(), |bytes| format!(", {bytes:.2} bytes each"));
    writeln!(
        out,
        "packets    {} rows{bytes}: {} packets, {} lost; {} further arrivals; {} rows unwritten",
        s.rows,
        s.rows.saturating_sub(s.duplicate),
        s.lost,
        s.duplicate,
        s.unwritten
    )
}
