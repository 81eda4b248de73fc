//! A row for each packet, in a `.hop` file or as CSV. Written by a thread of its own: the matcher
//! must not wait for a disk. Rows that the disk does not keep up with are dropped and counted.
use super::{PacketsError, clock};
use hopscope_event::{RecordingMeta, Stamp, StreamEntry, StreamIx, Summary, TscFrequency};
use hopscope_trace::host::meta_at;
use hopscope_trace::{Stamps, TraceWriter};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

const BATCH: usize = 4096;
/// 256 Ki rows, 14 MiB: a quarter of a second at a million a second.
const BATCHES_WAITING: usize = 64;

pub const CSV_HEADER: &str =
    "seq,flow,len_bytes,intended_tsc,sent_tsc,received_tsc,latency_ns,transit_ns,flags";

enum Format {
    Csv(BufWriter<File>),
    Hop(Box<TraceWriter<BufWriter<File>>>),
}

struct RowBuffer {
    rows: Vec<Stamp>,
    unwritten_before: u64,
}

/// Takes rows on the matcher's side.
pub struct RowSender {
    rows: Vec<Stamp>,
    full: SyncSender<RowBuffer>,
    empty: Receiver<Vec<Stamp>>,
    unwritten: u64,
    unwritten_ever: Arc<AtomicU64>,
}

/// The file; finished after the matcher.
pub struct RowFile {
    path: PathBuf,
    thread: JoinHandle<Result<Option<Format>, String>>,
    unwritten_ever: Arc<AtomicU64>,
}

impl RowSender {
    #[inline]
    pub fn row(&mut self, stamp: &Stamp) {
        self.rows.push(*stamp);
        if self.rows.len() == BATCH {
            let next = self
                .empty
                .try_recv()
                .unwrap_or_else(|_| Vec::with_capacity(BATCH));
            let rows = std::mem::replace(&mut self.rows, next);
            self.hand_over(rows, false);
        }
    }

    fn hand_over(&mut self, rows: Vec<Stamp>, wait: bool) {
        let batch = RowBuffer {
            rows,
            unwritten_before: self.unwritten,
        };
        let refused = if wait {
            self.full.send(batch).err().map(|error| error.0)
        } else {
            self.full.try_send(batch).err().map(|error| match error {
                TrySendError::Full(batch) | TrySendError::Disconnected(batch) => batch,
            })
        };
        match refused {
            None => self.unwritten = 0,
            Some(batch) => {
                let count = batch.rows.len() as u64;
                self.unwritten += count;
                self.unwritten_ever.fetch_add(count, Ordering::Relaxed);
                self.rows = batch.rows;
                self.rows.clear();
            }
        }
    }
}

impl Drop for RowSender {
    /// At the end there is time to wait.
    fn drop(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() || self.unwritten > 0 {
            self.hand_over(rows, true);
        }
    }
}

/// Creates the file now, so that a run does not end with "permission denied". `.csv` is CSV,
/// anything else a `.hop` trace.
///
/// # Errors
/// When the file cannot be created.
pub fn create(
    path: &Path,
    stream: &StreamEntry,
    frequency: TscFrequency,
) -> Result<(RowSender, RowFile), PacketsError> {
    let file = File::create(path).map_err(|source| PacketsError::File {
        path: path.to_owned(),
        source,
    })?;
    let out = BufWriter::with_capacity(1 << 20, file);
    let failed = |reason: String| PacketsError::Rows {
        path: path.to_owned(),
        reason,
    };
    let format = if path.extension().is_some_and(|ext| ext == "csv") {
        let mut out = out;
        writeln!(out, "{CSV_HEADER}").map_err(|e| failed(e.to_string()))?;
        Format::Csv(out)
    } else {
        let meta = RecordingMeta {
            // No records of functions are in this file.
            stride: 0,
            ..meta_at(frequency)
        };
        let writer = TraceWriter::new(out, &meta).and_then(|mut writer| {
            writer.stream(stream)?;
            Ok(writer)
        });
        Format::Hop(Box::new(writer.map_err(|e| failed(e.to_string()))?))
    };
    let (full, batches) = sync_channel(BATCHES_WAITING);
    let (recycled, empty) = sync_channel(BATCHES_WAITING);
    let unwritten_ever = Arc::new(AtomicU64::new(0));
    let stream = stream.ix;
    let thread =
        std::thread::spawn(move || write_all(format, stream, frequency, &batches, &recycled));
    Ok((
        RowSender {
            rows: Vec::with_capacity(BATCH),
            full,
            empty,
            unwritten: 0,
            unwritten_ever: Arc::clone(&unwritten_ever),
        },
        RowFile {
            path: path.to_owned(),
            thread,
            unwritten_ever,
        },
    ))
}

