//! Functions, modules and streams with their percentiles, as tables that are there without a script.
use super::charts::{count, histogram, share};
use super::text::Text;
use crate::counters::{self, Marks};
use crate::order::{Sort, own, sorted, total};
use crate::recording::{Names, Recording};
use crate::units::Scale;
use hopscope_analyze::{AnalysisResult, Distribution, Packets, Stats};
use hopscope_event::CounterEntry;
use std::io::{self, Write};

/// Rows of a table; the others are counted.
const ROWS_MAX: usize = 200;
/// Functions whose distribution is drawn.
const HISTOGRAMS: usize = 6;

pub(crate) fn streams(
    out: &mut impl Write,
    recording: &Recording<'_>,
    scale: &Scale,
) -> io::Result<()> {
    write!(
        out,
        "<table><thead><tr><th>stream<th class=n>sent<th class=n>received<th class=n>lost\
         <th class=n>late<th class=n>reordered<th class=n>duplicate<th class=n>corrupted\
         <th>time<th class=n>p50<th class=n>p90<th class=n>p99<th class=n>p99.9<th class=n>max\
         <tbody>"
    )?;
    for packets in recording.streams.packets {
        let entry = recording.streams.entry(packets);
        let name = entry.map_or(format!("#{}, of unknown name", packets.stream.0), |e| {
            format!("{} → {}; {}", e.sender, e.receiver, e.traffic)
        });
        let c = packets.counts;
        write!(out, "<tr><td rowspan=2>{}", Text(&name))?;
        let bad = [false, false, true, true, true, true, true];
        let counts = [
            c.sent,
            c.received,
            c.lost,
            c.late,
            c.reordered,
            c.duplicate,
            c.corrupted,
        ];
        for (n, bad) in counts.into_iter().zip(bad) {
            let class = if bad && n > 0 { "n bad" } else { "n" };
            write!(out, "<td rowspan=2 class=\"{class}\">{}", count(n))?;
        }
        write!(out, "<td>latency, from when it should have left")?;
        quantiles(out, &packets.latency, scale)?;
        write!(out, "<tr><td>transit, from when it left")?;
        quantiles(out, &packets.transit, scale)?;
    }
    writeln!(out, "</table>")?;
    for packets in recording.streams.packets {
        notes(out, packets)?;
    }
    Ok(())
}

fn notes(out: &mut impl Write, packets: &Packets) -> io::Result<()> {
    let lines = [
        (packets.unwritten, "rows are missing: the file was too slow"),
        (
            packets.latency.negative(),
            "latencies are negative: the stamps of the two ends disagree",
        ),
    ];
    for (n, what) in lines.iter().filter(|(n, _)| *n > 0) {
        let stream = packets.stream.0;
        writeln!(out, "<p class=bad>stream {stream}: {} {what}", count(*n))?;
    }
    Ok(())
}

fn quantiles(out: &mut impl Write, d: &Distribution, scale: &Scale) -> io::Result<()> {
    for parts in [500, 900, 990, 999] {
        write!(out, "<td class=n>{}", scale.quantile(d.quantile(parts)))?;
    }
    write!(out, "<td class=n>{}", scale.quantile(d.max()))
}

/// Which of a row's times a table shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    Functions,
    Modules,
}

pub(crate) fn rows(
    out: &mut impl Write,
    names: &Names<'_>,
    outcome: &AnalysisResult,
    scale: &Scale,
    counters: &[CounterEntry],
    what: Rows,
) -> io::Result<()> {
    let mut marks = Marks::default();
    let correction = outcome.correction.as_ref();
    let sorted = sorted(names, outcome, Sort::SelfTime);
    let whole: i128 = sorted.iter().map(|r| own(&r.stats, correction)).sum();
    let title = match what {
        Rows::Functions => "function",
        Rows::Modules => "module",
    };
    write!(
        out,
        "<table id={title}s><thead><tr><th>{title}<th class=n>calls<th class=n>self\
         <th>part of self<th class=n>total<th class=n>p50<th class=n>p90<th class=n>p99\
         <th class=n>p99.9<th class=n>max"
    )?;
    for title in counters::titles(counters) {
        write!(out, "<th class=n>{}", Text(&title))?;
    }
    write!(out, "<tbody>")?;
    for row in sorted.iter().take(ROWS_MAX) {
        let s = &row.stats;
        let own = own(s, correction);
        match row.key.function {
            Some(function) => {
                let module = row
                    .key
                    .module
                    .map(|m| names.module_short(m))
                    .unwrap_or_default();
                let name = names.function(function);
                let place = names
                    .function_entry(function)
                    .and_then(|f| Some(format!("{}:{}", f.file.as_ref()?, f.line?)));
                let place = place.unwrap_or_default();
                write!(
                    out,
                    "<tr data-function={}><td title=\"{}\"><b>{}</b> <i>{}</i>",
                    function.0,
                    Text(&place),
                    Text(&name),
                    Text(&module)
                )?;
            }
            None => {
                let name = row
                    .key
                    .module
                    .map_or("unknown".to_owned(), |m| names.module(m));
                write!(out, "<tr><td>{}", Text(&name))?;
            }
        }
        let calls = s.balance.exits + s.balance.tail_exits;
        write!(
            out,
            "<td class=n>{}<td class=n>{}<td>{} {}<td class=n>{}",
            count(calls),
            scale.text(own),
            share(own, whole),
            crate::units::share(own, whole),
            scale.text(total(s, correction))
        )?;
        quantiles(out, inclusive(s, correction.is_some()), scale)?;
        for cell in counters::cells(counters, s, &mut marks) {
            write!(out, "<td class=n>{}", Text(&cell))?;
        }
    }
    writeln!(out, "</table>")?;
    if marks.approximate {
        writeln!(out, "<p>{}", Text(counters::APPROXIMATE))?;
    }
    if sorted.len() > ROWS_MAX {
        let rest = (sorted.len() - ROWS_MAX) as u64;
        writeln!(
            out,
            "<p>{} more with less own time: hopscope report lists all.",
            count(rest)
        )?;
    }
    Ok(())
}

fn inclusive(stats: &Stats, corrected: bool) -> &Distribution {
    if corrected {
        &stats.inclusive_corrected
    } else {
        &stats.inclusive
    }
}

/// Distributions of the functions with most time of their own.
pub(crate) fn histograms(
    out: &mut impl Write,
    recording: &Recording<'_>,
    names: &Names<'_>,
    outcome: &AnalysisResult,
) -> io::Result<()> {
    let frequency = recording.meta.tsc_frequency;
    writeln!(out, "<div class=charts>")?;
    for row in sorted(names, outcome, Sort::SelfTime)
        .iter()
        .take(HISTOGRAMS)
    {
        let name = row
            .key
            .function
            .map(|f| names.function(f))
            .unwrap_or_default();
        let d = inclusive(&row.stats, outcome.correction.is_some());
        let chart = histogram("calls by their time", d, frequency);
        writeln!(
            out,
            "<figure><figcaption>{}</figcaption>{chart}</figure>",
            Text(&name)
        )?;
    }
    writeln!(out, "</div>")
}
