//! In the page of calls: packets through the kernel and the functions before and after it.
use super::slices::distributions;
use super::text::Text;
use super::waterfall::{self, WithFunctions};
use crate::recording::Names;
use crate::slice::{OneTimeline, SliceClosing, write_one_timeline, write_slice_closing};
use hopscope_analyze::slice::{PacketSlices, Sides};
use hopscope_event::slice::Sliced;
use std::io::{self, Write};

/// The kernel's path beside calls.
pub struct PacketSection<'a> {
    pub closing: SliceClosing<'a>,
    /// How they were chosen.
    pub heading: &'a str,
    pub packets: &'a [(Sliced, PacketSlices, Sides)],
    pub quality: OneTimeline,
}

pub(super) fn write(
    out: &mut impl Write,
    names: &Names<'_>,
    section: &PacketSection<'_>,
) -> io::Result<()> {
    writeln!(
        out,
        "<section id=kernel><h2>Packets through the kernel</h2>"
    )?;
    distributions(out, &section.closing)?;
    writeln!(
        out,
        "<h3>{}</h3><p>Functions before the sending call, the kernel's slices, functions after the \
         receiving call, on one clock.",
        Text(section.heading)
    )?;
    for (packet, slices, sides) in section.packets {
        let functions = WithFunctions { names, sides };
        waterfall::write(out, &section.closing, (packet, slices), Some(&functions))?;
    }
    let mut closing = Vec::new();
    write_slice_closing(&mut closing, &section.closing)?;
    write_one_timeline(&mut closing, &section.quality, false)?;
    super::slices::pre(out, &closing)?;
    writeln!(out, "</section>")
}
