//! Packets' ways through the kernel, in the formats of other tools.
use super::{Output, Source};
use crate::one_timeline::{Joined, has_both};
use crate::slice::SliceFile;
use hopscope_analyze::slice::{PacketSlices, RealTime, Slicer};
use hopscope_event::slice::{Counter, SliceEntry, SliceEvent, Sliced};
use hopscope_report::export::{Facts, Perfetto, Rows, SliceRows};
use hopscope_report::slice::SliceSource;
use std::io::Write;

/// The packets within the window, with what they are made of.
pub(super) fn each(
    source: &Source,
    entry: &SliceEntry,
    mut visit: impl FnMut(&SliceSource<'_>, &Sliced, &PacketSlices, &Slicer) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let tables = source.reader.tables();
    let time = RealTime::new(tables.meta.start, &tables.clocks);
    let from = SliceSource { entry, time: &time };
    let mut slicer = Slicer::new(entry);
    let mut is_empty = true;
    for batch in source.reader.slices() {
        for packet in &batch? {
            if source.span_ns.contains(&packet.record.t0_ns) {
                is_empty = false;
                let slices = slicer.slice(&packet.record);
                visit(&from, packet, &slices, &slicer)?;
            }
        }
    }
    if is_empty {
        log::warn!(
            "no packet was sliced in this recording, or in the part of it that is asked for"
        );
    }
    Ok(())
}

pub(super) fn entry(source: &Source) -> anyhow::Result<&SliceEntry> {
    let entry = source.reader.tables().slice.as_ref();
    entry.ok_or_else(|| {
        anyhow::anyhow!("the recording holds no slices of the kernel's path (hopscope slice -o)")
    })
}

pub(super) fn table(source: &Source, rows: impl Rows, facts: &mut Facts) -> anyhow::Result<()> {
    let entry = entry(source)?;
    let mut rows = SliceRows::new(rows);
    each(source, entry, |from, packet, slices, slicer| {
        Ok(rows.packet(from, &packet.record, slices, slicer)?)
    })?;
    put(source, facts);
    if let SliceEvent::Counter(name) = &entry.event {
        facts.put("event", name.as_str());
    }
    Ok(rows.finish(facts)?)
}

pub(super) fn are_of_events(source: &Source) -> bool {
    let entry = source.reader.tables().slice.as_ref();
    entry.is_some_and(|entry| entry.event != SliceEvent::Time)
}

pub(super) fn perfetto<W: Write>(
    source: &Source,
    trace: &mut Perfetto<'_, W>,
    facts: &mut Facts,
) -> anyhow::Result<()> {
    let Some(entry) = &source.reader.tables().slice else {
        return Ok(());
    };
    if entry.event != SliceEvent::Time {
        facts.put("slices_not_shown", "they count events and have no times");
        return Ok(());
    }
    each(source, entry, |from, packet, slices, slicer| {
        Ok(trace.kernel_path(from, &packet.record, slices, slicer)?)
    })?;
    put(source, facts);
    Ok(())
}

/// Before the calls are written: which of them are next to which packet.
pub(super) fn join<W: Write>(
    source: &Source,
    trace: &mut Perfetto<'_, W>,
    facts: &mut Facts,
) -> anyhow::Result<()> {
    let Some(entry) = source.reader.tables().slice.as_ref() else {
        return Ok(());
    };
    if !has_both(&source.reader) {
        return Ok(());
    }
    let mut joined = Joined::of_all(&source.reader, entry)?;
    for batch in source.reader.slices() {
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

pub(super) fn pcapng(source: &Source, out: &mut Output) -> anyhow::Result<Facts> {
    let entry = entry(source)?;
    let tables = source.reader.tables();
    let format = crate::slice::Format::Pcapng;
    let mut file = SliceFile::new(out, format, &tables.meta, entry)?;
    for sync in &tables.clocks {
        file.clock(*sync)?;
    }
    each(source, entry, |from, packet, slices, slicer| {
        file.packet(from, packet, slices, slicer)
    })?;
    file.finish(tables.slice_summary.as_ref(), tables.summary.as_ref())?;
    let mut facts = Facts::of(&source.recording(&[]));
    put(source, &mut facts);
    Ok(facts)
}

/// What the kernel counted, and with it what is missing.
fn put(source: &Source, facts: &mut Facts) {
    let Some(summary) = &source.reader.tables().slice_summary else {
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
        match losses.contains(counter) {
            true => facts.doubt(counter.name(), value),
            false => facts.put(counter.name(), value),
        }
    }
}