fn write_all(
    mut format: Format,
    stream: StreamIx,
    frequency: TscFrequency,
    batches: &Receiver<RowBuffer>,
    recycled: &SyncSender<Vec<Stamp>>,
) -> Result<Option<Format>, String> {
    for mut batch in batches {
        match &mut format {
            Format::Csv(out) => csv(out, &batch.rows, frequency).map_err(|e| e.to_string())?,
            Format::Hop(writer) => {
                let stamps = Stamps {
                    stream,
                    unwritten_before: batch.unwritten_before,
                    stamps: &batch.rows,
                };
                writer.stamps(stamps).map_err(|e| e.to_string())?;
            }
        }
        batch.rows.clear();
        // When nobody wants it back it is freed.
        let _ = recycled.try_send(batch.rows);
    }
    Ok(Some(format))
}

fn csv(out: &mut impl Write, rows: &[Stamp], frequency: TscFrequency) -> std::io::Result<()> {
    for row in rows {
        write!(
            out,
            "{},{},{},{},{},",
            row.seq, row.flow, row.len, row.intended.0, row.sent.0
        )?;
        match (row.received, row.latency_ticks(), row.transit_ticks()) {
            (Some(received), Some(latency), Some(transit)) => {
                let (latency, transit) = (frequency.ns(latency), frequency.ns(transit));
                writeln!(out, "{},{latency},{transit},{}", received.0, row.flags)?;
            }
            _ if row.flags.bits() == 0 => writeln!(out, ",,,lost")?,
            _ => writeln!(out, ",,,lost+{}", row.flags)?,
        }
    }
    Ok(())
}

impl RowFile {
    /// After the [`RowSender`] is gone; how many rows were dropped.
    ///
    /// # Errors
    /// When the file could not be written to its end.
    pub fn finish(self, ended_because: &str, sent: u64, lost: u64) -> Result<u64, PacketsError> {
        let failed = |reason: String| PacketsError::Rows {
            path: self.path.clone(),
            reason,
        };
        let written = self.thread.join();
        let written = written.map_err(|_| PacketsError::Thread("the writer of rows"))?;
        let unwritten = self.unwritten_ever.load(Ordering::Relaxed);
        match written.map_err(failed)? {
            Some(Format::Csv(mut out)) => out.flush().map_err(|e| failed(e.to_string()))?,
            Some(Format::Hop(writer)) => {
                let mut notes = vec![format!("{sent} packets sent, {lost} lost")];
                if unwritten > 0 {
                    notes.push(format!("{unwritten} rows dropped: the disk was too slow"));
                }
                let summary = summary(ended_because, notes);
                writer.finish(&summary).map_err(|e| failed(e.to_string()))?;
            }
            None => {}
        }
        Ok(unwritten)
    }
}

fn summary(ended_because: &str, notes: Vec<String>) -> Summary {
    Summary {
        calls_unmeasured: Some(0),
        notes,
        ..Summary::ended(clock::sync(), ended_because)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::{StampFlags, Tsc};

    #[test]
    fn csv_says_lost_and_what_else() {
        let row = Stamp {
            seq: 7,
            flow: 3,
            len: 60,
            intended: Tsc(1000),
            sent: Tsc(1010),
            received: Some(Tsc(1500)),
            flags: StampFlags::REORDERED | StampFlags::LATE,
        };
        let lost = Stamp {
            received: None,
            flags: StampFlags::NONE,
            ..row
        };
        let lost_late = Stamp {
            flags: StampFlags::LATE,
            ..lost
        };
        let mut out = Vec::new();
        let frequency = TscFrequency(2_000_000_000);
        csv(&mut out, &[row, lost, lost_late], frequency).expect("memory");
        let expected = "7,3,60,1000,1010,1500,250,245,late+reordered\n\
                        7,3,60,1000,1010,,,,lost\n7,3,60,1000,1010,,,,lost+late\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
        assert_eq!(CSV_HEADER.split(',').count(), 9);
    }
}
