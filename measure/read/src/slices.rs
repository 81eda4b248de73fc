//! Packets of the kernel's path: those of the selected time, the slowest of them, and a page of both.
use crate::error::Result;
use crate::selection::Selection;
use hopscope_analyze::slice::{PacketSlices, RealTime, SliceStats, Slicer};
use hopscope_event::slice::{SliceEntry, Sliced};
use hopscope_report::slice::{
    SliceClosing, SliceOrigin, SlicePrinter, SliceSource, SliceView, write_slice_json,
};
use hopscope_report::{SlicePage, write_slice_html};
use std::io::Write;
use std::path::Path;

/// Packets whose first point lies within the selected time.
pub struct SlicedPackets<'a> {
    pub selection: &'a Selection,
    pub entry: &'a SliceEntry,
    pub time: RealTime,
}

impl<'a> SlicedPackets<'a> {
    pub fn of(selection: &'a Selection, entry: &'a SliceEntry) -> SlicedPackets<'a> {
        let tables = selection.tables();
        SlicedPackets {
            selection,
            entry,
            time: RealTime::new(tables.meta.start, &tables.clocks),
        }
    }

    pub fn source(&self) -> SliceSource<'_> {
        SliceSource {
            entry: self.entry,
            time: &self.time,
        }
    }

    /// # Errors
    /// What cannot be read, and what `visit` says.
    pub fn each<E: From<crate::Error>>(
        &self,
        mut visit: impl FnMut(&Sliced) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        for batch in self.selection.reader().slices() {
            for packet in &batch.map_err(crate::Error::from)? {
                if self.selection.span_ns.contains(&packet.record.t0_ns) {
                    visit(packet)?;
                }
            }
        }
        Ok(())
    }

    /// Slowest first.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn slowest(&self, slicer: &mut Slicer, keep: usize) -> Result<Vec<(Sliced, PacketSlices)>> {
        let mut kept = Slowest::new(keep);
        self.each(|packet| {
            let slices = slicer.slice(&packet.record);
            kept.add(packet, &slices);
            Ok::<_, crate::Error>(())
        })?;
        Ok(kept.finish())
    }
}

/// With a table of each.
///
/// # Errors
/// What cannot be read or written.
pub fn write_slowest(
    packets: &SlicedPackets<'_>,
    out: &mut impl Write,
    number: usize,
    json: bool,
) -> Result<()> {
    let source = packets.source();
    let mut slicer = Slicer::new(packets.entry);
    let kept = packets.slowest(&mut slicer, number)?;
    let view = SliceView {
        table: true,
        absolute: true,
        ..SliceView::default()
    };
    let mut printer = SlicePrinter::new(view);
    for (packet, slices) in &kept {
        let sliced = source.sliced(packet, slices, &slicer);
        if json {
            write_slice_json(out, sliced)?
        } else {
            printer.packet(out, sliced)?
        }
    }
    Ok(())
}

/// Packets of a page, besides the slowest.
const FIRST: usize = 100;

/// A page of the slowest packets and of the first.
///
/// # Errors
/// What cannot be read or written.
pub fn write_page(
    packets: &SlicedPackets<'_>,
    out: &mut impl Write,
    file: &Path,
    number: usize,
) -> Result<()> {
    let tables = packets.selection.tables();
    let mut slicer = Slicer::new(packets.entry);
    let mut stats = SliceStats::default();
    let mut slowest = Slowest::new(number);
    let mut first = Vec::new();
    packets.each(|packet| {
        let slices = slicer.slice(&packet.record);
        stats.add(&slices);
        slowest.add(packet, &slices);
        if first.len() < FIRST {
            first.push((packet.clone(), slices));
        }
        Ok::<_, crate::Error>(())
    })?;
    let damage = packets.selection.opened.damage();
    let page = SlicePage {
        file: &file.display().to_string(),
        origin: SliceOrigin {
            meta: &tables.meta,
            entry: packets.entry,
            summary: tables.summary.as_ref(),
        },
        closing: SliceClosing {
            source: packets.source(),
            slicer: &slicer,
            stats: &stats,
            read: Some(stats.packets),
            damage: damage.as_deref(),
            summary: tables.slice_summary.as_ref(),
        },
        packets: &[
            ("The slowest packets", slowest.finish()),
            ("The first packets", first),
        ],
    };
    Ok(write_slice_html(out, &page)?)
}

/// Of any number of packets, those that took longest.
struct Slowest {
    keep: usize,
    kept: Vec<(Sliced, PacketSlices)>,
}

impl Slowest {
    fn new(keep: usize) -> Slowest {
        Slowest {
            keep,
            kept: Vec::new(),
        }
    }

    fn add(&mut self, packet: &Sliced, slices: &PacketSlices) {
        self.kept.push((packet.clone(), slices.clone()));
        // Seldom enough that sorting costs little a packet.
        if self.kept.len() >= 2 * self.keep.max(64) {
            by_time(&mut self.kept, self.keep);
        }
    }

    fn finish(mut self) -> Vec<(Sliced, PacketSlices)> {
        by_time(&mut self.kept, self.keep);
        self.kept
    }
}

fn by_time(kept: &mut Vec<(Sliced, PacketSlices)>, keep: usize) {
    kept.sort_by_key(|(packet, slices)| (std::cmp::Reverse(slices.whole.best()), packet.record.id));
    kept.truncate(keep);
}
