//! Rows of generated packets, for the report.
use super::ReportArgs;
use anyhow::Context;
use hopscope_analyze::{Packets, Window};
use hopscope_event::StreamIx;
use hopscope_report::PacketWriter;
use hopscope_trace::{OwnedStamps, TraceReader};
use std::collections::BTreeMap;
use std::io::Write;

pub fn batches(
    args: &ReportArgs,
    reader: &TraceReader,
) -> impl Iterator<Item = anyhow::Result<OwnedStamps>> {
    let reading = format!("reading {}", args.file.display());
    reader
        .stamps()
        .map(move |batch| batch.with_context(|| reading.clone()))
}

/// Statistics of each stream over the packets that should have left within `window`.
pub fn of(args: &ReportArgs, reader: &TraceReader, window: Window) -> anyhow::Result<Vec<Packets>> {
    let mut streams: BTreeMap<StreamIx, Packets> = BTreeMap::new();
    for batch in batches(args, reader) {
        let batch = batch?;
        let stream = batch.stream;
        let packets = streams
            .entry(stream)
            .or_insert_with(|| Packets::new(stream));
        packets.unwritten = packets.unwritten.saturating_add(batch.unwritten_before);
        for stamp in batch
            .stamps
            .iter()
            .filter(|s| window.contains(s.intended.0))
        {
            packets.add(stamp);
        }
    }
    Ok(streams.into_values().collect())
}

/// Every packet; whether the recording is (also) one of packets.
pub fn write_each(
    out: &mut impl Write,
    args: &ReportArgs,
    reader: &TraceReader,
    window: Window,
    writer: &PacketWriter,
) -> anyhow::Result<bool> {
    if reader.tables().streams.is_empty() && reader.stamp_heads().next().is_none() {
        return Ok(false);
    }
    writer.titles(out)?;
    for batch in batches(args, reader) {
        let batch = batch?;
        for stamp in &batch.stamps {
            if window.contains(stamp.intended.0) {
                writer.packet(out, batch.stream.0, stamp)?;
            }
        }
    }
    Ok(true)
}
