//! A page of the kernel's path: the distribution of each slice, and packets as waterfalls. There is
//! no script in it: packets open as the browser's own details do.
use super::assets::STYLE;
use super::sha256;
use super::text::Text;
use super::waterfall;
use crate::slice::text::us;
use crate::slice::{SliceClosing, SliceOrigin, write_slice_closing, write_slice_origin};
use hopscope_analyze::slice::{PacketSlices, SliceRow};
use hopscope_analyze::{Distribution, Quantile};
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

/// Everything that a page shows.
pub struct SlicePage<'a> {
    /// Name of the recording's file.
    pub file: &'a str,
    pub origin: SliceOrigin<'a>,
    pub closing: SliceClosing<'a>,
    /// Under a heading that says how they were chosen.
    pub packets: &'a [(&'a str, Vec<(Sliced, PacketSlices)>)],
}

const HISTOGRAM: (usize, f64) = (60, 26.0);

/// # Errors
/// Those of `out`.
pub fn write_slice_html(out: &mut impl Write, page: &SlicePage<'_>) -> io::Result<()> {
    let style = sha256::base64_of(STYLE);
    write!(
        out,
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; \
         style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n\
         <meta name=color-scheme content=\"light dark\">\n<title>hopscope: {}</title>\n\
         <style>{STYLE}</style></head>\n<body>\n<h1>{}: the kernel's path of packets</h1>\n",
        Text(page.file),
        Text(page.file)
    )?;
    let mut origin = Vec::new();
    write_slice_origin(&mut origin, &page.origin)?;
    pre(out, &origin)?;
    if let Some(damage) = page.closing.damage {
        writeln!(out, "<p class=bad>DAMAGED: {}</p>", Text(damage))?;
    }
    distributions(out, &page.closing)?;
    for (heading, packets) in page.packets.iter().filter(|(_, p)| !p.is_empty()) {
        writeln!(out, "<h2>{}</h2>", Text(heading))?;
        for (packet, slices) in packets {
            waterfall::write(out, &page.closing, (packet, slices), None)?;
        }
    }
    writeln!(out, "<h2>Counted</h2>")?;
    let mut closing = Vec::new();
    write_slice_closing(&mut closing, &page.closing)?;
    pre(out, &closing)?;
    writeln!(out, "</body></html>")
}

pub(super) fn pre(out: &mut impl Write, text: &[u8]) -> io::Result<()> {
    let text = String::from_utf8_lossy(text);
    writeln!(out, "<pre>")?;
    for line in text.lines() {
        writeln!(out, "{}", Text(line))?;
    }
    writeln!(out, "</pre>")
}

/// All on one scale, so that they can be compared with the eye.
pub(super) fn distributions(out: &mut impl Write, closing: &SliceClosing<'_>) -> io::Result<()> {
    let unit = closing.source.line_unit();
    writeln!(
        out,
        "<h2>Slices</h2>\n<p>Times in {}, on one logarithmic scale from the least to the most of all \
         slices.</p>\n<table><tr><th>slice<th class=n>count<th class=n>min<th class=n>p50<th class=n>p99\
         <th class=n>max<th class=n>stddev<th>distribution<th></tr>",
        Text(unit)
    )?;
    let rows = closing.on_the_way();
    let most = |row: &SliceRow| match row.times.max() {
        Quantile::Ticks(max) => max,
        _ => 0,
    };
    let high = rows.iter().map(|(_, row)| most(row)).max().unwrap_or(0);
    let high = high.max(most(&closing.stats.whole));
    for (name, row) in &rows {
        let name = closing.slicer.name(**name);
        distribution(out, closing, name, row, high)?;
    }
    distribution(out, closing, "whole", &closing.stats.whole, high)?;
    writeln!(out, "</table>")
}

