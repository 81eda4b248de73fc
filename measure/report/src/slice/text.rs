//! The slices of a packet in a line.
use super::{SliceSource, SlicedPacket};
use crate::printable_text::printable;
use hopscope_analyze::slice::{PieceFlags, Span};
use hopscope_event::slice::{Point, SliceFlags, SliceRecord, Sliced};

/// In µs, short: `.7`, `1.1`, `12.3`, `4417`.
pub(crate) fn us(ns: u64) -> String {
    let digits = match ns {
        0..10_000 => 2,
        10_000..1_000_000 => 1,
        _ => 0,
    };
    let text = format!("{:.digits$}", ns as f64 / 1e3);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    match text.strip_prefix('0') {
        Some(fraction) if !fraction.is_empty() => fraction.to_owned(),
        _ => text.to_owned(),
    }
}

/// `~`: more was to be taken out than was measured. `>`: this or longer. `?`: not all that probes
/// cost could be taken out.
pub(crate) fn value(source: &SliceSource<'_>, span: &Span) -> String {
    let number = if source.is_time() {
        us(span.best())
    } else {
        span.best().to_string()
    };
    let mut text = String::new();
    for (flag, mark) in [(PieceFlags::BELOW_ZERO, '~'), (PieceFlags::OR_LONGER, '>')] {
        if span.flags.intersects(flag) {
            text.push(mark);
        }
    }
    text += &number;
    if span.flags.intersects(PieceFlags::UNCERTAIN) {
        text.push('?');
    }
    text
}

pub(super) fn unit<'a>(source: &'a SliceSource<'_>) -> &'a str {
    if source.is_time() {
        "us"
    } else {
        source.unit()
    }
}

/// Bytes up to the first zero; a name is what a program chose.
pub(super) fn comm(bytes: &[u8; 16]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    printable(&String::from_utf8_lossy(&bytes[..end]))
}

fn process(record: &SliceRecord, prefix: &str) -> String {
    let (name, tgid) = match prefix {
        "tx" => (comm(&record.tx_comm), record.tx_tgid),
        "rx" => (comm(&record.rx_comm), record.rx_tgid),
        _ => (String::new(), 0),
    };
    match (name.is_empty(), tgid) {
        (true, 0) => String::new(),
        _ => format!("{name}[{tgid}] "),
    }
}

/// The slices of a packet in a line, or as a comment to it:
/// `curl[123] tx call .7 transport 1.1 … | nginx[77] rx driver .4 … us | total 12.1us`
pub fn slice_comment(sliced: SlicedPacket<'_>) -> String {
    let SlicedPacket {
        source,
        packet: Sliced { record, .. },
        slices,
        slicer,
    } = sliced;
    let source = &source;
    let mut text = String::new();
    let mut group = None;
    let mut bypassed = slices.bypassed.iter().peekable();
    for piece in &slices.pieces {
        let name = slicer.name(piece.name);
        let prefix = name
            .split_once('.')
            .map_or("", |(prefix, _)| prefix)
            .to_owned();
        let is_grouped = matches!(prefix.as_str(), "tx" | "rx");
        let prefix = if is_grouped { prefix } else { String::new() };
        if group.as_ref() != Some(&prefix) {
            if group.is_some() {
                text += "| ";
            }
            text += &process(record, &prefix);
            if is_grouped {
                text += &format!("{prefix} ");
            }
        }
        let short = if is_grouped {
            name.replace(&format!("{prefix}."), "")
        } else {
            name.to_owned()
        };
        text += &format!("{} {} ", printable(&short), value(source, &piece.span));
        if piece.to >= Point::TxDriver {
            for name in bypassed.by_ref() {
                let name = slicer.name(*name);
                let short = name.strip_prefix("tx.").unwrap_or(name);
                text += &format!("{} bypass ", printable(short));
            }
        }
        group = Some(prefix);
    }
    if slices.pieces.is_empty() {
        text += "no two stamps ";
    } else {
        let unit = printable(unit(source));
        let gap = if source.is_time() { "" } else { " " };
        let total = value(source, &slices.whole);
        let (total, mark) = match total.strip_suffix('?') {
            Some(total) => (total, "?"),
            None => (total.as_str(), ""),
        };
        text += &format!("{unit} | total {total}{gap}{unit}{mark} ");
    }
    let mut flags = record.flags;
    if flags.contains(SliceFlags::DROPPED) {
        flags.0 &= !SliceFlags::DROPPED.0;
        let why = source.drop_reason(record.drop_reason);
        text += &format!("DROPPED ({why}) ");
    }
    if flags != SliceFlags::NONE {
        text += &format!("[{flags}] ");
    }
    text.truncate(text.trim_end().len());
    text
}
