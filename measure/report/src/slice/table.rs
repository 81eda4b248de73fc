//! `-v`: what each stamp read, what was taken out, and what is left.
use super::{SlicedPacket, text};
use crate::printable_text::printable;
use crate::units::grouped;
use hopscope_analyze::slice::Span;
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

pub(super) fn write(out: &mut impl Write, sliced: SlicedPacket<'_>) -> io::Result<()> {
    let SlicedPacket {
        source,
        packet,
        slices,
        slicer,
    } = sliced;
    identity(out, packet)?;
    let unit = printable(source.unit());
    let mut rows: Vec<Row<'_>> = Vec::new();
    for piece in &slices.pieces {
        rows.push(Row {
            name: printable(slicer.name(piece.name)),
            way: format!("{}..{}", piece.from, piece.to),
            span: Some(&piece.span),
        });
    }
    for name in &slices.bypassed {
        rows.push(Row {
            name: printable(slicer.name(*name)),
            way: "bypass".into(),
            span: None,
        });
    }
    if !slices.pieces.is_empty() {
        rows.push(Row {
            name: "whole".into(),
            way: String::new(),
            span: Some(&slices.whole),
        });
    }
    // Those that are no single piece.
    for region in &slices.regions {
        let name = slicer.region(region.region);
        let is_piece = |p: &hopscope_analyze::slice::Piece| slicer.name(p.name) == name;
        if !slices.pieces.iter().any(is_piece) {
            rows.push(Row {
                name: printable(name),
                way: "(in several slices)".into(),
                span: Some(&region.span),
            });
        }
    }
    let widest = |least: usize, widths: &mut dyn Iterator<Item = usize>| {
        widths.max().unwrap_or(0).max(least)
    };
    let names = widest(28, &mut rows.iter().map(|row| row.name.chars().count()));
    let ways = widest(34, &mut rows.iter().map(|row| row.way.chars().count()));
    writeln!(
        out,
        "    {:<names$} {:<ways$} {:>10} {:>10} {:>10}  {unit}",
        "slice", "from .. to", "read", "taken out", "left"
    )?;
    for row in &rows {
        write_row(out, row, [names, ways])?;
    }
    if slices.out_of_order > 0 {
        writeln!(
            out,
            "    {} stamps are earlier than one of a point before theirs",
            slices.out_of_order
        )?;
    }
    Ok(())
}

struct Row<'a> {
    name: String,
    way: String,
    /// `None`: the packet was not there.
    span: Option<&'a Span>,
}

fn write_row(out: &mut impl Write, row: &Row<'_>, [names, ways]: [usize; 2]) -> io::Result<()> {
    let Row { name, way, span } = row;
    let Some(span) = span else {
        return writeln!(out, "    {name:<names$} {way}");
    };
    let or = |value: Option<u64>| value.map_or("?".to_owned(), grouped);
    let flags: Vec<&str> = span.flags.names().collect();
    let line = format!(
        "    {name:<names$} {way:<ways$} {:>10} {:>10} {:>10}  {}",
        grouped(span.raw),
        or(span.correction),
        or(span.corrected()),
        flags.join(" ")
    );
    writeln!(out, "{}", line.trim_end())
}

fn identity(out: &mut impl Write, packet: &Sliced) -> io::Result<()> {
    let r = &packet.record;
    write!(out, "    packet {}", r.id)?;
    if r.parent != 0 {
        write!(out, " of {}", r.parent)?;
    }
    if r.segments > 1 {
        write!(out, ", {} segments", r.segments)?;
    }
    if r.tx_tid != 0 {
        let comm = text::comm(&r.tx_comm);
        write!(
            out,
            "; sent by {comm} {}/{}, {} bytes a call, socket {}",
            r.tx_tgid, r.tx_tid, r.tx_call_len, r.tx_cookie
        )?;
    }
    if r.rx_tid != 0 {
        let comm = text::comm(&r.rx_comm);
        write!(
            out,
            "; received by {comm} {}/{}, call returned {}, socket {}",
            r.rx_tgid, r.rx_tid, r.rx_returned, r.rx_cookie
        )?;
    }
    if r.tx_netns != r.rx_netns && r.tx_netns != 0 && r.rx_netns != 0 {
        write!(out, "; from netns {} to {}", r.tx_netns, r.rx_netns)?;
    }
    writeln!(out)
}
