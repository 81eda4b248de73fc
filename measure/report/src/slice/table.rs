//! `-v`: what each stamp read, what was taken out, and what is left.
use super::{SliceSource, text};
use crate::units::grouped;
use crate::words::printable;
use hopscope_analyze::slice::{PacketSlices, Slicer, Span};
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

pub(super) fn write(
    out: &mut impl Write,
    source: &SliceSource<'_>,
    packet: &Sliced,
    slices: &PacketSlices,
    slicer: &Slicer,
) -> io::Result<()> {
    identity(out, packet)?;
    let unit = printable(source.unit());
    writeln!(
        out,
        "    {:<28} {:<34} {:>10} {:>10} {:>10}  {unit}",
        "slice", "from .. to", "read", "taken out", "left"
    )?;
    for piece in &slices.pieces {
        let name = printable(slicer.name(piece.name));
        let way = format!("{}..{}", piece.from, piece.to);
        row(out, &name, &way, &piece.span)?;
    }
    for name in &slices.bypassed {
        let name = printable(slicer.name(*name));
        writeln!(out, "    {name:<28} bypass")?;
    }
    if !slices.pieces.is_empty() {
        row(out, "whole", "", &slices.whole)?;
    }
    // Those that are no single piece.
    for region in &slices.regions {
        let name = slicer.region(region.region);
        let is_piece = |p: &hopscope_analyze::slice::Piece| slicer.name(p.name) == name;
        if !slices.pieces.iter().any(is_piece) {
            row(out, &printable(name), "(in several slices)", &region.span)?;
        }
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

fn row(out: &mut impl Write, name: &str, way: &str, span: &Span) -> io::Result<()> {
    let or = |value: Option<u64>| value.map_or("?".to_owned(), grouped);
    let flags: Vec<&str> = span.flags.names().collect();
    let line = format!(
        "    {name:<28} {way:<34} {:>10} {:>10} {:>10}  {}",
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