fn distribution(
    out: &mut impl Write,
    closing: &SliceClosing<'_>,
    name: &str,
    row: &SliceRow,
    high: u64,
) -> io::Result<()> {
    let number = |n: u64| {
        if closing.source.is_time() {
            us(n)
        } else {
            n.to_string()
        }
    };
    let quantile = |q| match q {
        Quantile::Ticks(n) => number(n),
        _ => "-".to_owned(),
    };
    write!(
        out,
        "<tr><td>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}<td>",
        Text(name),
        row.times.len(),
        row.min.map_or("-".to_owned(), number),
        quantile(row.times.quantile(500)),
        quantile(row.times.quantile(990)),
        quantile(row.times.max()),
        number(row.stddev().round() as u64),
    )?;
    histogram(out, &row.times, high)?;
    let mut notes = Vec::new();
    for (count, what) in [
        (row.below_zero, "~0"),
        (row.uncertain, "uncertain"),
        (row.saturated, "longer, left out"),
        (row.head_unseen, "without their sending side, left out"),
    ] {
        if count > 0 {
            notes.push(format!("{count} {what}"));
        }
    }
    writeln!(out, "<td>{}</tr>", Text(&notes.join(", ")))
}

fn histogram(out: &mut impl Write, times: &Distribution, high: u64) -> io::Result<()> {
    let (columns, height) = HISTOGRAM;
    let scale = (high as f64 + 1.0).ln().max(1.0);
    let mut counts = vec![0u64; columns];
    for (low, to, count) in times.bins() {
        let middle = low as f64 / 2.0 + to as f64 / 2.0;
        let at = (middle + 1.0).ln() / scale * columns as f64;
        counts[(at as usize).min(columns - 1)] += count;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let width = 4 * columns;
    write!(
        out,
        "<svg width={width} height={height} viewBox=\"0 0 {width} {height}\" role=img>"
    )?;
    for (at, count) in counts.iter().enumerate().filter(|(_, c)| **c > 0) {
        // Few are not nothing.
        let tall = (*count as f64 / most as f64 * height).max(1.0);
        write!(
            out,
            "<rect class=bar x={} y={:.1} width=3.4 height={tall:.1} />",
            4 * at,
            height - tall
        )?;
    }
    write!(out, "</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::SliceSource;
    use hopscope_analyze::slice::{RealTime, SliceStats, Slicer};
    use hopscope_event::slice::sample::{entry, over_veth, through_queue, without_bytes};
    use hopscope_event::{ClockSync, RecordingMeta, Tsc, TscFrequency};

    #[test]
    fn a_page_has_every_slice_and_nothing_of_a_hostile_name_is_markup() {
        let start = ClockSync {
            tsc: Tsc(0),
            monotonic_ns: 0,
            realtime_ns: 5,
            window_ticks: 0,
        };
        let hostile = "</title><script>alert(1)</script>";
        let meta = RecordingMeta {
            hopscope_version: hostile.into(),
            command_line: vec![hostile.into()],
            host: hostile.into(),
            kernel: hostile.into(),
            cpu: hostile.into(),
            cpus_online: 2,
            tsc_frequency: TscFrequency(1_000_000_000),
            tsc_invariant: true,
            start,
            stride: 16,
            ring_records: 0,
            probe_cost: None,
        };
        let mut entry = entry();
        entry.regions[0].name = hostile.into();
        entry.interfaces[0].name = hostile.into();
        let time = RealTime::new(start, &[]);
        let mut slicer = Slicer::new(&entry);
        let mut stats = SliceStats::default();
        let mut packets = Vec::new();
        for record in [over_veth(1), through_queue(2)] {
            let slices = slicer.slice(&record);
            stats.add(&slices);
            packets.push((without_bytes(record), slices));
        }
        let page = SlicePage {
            file: hostile,
            origin: SliceOrigin {
                meta: &meta,
                entry: &entry,
                summary: None,
            },
            closing: SliceClosing {
                source: SliceSource {
                    entry: &entry,
                    time: &time,
                },
                slicer: &slicer,
                stats: &stats,
                read: Some(2),
                damage: Some(hostile),
                summary: None,
            },
            packets: &[(hostile, packets)],
        };
        let mut out = Vec::new();
        write_slice_html(&mut out, &page).unwrap();
        let html = String::from_utf8(out).unwrap();
        assert!(!html.contains("<script"), "markup from a name");
        assert_eq!(html.matches("<details>").count(), 2);
        // Sixteen slices and seven, each with its bar and what it reads.
        assert_eq!(html.matches("<g><title>").count(), 16 + 7);
        assert_eq!(
            html.matches("role=img>").count(),
            2 + stats.pieces.len() + 1
        );
        assert!(
            html.contains("<title>rx.wake: rx_socket..rx_waking, read 250, taken out 270, left 0")
        );
    }
}
