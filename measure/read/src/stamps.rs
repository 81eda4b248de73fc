//! Generated packets: in the recording, or in another file of the same clock.
use crate::error::{Context, Result};
use crate::options::ReportOptions;
use crate::selection::Selection;
use hopscope_analyze::{Packets, same_clock};
use hopscope_event::{RecordingMeta, Stamp, StreamIx};
use hopscope_report::PacketWriter;
use hopscope_trace::{OwnedStamps, TraceReader};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Batches of the packets in `stamps`, which is the recording or the file beside it.
pub(crate) fn batches<'a>(
    selection: &'a Selection,
    stamps: &'a TraceReader,
) -> impl Iterator<Item = Result<OwnedStamps>> + 'a {
    let batches = stamps.stamps();
    batches.map(|batch| batch.with_context(|| selection.reading()))
}

/// Each packet that was due within the window.
pub(crate) fn each(
    selection: &Selection,
    stamps: &TraceReader,
    mut take: impl FnMut(StreamIx, &Stamp) -> Result<()>,
) -> Result<()> {
    for batch in batches(selection, stamps) {
        let batch = batch?;
        let due = batch.stamps.iter();
        for stamp in due.filter(|s| selection.window.contains(s.intended.0)) {
            take(batch.stream, stamp)?;
        }
    }
    Ok(())
}

impl Selection {
    /// Statistics of each of its own streams over the packets due within the window.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn packets(&self) -> Result<Vec<Packets>> {
        statistics(self, self.reader())
    }
}

/// Of each stream, over the packets due within the window.
pub(crate) fn statistics(selection: &Selection, stamps: &TraceReader) -> Result<Vec<Packets>> {
    let mut streams: BTreeMap<StreamIx, Packets> = BTreeMap::new();
    for batch in batches(selection, stamps) {
        let batch = batch?;
        let stream = batch.stream;
        let packets = streams
            .entry(stream)
            .or_insert_with(|| Packets::new(stream));
        packets.unwritten = packets.unwritten.saturating_add(batch.unwritten_before);
        let due = batch.stamps.iter();
        due.filter(|s| selection.window.contains(s.intended.0))
            .for_each(|stamp| packets.add(stamp));
    }
    Ok(streams.into_values().collect())
}

/// Every packet; whether the recording is (also) one of packets.
pub(crate) fn write_each(
    out: &mut impl Write,
    selection: &Selection,
    writer: &PacketWriter,
) -> Result<bool> {
    let reader = selection.reader();
    if reader.tables().streams.is_empty() && reader.stamp_heads().next().is_none() {
        return Ok(false);
    }
    writer.titles(out)?;
    each(selection, reader, |stream, stamp| {
        Ok(writer.packet(out, stream.0, stamp)?)
    })?;
    Ok(true)
}

/// The file that `--packets` names.
///
/// # Errors
/// It cannot be read, or its clock is another one than that of `file`, the recording.
pub(crate) fn beside(path: &Path, file: &Path, meta: &RecordingMeta) -> Result<TraceReader> {
    let other = TraceReader::open(path).context("--packets")?;
    same_clock(meta, &other.tables().meta).with_context(|| {
        format!(
            "{} and {} cannot be laid side by side; make both on one host, between two boots",
            file.display(),
            path.display()
        )
    })?;
    Ok(other)
}

pub(crate) fn of_options(
    options: &ReportOptions,
    meta: &RecordingMeta,
) -> Result<Option<TraceReader>> {
    let path = options.packets.as_deref();
    path.map(|path| beside(path, &options.file, meta))
        .transpose()
}
