//! What is said at the end: each slice's distribution, what was captured, what was lost, what it cost.
use super::{SliceSource, cost, json, text};
use crate::printable_text::printable;
use crate::units::grouped;
use hopscope_analyze::Quantile;
use hopscope_analyze::slice::{NameIx, SliceRow, SliceStats, Slicer};
use hopscope_event::slice::{Constant, Counter, SliceSummary};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

pub struct SliceClosing<'a> {
    pub source: SliceSource<'a>,
    pub slicer: &'a Slicer,
    pub stats: &'a SliceStats,
    /// Packets that were read from a file, chosen or not; `None`: live.
    pub read: Option<u64>,
    /// What of the file is lost.
    pub damage: Option<&'a str>,
    /// `None`: the recorder was killed, or the end of the file is lost.
    pub summary: Option<&'a SliceSummary>,
}

impl<'a> SliceClosing<'a> {
    /// Rows of slices in the order in which a packet passes them.
    pub(crate) fn on_the_way(&self) -> Vec<(&'a NameIx, &'a SliceRow)> {
        let mut rows: Vec<_> = self.stats.pieces.iter().collect();
        rows.sort_by_key(|(name, _)| (self.slicer.place(**name), **name));
        rows
    }
}

/// # Errors
/// Those of `out`.
pub fn write_slice_closing(out: &mut impl Write, closing: &SliceClosing<'_>) -> io::Result<()> {
    distributions(out, closing)?;
    let stats = closing.stats;
    match closing.read {
        None => writeln!(out, "{} packets captured", grouped(stats.packets))?,
        Some(read) => writeln!(
            out,
            "{} packets chosen of {} read",
            grouped(stats.packets),
            grouped(read)
        )?,
    }
    if let Some(damage) = closing.damage {
        writeln!(out, "DAMAGED: {}", printable(damage))?;
    }
    match closing.summary {
        Some(summary) => counted(out, closing, summary)?,
        None => writeln!(
            out,
            "not ended in order: what the kernel counted is not known"
        )?,
    }
    oddities(out, stats)?;
    constants(out, closing)
}

/// Column of the names, at least.
const NAMES: usize = 34;

fn distributions(out: &mut impl Write, closing: &SliceClosing<'_>) -> io::Result<()> {
    let SliceClosing {
        stats,
        slicer,
        source,
        ..
    } = closing;
    if stats.pieces.is_empty() {
        return Ok(());
    }
    let unit = printable(text::unit(source));
    let left = match source.entry.calibration.tau_o {
        Some(_) => "corrected",
        None => "as read",
    };
    let pieces: Vec<(String, &SliceRow)> = closing
        .on_the_way()
        .into_iter()
        .map(|(name, row)| (printable(slicer.name(*name)), row))
        .collect();
    let bypassed = stats.bypassed.iter();
    let bypassed: Vec<(String, u64)> = bypassed
        .map(|(name, count)| (printable(slicer.name(*name)), *count))
        .collect();
    let several = in_several(closing);
    let names = pieces.iter().chain(&several).map(|(name, _)| name);
    let names = names.chain(bypassed.iter().map(|(name, _)| name));
    let width = names
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(NAMES);
    writeln!(
        out,
        "{:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  {unit}, {left}",
        "slice", "count", "min", "p50", "p99", "max", "stddev"
    )?;
    for (name, row) in &pieces {
        write_row(out, source, width, name, row)?;
    }
    for (name, count) in &bypassed {
        writeln!(out, "{name:<width$} {:>9} bypassed", grouped(*count))?;
    }
    write_row(out, source, width, "whole", &stats.whole)?;
    if !several.is_empty() {
        writeln!(
            out,
            "regions in several slices, from their first point to their last:"
        )?;
    }
    for (name, row) in &several {
        write_row(out, source, width, name, row)?;
    }
    Ok(())
}

/// Regions that are not of one slice in every packet.
fn in_several<'a>(closing: &SliceClosing<'a>) -> Vec<(String, &'a SliceRow)> {
    let SliceClosing { stats, slicer, .. } = closing;
    let several = stats.regions.iter().filter(|(region, row)| {
        let name = slicer.region(**region);
        let same = stats
            .pieces
            .iter()
            .find(|(ix, _)| slicer.name(**ix) == name);
        same.map_or(0, |(_, piece)| piece.times.len()) != row.times.len()
    });
    several
        .map(|(region, row)| (printable(slicer.region(*region)), row))
        .collect()
}

fn write_row(
    out: &mut impl Write,
    source: &SliceSource<'_>,
    width: usize,
    name: &str,
    row: &SliceRow,
) -> io::Result<()> {
    let number = |value: u64| {
        if source.is_time() {
            text::us(value)
        } else {
            grouped(value)
        }
    };
    let quantile = |quantile| match quantile {
        Quantile::Ticks(value) => number(value),
        _ => "-".to_owned(),
    };
    write!(
        out,
        "{name:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        grouped(row.times.len()),
        row.min.map_or("-".to_owned(), number),
        quantile(row.times.quantile(500)),
        quantile(row.times.quantile(990)),
        quantile(row.times.max()),
        number(row.stddev().round() as u64),
    )?;
    for (count, what) in [
        (row.below_zero, "~0"),
        (row.uncertain, "uncertain"),
        (row.saturated, "longer than 4.29 s, left out"),
        (
            row.head_unseen,
            "whose sending side was not followed, left out",
        ),
    ] {
        if count > 0 {
            write!(out, "  {} {what}", grouped(count))?;
        }
    }
    writeln!(out)
}

