//! The functions on both sides of a packet's way through the kernel.
use super::text;
use crate::recording::Names;
use crate::units::grouped;
use hopscope_analyze::slice::{Beside, BorderCounts, PieceFlags, Sides, Span, TimedCall};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Functions that a packet's text, or picture, names on each side; the others are counted.
pub(crate) const SHOWN: usize = 24;

/// How well a recording's calls and packets lie on one clock, and what of them could not be joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneTimeline {
    pub counts: BorderCounts,
    pub clock_error_ns: u64,
}

fn ns(call: &TimedCall) -> u64 {
    call.to_ns.saturating_sub(call.from_ns)
}

/// In the order of time, each with what it is called in JSON and in text.
fn sides(of: &Sides) -> impl Iterator<Item = (&'static str, &'static str, &Beside)> {
    let before = of.before_send.iter();
    let after = of.after_receive.iter();
    before
        .map(|b| ("before_send", "functions before the sending call", b))
        .chain(after.map(|b| ("after_receive", "functions after the receiving call", b)))
}

/// `, .41us between (.79 read)`
fn border_text(border: &Span) -> String {
    let mark = if border.flags.contains(PieceFlags::BELOW_ZERO) {
        "~"
    } else {
        ""
    };
    match border.corrected() {
        Some(left) => format!(
            ", {mark}{}us between ({} read)",
            text::us(left),
            text::us(border.raw)
        ),
        None => format!(", {}us between, not corrected", text::us(border.raw)),
    }
}

/// Indented below the packet's own text. Times of functions are as measured: the cost of the probes
/// of what they call is in them.
///
/// # Errors
/// Those of `out`.
pub fn write_sides(out: &mut impl Write, names: &Names<'_>, of: &Sides) -> io::Result<()> {
    for (_, title, beside) in sides(of) {
        let border = beside.border.as_ref().map_or(String::new(), border_text);
        writeln!(out, "    {title}{border}")?;
        for call in &beside.around {
            let name = names.qualified(call.function);
            writeln!(
                out,
                "    {:>10} ns  {name}, around the call",
                grouped(ns(call))
            )?;
        }
        let least = beside.calls.iter().map(|c| c.depth).min().unwrap_or(0);
        for call in beside.calls.iter().take(SHOWN) {
            let name = names.qualified(call.function);
            let indent = 2 * (call.depth - least).min(16) as usize;
            writeln!(
                out,
                "    {:>10} ns  {:indent$}{name}",
                grouped(ns(call)),
                ""
            )?;
        }
        match beside.calls.len() {
            0 if beside.around.is_empty() => writeln!(out, "    none was measured there")?,
            n if n > SHOWN => writeln!(out, "    and {} more", n - SHOWN)?,
            _ => {}
        }
    }
    Ok(())
}

/// `{"type":"packet_functions",…}`, a line for each side.
///
/// # Errors
/// Those of `out`.
pub fn write_sides_json(
    out: &mut impl Write,
    names: &Names<'_>,
    packet: u64,
    of: &Sides,
) -> io::Result<()> {
    let row = |call: &TimedCall| {
        json!({
            "function": names.qualified(call.function), "depth": call.depth,
            "start_monotonic_ns": call.from_ns, "total_raw_ns": ns(call),
        })
    };
    let rows = |calls: &[TimedCall]| -> Vec<Value> { calls.iter().map(row).collect() };
    for (side, _, beside) in sides(of) {
        let border = beside.border.as_ref().map(|border| {
            json!({
                "raw_ns": border.raw, "correction_ns": border.correction,
                "corrected_ns": border.corrected(),
                "flags": border.flags.names().collect::<Vec<_>>(),
            })
        });
        let line = json!({
            "type": "packet_functions", "schema": 1, "packet": packet, "side": side,
            "border": border, "around": rows(&beside.around), "calls": rows(&beside.calls),
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// What could not be joined.
///
/// # Errors
/// Those of `out`.
pub fn write_one_timeline(
    out: &mut impl Write,
    timeline: &OneTimeline,
    json: bool,
) -> io::Result<()> {
    let OneTimeline {
        counts,
        clock_error_ns,
    } = timeline;
    if json {
        let line = json!({
            "type": "one_timeline", "schema": 1, "clock_error_ns": clock_error_ns,
            "crossing": counts.crossing, "beyond": counts.beyond,
            "unmeasured_rx": counts.unmeasured_rx, "unmeasured_tx": counts.unmeasured_tx,
            "no_return": counts.no_return, "no_entry": counts.no_entry,
            "other_bytes": counts.other_bytes,
        });
        return writeln!(out, "{line}");
    }
    writeln!(
        out,
        "\nboth clocks agree to {clock_error_ns} ns; {} calls cross a system call's border and are of no \
         packet, {} were too many for one packet",
        counts.crossing, counts.beyond
    )?;
    writeln!(
        out,
        "of the packets shown: {} read and {} sent by threads that are not measured; {} without the stamp \
         of the receiving call's return, {} of the sending call's entry; {} whose receiving call returned \
         bytes of others",
        counts.unmeasured_rx,
        counts.unmeasured_tx,
        counts.no_return,
        counts.no_entry,
        counts.other_bytes
    )
}
