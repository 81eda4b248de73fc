//! Packets' ways through the kernel, in the formats of other tools.
use super::source::Source;
use crate::error::{Error, Result};
use crate::one_timeline::{Joined, has_both};
use crate::slice_file::{self, SliceFile};
use crate::slices::SlicedPackets;
use hopscope_analyze::slice::Slicer;
use hopscope_event::slice::{Counter, SliceEntry, SliceEvent};
use hopscope_report::export::{Facts, Perfetto, Rows, SliceRows};
use hopscope_report::slice::SlicedPacket;
use std::io::Write;

/// The packets within the window, with what they are made of.
pub(super) fn each(
    source: &Source<'_>,
    entry: &SliceEntry,
    mut visit: impl FnMut(SlicedPacket<'_>) -> Result<()>,
) -> Result<()> {
    let packets = SlicedPackets::of(source.selection, entry);
    let mut slicer = Slicer::new(entry);
    let mut is_empty = true;
    packets.each(|packet| {
        is_empty = false;
        let slices = slicer.slice(&packet.record);
        visit(packets.source().sliced(packet, &slices, &slicer))
    })?;
    if is_empty {
        log::warn!("no packet was sliced in the selected part of this recording");
    }
    Ok(())
}

pub(super) fn entry<'a>(source: &'a Source<'_>) -> Result<&'a SliceEntry> {
    let entry = source.selection.tables().slice.as_ref();
    entry.ok_or_else(|| {
        Error::Refused(
            "the recording holds no slices of the kernel's path (hopscope slice -o)".to_owned(),
        )
    })
}

pub(super) fn table(source: &Source<'_>, rows: impl Rows, facts: &mut Facts) -> Result<()> {
    let entry = entry(source)?;
    let mut rows = SliceRows::new(rows);
    each(source, entry, |sliced| Ok(rows.packet(sliced)?))?;
    put(source, facts);
    if let SliceEvent::Counter(name) = &entry.event {
        facts.put("event", name.as_str());
    }
    Ok(rows.finish(facts)?)
}

pub(super) fn are_of_events(source: &Source<'_>) -> bool {
    let entry = source.selection.tables().slice.as_ref();
    entry.is_some_and(|entry| entry.event != SliceEvent::Time)
}

pub(super) fn perfetto<W: Write>(
    source: &Source<'_>,
    trace: &mut Perfetto<'_, W>,
    facts: &mut Facts,
) -> Result<()> {
    let Some(entry) = &source.selection.tables().slice else {
        return Ok(());
    };
    if entry.event != SliceEvent::Time {
        facts.put("slices_not_shown", "they count events and have no times");
        return Ok(());
    }
    each(source, entry, |sliced| Ok(trace.kernel_path(sliced)?))?;
    put(source, facts);
    Ok(())
}

/// Before the calls are written: which of them are next to which packet.
pub(super) fn join<W: Write>(
    source: &Source<'_>,
    trace: &mut Perfetto<'_, W>,
    facts: &mut Facts,
) -> Result<()> {
    let Some(entry) = source.selection.tables().slice.as_ref() else {
        return Ok(());
    };
    if !has_both(source.selection.reader()) {
        return Ok(());
    }
    let mut joined = Joined::of_all(source.selection, entry)?;
    for batch in source.selection.reader().slices() {
        for packet in &batch? {
            let sides = joined.sides(&packet.record);
            trace.packet_of_calls(packet.record.id, &sides);
        }
    }
    let quality = joined.quality();
    facts.put("clock_error_ns", quality.clock_error_ns);
    facts.doubt("calls_across_a_system_call", quality.counts.crossing);
    Ok(())
}

pub(super) fn pcapng(source: &Source<'_>, out: &mut impl Write) -> Result<Facts> {
    let entry = entry(source)?;
    let tables = source.selection.tables();
    let format = slice_file::Format::Pcapng;
    let mut file = SliceFile::new(out, format, &tables.meta, entry)?;
    for sync in &tables.clocks {
        file.clock(*sync)?;
    }
    each(source, entry, |sliced| file.packet(sliced))?;
    file.finish(tables.slice_summary.as_ref(), tables.summary.as_ref())?;
    let mut facts = Facts::of(&source.recording(&[]));
    put(source, &mut facts);
    Ok(facts)
}

/// What the kernel counted, and with it what is missing.
fn put(source: &Source<'_>, facts: &mut Facts) {
    let Some(summary) = &source.selection.tables().slice_summary else {
        facts.matter("slice_counters", serde_json::Value::Null);
        return;
    };
    let losses = [
        Counter::NoSlot,
        Counter::RingFull,
        Counter::Aged,
        Counter::StaleEnded,
        Counter::QueueFull,
        Counter::CallLost,
        Counter::BytesLost,
    ];
    for counter in Counter::ALL {
        let value = summary.counters.get(*counter);
        if losses.contains(counter) {
            facts.doubt(counter.name(), value)
        } else {
            facts.put(counter.name(), value)
        }
    }
}
