//! The same for people.
use super::contents::{Held, Info};
use hopscope_event::{ClockSync, Summary};
use std::io::{self, Write};

pub fn write(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    file(out, info)?;
    origin(out, info)?;
    for process in info.processes {
        let words = plain(&process.command_line.join(" "));
        writeln!(out, "target     {}: {words}", process.pid)?;
    }
    packets(out, info)?;
    if info.is_of_packets_only() {
        return match info.summary {
            Some(summary) => notes(out, summary),
            None => Ok(()),
        };
    }
    records(out, info)?;
    let Some(summary) = info.summary else {
        return Ok(());
    };
    counted_by_the_recorder(out, info.held, summary)
}

fn file(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    writeln!(
        out,
        "file       {}: hopscope trace, format {}, {} bytes in {} chunks",
        plain(info.file),
        info.format,
        info.file_bytes,
        info.chunks
    )?;
    if let Some(d) = &info.damage {
        writeln!(
            out,
            "DAMAGED    at byte {}: {}; {} places skipped, {} bytes at the end given up",
            d.at,
            plain(d.what),
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
    let version = plain(&meta.hopscope_version);
    let command = plain(&meta.command_line.join(" "));
    writeln!(out, "written by hopscope {version}: {command}")?;
    let (host, kernel, cpu) = (plain(&meta.host), plain(&meta.kernel), plain(&meta.cpu));
    writeln!(
        out,
        "host       {host}, {kernel}, {} × {cpu}",
        meta.cpus_online
    )?;
    let doubt = match meta.tsc_invariant {
        true => "invariant",
        false => "NOT known to be invariant: times are doubtful",
    };
    let mhz = meta.tsc_frequency.0 as f64 / 1e6;
    let syncs = info.clock_syncs;
    writeln!(
        out,
        "clock      TSC at {mhz:.3} MHz, {doubt}; {syncs} sync points"
    )?;
    writeln!(out, "started    {}", utc(&meta.start))?;
    let Some(summary) = info.summary else {
        let why = match info.damage {
            Some(_) => "the recorder was killed, or the end of the file is lost",
            None => "the recorder was killed, or still runs",
        };
        return writeln!(out, "ended      not in order: {why}");
    };
    let ns = i128::from(summary.end.monotonic_ns) - i128::from(meta.start.monotonic_ns);
    let (seconds, why) = (ns as f64 / 1e9, plain(&summary.ended_because));
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
            .map_or(String::new(), |comm| format!(" ({})", plain(comm)));
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
    writeln!(
        out,
        "unmeasured {} calls of threads that had no ring",
        s.calls_unmeasured
    )?;
    notes(out, s)
}

fn notes(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    for note in &summary.notes {
        writeln!(out, "note       {}", plain(note))?;
    }
    Ok(())
}

fn packets(out: &mut impl Write, info: &Info<'_>) -> io::Result<()> {
    for s in info.streams {
        let (from, to, traffic) = (plain(&s.sender), plain(&s.receiver), plain(&s.traffic));
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

/// Names come from the measured process: none of them may steer the terminal.
fn plain(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// `2026-11-21 05:07:09 UTC` (Gregorian, no leap seconds).
fn utc(sync: &ClockSync) -> String {
    let seconds = sync.realtime_ns / 1_000_000_000;
    let (mut day, second) = (seconds / 86_400, seconds % 86_400);
    let mut year = 1970u64;
    let is_leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    // 2^64 ns end in 2554: few enough years to count them.
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    let (h, m, s) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "{year:04}-{month:02}-{:02} {h:02}:{m:02}:{s:02} UTC",
        day + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::Tsc;

    #[test]
    fn dates() {
        let at = |seconds: u64| {
            utc(&ClockSync {
                tsc: Tsc(0),
                monotonic_ns: 0,
                realtime_ns: seconds * 1_000_000_000,
                window_ticks: 0,
            })
        };
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }

    #[test]
    fn names_do_not_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2J\nb"), "a\u{fffd}[2J\u{fffd}b");
    }
}
