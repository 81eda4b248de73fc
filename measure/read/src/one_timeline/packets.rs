//! The slowest packets, each with the functions before and after its way through the kernel.
use super::{Joined, has_both};
use crate::error::Result;
use crate::options::ReportOptions;
use crate::selection::Selection;
use crate::slices::SlicedPackets;
use hopscope_analyze::slice::{PacketSlices, RealTime, Sides, SliceStats, Slicer};
use hopscope_event::slice::{SliceEntry, SliceEvent, Sliced};
use hopscope_report::slice::{
    OneTimeline, SliceClosing, SlicePrinter, SliceSource, SliceView, write_one_timeline,
    write_sides, write_sides_json, write_slice_json,
};
use hopscope_report::{Names, PacketSection, Recording};
use std::io::Write;

/// Calls beside one packet that are kept.
pub(crate) const KEEP: usize = 4096;

/// Recorded beside functions, called or not, and no generated packets that could be meant instead.
pub fn is_of(selection: &Selection, options: &ReportOptions) -> bool {
    let tables = selection.tables();
    let is_of_time = |entry: &SliceEntry| entry.event == SliceEvent::Time;
    tables.slice.as_ref().is_some_and(is_of_time)
        && tables.streams.is_empty()
        && options.packets.is_none()
        && options.between.is_none()
        && options.packet_id.is_none()
}

/// As text or JSON.
///
/// # Errors
/// What cannot be read or written.
pub fn write(
    out: &mut impl Write,
    options: &ReportOptions,
    selection: &Selection,
    recording: &Recording<'_>,
    entry: &SliceEntry,
) -> Result<()> {
    let part = SlicedPackets::of(selection, entry);
    let mut slicer = Slicer::new(entry);
    let kept = part.slowest(&mut slicer, options.number.unwrap_or(10))?;
    let records = kept.iter().map(|(packet, _)| &packet.record);
    let mut joined = Joined::of(selection, entry, Some(KEEP), records)?;
    let names = Names::new(recording);
    let source = part.source();
    let mut printer = SlicePrinter::new(SliceView {
        table: true,
        absolute: true,
        ..SliceView::default()
    });
    for (packet, slices) in &kept {
        let sides = joined.sides(&packet.record);
        let sliced = source.sliced(packet, slices, &slicer);
        if options.json {
            write_slice_json(out, sliced)?;
            write_sides_json(out, &names, packet.record.id, &sides)?;
        } else {
            printer.packet(out, sliced)?;
            write_sides(out, &names, &sides)?;
        }
    }
    Ok(write_one_timeline(out, &joined.quality(), options.json)?)
}

/// What a page shows of the kernel's path beside calls.
pub(crate) struct Section<'a> {
    entry: &'a SliceEntry,
    time: RealTime,
    slicer: Slicer,
    stats: SliceStats,
    packets: Vec<(Sliced, PacketSlices, Sides)>,
    quality: OneTimeline,
    damage: Option<String>,
}

/// `None`: the recording has not both.
pub(crate) fn section<'a>(
    options: &ReportOptions,
    selection: &'a Selection,
) -> Result<Option<Section<'a>>> {
    let Some(entry) = selection.tables().slice.as_ref() else {
        return Ok(None);
    };
    if !has_both(selection.reader()) {
        return Ok(None);
    }
    let part = SlicedPackets::of(selection, entry);
    let mut slicer = Slicer::new(entry);
    let mut stats = SliceStats::default();
    part.each(|packet| {
        stats.add(&slicer.slice(&packet.record));
        Ok::<_, crate::Error>(())
    })?;
    let kept = part.slowest(&mut slicer, options.number.unwrap_or(100))?;
    let records = kept.iter().map(|(packet, _)| &packet.record);
    let mut joined = Joined::of(selection, entry, Some(KEEP), records)?;
    let packets = kept.into_iter().map(|(packet, slices)| {
        let sides = joined.sides(&packet.record);
        (packet, slices, sides)
    });
    Ok(Some(Section {
        packets: packets.collect(),
        quality: joined.quality(),
        time: part.time,
        damage: selection.opened.damage(),
        entry,
        slicer,
        stats,
    }))
}

impl Section<'_> {
    pub(crate) fn show<'a>(&'a self, selection: &'a Selection) -> PacketSection<'a> {
        PacketSection {
            closing: SliceClosing {
                source: SliceSource {
                    entry: self.entry,
                    time: &self.time,
                },
                slicer: &self.slicer,
                stats: &self.stats,
                read: Some(self.stats.packets),
                damage: self.damage.as_deref(),
                summary: selection.tables().slice_summary.as_ref(),
            },
            heading: "The slowest packets",
            packets: &self.packets,
            quality: self.quality,
        }
    }
}
