//! `report --by packet` of calls and slices in one recording: the slowest packets, each with the
//! functions before and after its way through the kernel.
use super::ReportArgs;
use super::slices::{Part, slowest};
use crate::one_timeline::Joined;
use crate::slice::Opened;
use hopscope_analyze::slice::{PacketSlices, RealTime, Sides, SliceStats, Slicer};
use hopscope_event::slice::{SliceEntry, SliceEvent, Sliced};
use hopscope_report::slice::{
    OneTimeline, SliceClosing, SlicePrinter, SliceSource, SliceView, write_one_timeline,
    write_sides, write_sides_json, write_slice_json,
};
use hopscope_report::{Names, PacketSection, Recording};
use std::io::Write;

/// Calls beside one packet that are kept.
pub(super) const KEEP: usize = 4096;

/// Recorded beside functions, called or not, and no generated packets that could be meant instead.
pub(super) fn is_of(opened: &Opened, args: &ReportArgs) -> bool {
    let slice = opened.reader.tables().slice.as_ref();
    slice.is_some_and(|entry| entry.event == SliceEvent::Time)
        && opened.reader.tables().streams.is_empty()
        && args.packets.is_none()
        && args.between.is_none()
        && args.packet_id.is_none()
}

pub(super) fn write(
    out: &mut impl Write,
    args: &ReportArgs,
    opened: &Opened,
    recording: &Recording<'_>,
    entry: &SliceEntry,
) -> anyhow::Result<()> {
    let part = Part::of(args, opened, entry);
    let mut slicer = Slicer::new(entry);
    let kept = slowest(&part, &mut slicer, args.number.unwrap_or(10))?;
    let records = kept.iter().map(|(packet, _)| &packet.record);
    let mut joined = Joined::of(&opened.reader, entry, Some(KEEP), records)?;
    let names = Names::new(recording);
    let source = part.source();
    let mut printer = SlicePrinter::new(SliceView {
        table: true,
        absolute: true,
        ..SliceView::default()
    });
    for (packet, slices) in &kept {
        let sides = joined.sides(&packet.record);
        match args.json {
            true => {
                write_slice_json(out, &source, packet, slices, &slicer)?;
                write_sides_json(out, &names, packet.record.id, &sides)?;
            }
            false => {
                printer.packet(out, &source, packet, slices, &slicer)?;
                write_sides(out, &names, &sides)?;
            }
        }
    }
    Ok(write_one_timeline(out, &joined.quality(), args.json)?)
}

/// What a page shows of the kernel's path beside calls.
pub(super) struct Section<'a> {
    entry: &'a SliceEntry,
    time: RealTime,
    slicer: Slicer,
    stats: SliceStats,
    packets: Vec<(Sliced, PacketSlices, Sides)>,
    quality: OneTimeline,
    damage: Option<String>,
}

/// `None`: the recording has not both.
pub(super) fn section<'a>(
    args: &ReportArgs,
    opened: &'a Opened,
) -> anyhow::Result<Option<Section<'a>>> {
    let reader = &opened.reader;
    let Some(entry) = reader.tables().slice.as_ref() else {
        return Ok(None);
    };
    if !crate::one_timeline::has_both(reader) {
        return Ok(None);
    }
    let part = Part::of(args, opened, entry);
    let mut slicer = Slicer::new(entry);
    let mut stats = SliceStats::default();
    part.each(|packet| {
        stats.add(&slicer.slice(&packet.record));
        Ok(())
    })?;
    let kept = slowest(&part, &mut slicer, args.number.unwrap_or(100))?;
    let records = kept.iter().map(|(packet, _)| &packet.record);
    let mut joined = Joined::of(reader, entry, Some(KEEP), records)?;
    let packets = kept.into_iter().map(|(packet, slices)| {
        let sides = joined.sides(&packet.record);
        (packet, slices, sides)
    });
    Ok(Some(Section {
        packets: packets.collect(),
        quality: joined.quality(),
        time: part.time,
        damage: opened.damage(),
        entry,
        slicer,
        stats,
    }))
}

impl Section<'_> {
    pub(super) fn show<'a>(&'a self, opened: &'a Opened) -> PacketSection<'a> {
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
                summary: opened.reader.tables().slice_summary.as_ref(),
            },
            heading: "The slowest packets",
            packets: &self.packets,
            quality: self.quality,
        }
    }
}