/// tcpdump's three numbers, then everything that counted.
fn counted(
    out: &mut impl Write,
    closing: &SliceClosing<'_>,
    summary: &SliceSummary,
) -> io::Result<()> {
    let get = |counter| summary.counters.get(counter);
    let counters = &summary.counters;
    writeln!(
        out,
        "{} packets received by filter",
        grouped(counters.received())
    )?;
    writeln!(out, "{} packets lost by hopscope", grouped(counters.lost()))?;
    dropped(out, closing)?;
    let quiet = [Counter::Hits, Counter::CostNs];
    for counter in Counter::ALL.iter().filter(|c| !quiet.contains(c)) {
        let value = get(*counter);
        if value > 0 {
            writeln!(
                out,
                "  {:<14} {:>12}  {}",
                counter.name(),
                grouped(value),
                counter.what()
            )?;
        }
    }
    if summary.in_flight > 0 {
        let under_way = grouped(summary.in_flight);
        writeln!(
            out,
            "  {:<14} {under_way:>12}  packets under way at the end",
            "in_flight"
        )?;
    }
    for hook in &summary.hooks {
        match hook.missed_runs {
            Some(0) => {}
            Some(missed) => writeln!(
                out,
                "  {} runs missed at {}: its program was already running there",
                grouped(missed),
                hook.point
            )?,
            None if hook.missing.is_none() => writeln!(
                out,
                "  runs missed at {}: this kernel does not say",
                hook.point
            )?,
            None => {}
        }
    }
    cost::write(out, closing, summary)
}

/// By the kernel's reasons, the most frequent first.
fn dropped(out: &mut impl Write, closing: &SliceClosing<'_>) -> io::Result<()> {
    let mut reasons: Vec<_> = closing.stats.dropped.iter().collect();
    reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(**count), **reason));
    let sum: u64 = closing.stats.dropped.values().sum();
    write!(out, "{} packets dropped by the kernel", grouped(sum))?;
    for (at, (reason, count)) in reasons.into_iter().enumerate() {
        let separator = if at == 0 { ":" } else { "," };
        let reason = closing.source.drop_reason(*reason);
        write!(out, "{separator} {reason} {}", grouped(*count))?;
    }
    writeln!(out)
}

fn oddities(out: &mut impl Write, stats: &SliceStats) -> io::Result<()> {
    for (count, what) in [
        (
            stats.out_of_order,
            "stamps earlier than one of a point before theirs",
        ),
        (
            stats.backwards,
            "regions that ended before they began: without a time",
        ),
    ] {
        if count > 0 {
            writeln!(out, "  {} {what}", grouped(count))?;
        }
    }
    Ok(())
}

fn constants(out: &mut impl Write, closing: &SliceClosing<'_>) -> io::Result<()> {
    let unit = printable(closing.source.unit());
    let Some(tau) = closing.source.entry.calibration.tau_o else {
        return writeln!(out, "not calibrated: nothing is taken out of any time");
    };
    let Constant {
        mode, low, high, ..
    } = tau;
    writeln!(
        out,
        "an empty region reads {mode} {unit} ({low} to {high}): taken out of each slice"
    )
}

/// # Errors
/// Those of `out`.
pub fn write_slice_closing_json(
    out: &mut impl Write,
    closing: &SliceClosing<'_>,
) -> io::Result<()> {
    let SliceClosing {
        stats,
        slicer,
        source,
        ..
    } = closing;
    let pieces: Vec<Value> = closing
        .on_the_way()
        .into_iter()
        .map(|(name, row)| json_row(source, slicer.name(*name), row))
        .collect();
    let regions: Vec<Value> = stats
        .regions
        .iter()
        .map(|(region, row)| json_row(source, slicer.region(*region), row))
        .collect();
    let bypassed: Map<String, Value> = stats
        .bypassed
        .iter()
        .map(|(name, count)| (slicer.name(*name).to_owned(), (*count).into()))
        .collect();
    let dropped: Map<String, Value> = stats
        .dropped
        .iter()
        .map(|(reason, count)| (source.drop_reason(*reason), (*count).into()))
        .collect();
    let (pieces_sum, whole_sum) = stats.sums;
    let object = json!({
        "type": "slice_summary",
        "schema": 1,
        "packets": stats.packets,
        "read": closing.read,
        "damage": closing.damage,
        "unit": source.unit(),
        "slices": pieces,
        "regions": regions,
        "whole": json_row(source, "whole", &stats.whole),
        "bypassed": bypassed,
        "sum_of_slices": pieces_sum as f64,
        "sum_of_wholes": whole_sum as f64,
        "out_of_order": stats.out_of_order,
        "backwards": stats.backwards,
        "backend": source.entry.backend,
        "filter": source.entry.filter,
        "calibration": source.entry.calibration,
        "received": closing.summary.map(|summary| summary.counters.received()),
        "lost": closing.summary.map(|summary| summary.counters.lost()),
        "dropped": dropped,
        "cost": closing.summary.and_then(|summary| cost::Cost::of(closing, summary)),
        "summary": closing.summary,
    });
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

fn json_row(source: &SliceSource<'_>, name: &str, row: &SliceRow) -> Value {
    let quantile = |quantile| match quantile {
        Quantile::Ticks(value) => Value::from(value),
        _ => Value::Null,
    };
    let key = |name| json::key(source, name);
    json!({
        "region": name,
        "count": row.times.len(),
        key("min"): row.min,
        key("p50"): quantile(row.times.quantile(500)),
        key("p90"): quantile(row.times.quantile(900)),
        key("p99"): quantile(row.times.quantile(990)),
        key("p999"): quantile(row.times.quantile(999)),
        key("max"): quantile(row.times.max()),
        key("mean"): (!row.times.is_empty()).then(|| row.mean()),
        key("stddev"): row.stddev(),
        "below_zero": row.below_zero,
        "uncertain": row.uncertain,
        "saturated": row.saturated,
        "head_unseen": row.head_unseen,
    })
}
