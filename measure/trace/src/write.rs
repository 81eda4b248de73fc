//! Writing a trace: every call appends whole chunks, so that a crash loses at most the last one.
use crate::batch::BatchHead;
use crate::codec;
use crate::error::TraceError;
use crate::format::*;
use crate::slices::{self, SlicesHead};
use crate::stamps::{self, StampsHead};
use crate::switches::{self, SwitchesHead};
use hopscope_event::slice::{SliceEntry, SliceSummary, Sliced};
use hopscope_event::table::ModuleEntry;
use hopscope_event::{
    BudgetEntry, CaptureEntry, ClockSync, CostCheckEntry, CounterEntry, FlightEntry, FunctionEntry,
    OffCpu, OffCpuEntry, ProcessEntry, Record, RecordingMeta, Refusal, Stamp, StreamEntry,
    StreamIx, Summary, ThinEntry, ThreadEntry, ThreadIx, TriggerEntry,
};
use serde::Serialize;
use std::io::Write;

/// Records of one thread, in ring order.
#[derive(Debug, Clone, Copy)]
pub struct RecordBatch<'a> {
    pub thread: ThreadIx,
    /// Free-running ring index of the first record.
    pub first_index: u64,
    /// Overwritten since the previous batch of this thread.
    pub lost_before: u64,
    pub torn_before: u64,
    pub records: &'a [Record],
}

/// Stamps of one stream, in the order in which the fate of each packet was known.
#[derive(Debug, Clone, Copy)]
pub struct Stamps<'a> {
    pub stream: StreamIx,
    /// Rows that had to be dropped since the previous batch of this stream.
    pub unwritten_before: u64,
    pub stamps: &'a [Stamp],
}

/// When one thread did not run, in order of time.
#[derive(Debug, Clone, Copy)]
pub struct Switches<'a> {
    pub thread: ThreadIx,
    /// Records of switches, of this thread or another, that are missing between the previous batch
    /// of this thread and this one.
    pub lost_before: u64,
    pub rows: &'a [OffCpu],
}

pub struct TraceWriter<W: Write> {
    out: W,
    /// Header and payload of the chunk in the making; stays at its largest size.
    chunk: Vec<u8>,
    bytes: u64,
}

impl<W: Write> TraceWriter<W> {
    pub fn new(out: W, meta: &RecordingMeta) -> Result<TraceWriter<W>, TraceError> {
        let mut writer = TraceWriter {
            out,
            chunk: vec![0; CHUNK_HEADER_BYTES],
            bytes: 0,
        };
        let mut header = Vec::with_capacity(FILE_HEADER_BYTES);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&MAJOR.to_le_bytes());
        header.extend_from_slice(&MINOR.to_le_bytes());
        header.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        writer.out.write_all(&header)?;
        writer.bytes = header.len() as u64;
        writer.json(META, meta)?;
        Ok(writer)
    }

    fn json<T: Serialize + ?Sized>(&mut self, kind: u32, table: &T) -> Result<(), TraceError> {
        self.chunk.truncate(CHUNK_HEADER_BYTES);
        serde_json::to_writer(&mut self.chunk, table).map_err(std::io::Error::from)?;
        self.write(kind, self.chunk.len())
    }

    /// Writes the first `end` bytes of the buffer, which begins with room for the header: one write
    /// a chunk.
    fn write(&mut self, kind: u32, end: usize) -> Result<(), TraceError> {
        let payload = &self.chunk[CHUNK_HEADER_BYTES..end];
        if payload.len() > PAYLOAD_MAX {
            return Err(TraceError::TooLarge(payload.len()));
        }
        let header = ChunkHeader::of(kind, payload).to_bytes();
        self.chunk[..CHUNK_HEADER_BYTES].copy_from_slice(&header);
        self.out.write_all(&self.chunk[..end])?;
        self.bytes += end as u64;
        Ok(())
    }

    /// A table is cut into chunks that stay far below the limit.
    fn rows<T: Serialize>(&mut self, kind: u32, rows: &[T]) -> Result<(), TraceError> {
        rows.chunks(4096).try_for_each(|part| self.json(kind, part))
    }

    pub fn process(&mut self, entry: &ProcessEntry) -> Result<(), TraceError> {
        self.json(PROCESS, entry)
    }

    pub fn thread(&mut self, entry: &ThreadEntry) -> Result<(), TraceError> {
        self.json(THREAD, entry)
    }

    pub fn modules(&mut self, rows: &[ModuleEntry]) -> Result<(), TraceError> {
        self.rows(MODULES, rows)
    }

    pub fn functions(&mut self, rows: &[FunctionEntry]) -> Result<(), TraceError> {
        self.rows(FUNCTIONS, rows)
    }

    pub fn refusals(&mut self, rows: &[Refusal]) -> Result<(), TraceError> {
        self.rows(REFUSALS, rows)
    }

    pub fn captures(&mut self, rows: &[CaptureEntry]) -> Result<(), TraceError> {
        self.rows(CAPTURES, rows)
    }

    /// Nothing where there are none.
    pub fn counters(&mut self, rows: &[CounterEntry]) -> Result<(), TraceError> {
        self.rows(COUNTERS, rows)
    }

    pub fn clock(&mut self, sync: ClockSync) -> Result<(), TraceError> {
        self.json(CLOCK, &sync)
    }

    /// Lap bits in the records' stack words must be gone (the ring reader takes them out).
    pub fn records(&mut self, batch: RecordBatch) -> Result<(), TraceError> {
        let (mut lost, mut torn) = (batch.lost_before, batch.torn_before);
        let mut index = batch.first_index;
        let mut rest = batch.records;
        loop {
            let (part, after) = rest.split_at(rest.len().min(BATCH_RECORDS_MAX));
            let begin = CHUNK_HEADER_BYTES + BATCH_HEADER_BYTES;
            if self.chunk.len() < begin {
                self.chunk.resize(begin, 0);
            }
            let head = BatchHead {
                thread: batch.thread,
                records: part.len() as u32,
                first_index: index,
                lost_before: lost,
                torn_before: torn,
            };
            self.chunk[CHUNK_HEADER_BYTES..begin].copy_from_slice(&head.to_bytes());
            let end = codec::encode(part, &mut self.chunk, begin);
            self.write(RECORDS, end)?;
            (lost, torn) = (0, 0);
            index += part.len() as u64;
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    pub fn stream(&mut self, entry: &StreamEntry) -> Result<(), TraceError> {
        self.json(STREAM, entry)
    }

    pub fn stamps(&mut self, batch: Stamps) -> Result<(), TraceError> {
        let mut unwritten = batch.unwritten_before;
        let mut rest = batch.stamps;
        loop {
            let (part, after) = rest.split_at(rest.len().min(BATCH_STAMPS_MAX));
            let head = StampsHead::of(batch.stream, unwritten, part);
            self.chunk.truncate(CHUNK_HEADER_BYTES);
            self.chunk.extend_from_slice(&head.to_bytes());
            stamps::encode(part, &mut self.chunk);
            self.write(STAMPS, self.chunk.len())?;
            unwritten = 0;
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    pub fn off_cpu(&mut self, entry: &OffCpuEntry) -> Result<(), TraceError> {
        self.json(OFF_CPU, entry)
    }

    pub fn switches(&mut self, batch: Switches) -> Result<(), TraceError> {
        let mut lost = batch.lost_before;
        let mut rest = batch.rows;
        loop {
            let (part, after) = rest.split_at(rest.len().min(BATCH_SWITCHES_MAX));
            let head = SwitchesHead {
                thread: batch.thread,
                rows: part.len() as u32,
                lost_before: lost,
            };
            self.chunk.truncate(CHUNK_HEADER_BYTES);
            self.chunk.extend_from_slice(&head.to_bytes());
            switches::encode(part, &mut self.chunk);
            self.write(SWITCHES, self.chunk.len())?;
            lost = 0;
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    pub fn cost_check(&mut self, entry: &CostCheckEntry) -> Result<(), TraceError> {
        self.json(COST, entry)
    }

    pub fn thin(&mut self, entry: &ThinEntry) -> Result<(), TraceError> {
        self.json(THIN, entry)
    }

    pub fn budget(&mut self, entry: &BudgetEntry) -> Result<(), TraceError> {
        self.json(BUDGET, entry)
    }

    pub fn trigger(&mut self, entry: &TriggerEntry) -> Result<(), TraceError> {
        self.json(TRIGGER, entry)
    }

    pub fn flight(&mut self, entry: &FlightEntry) -> Result<(), TraceError> {
        self.json(FLIGHT, entry)
    }

    /// What is known of slicing before the first packet; may come again when more is known.
    pub fn slice(&mut self, entry: &SliceEntry) -> Result<(), TraceError> {
        self.json(SLICE, entry)
    }

    /// Finished packets, in the order of delivery.
    pub fn slices(&mut self, rows: &[Sliced]) -> Result<(), TraceError> {
        let mut rest = rows;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(batch_of(rest));
            self.chunk.truncate(CHUNK_HEADER_BYTES);
            let head = SlicesHead::of(part);
            self.chunk.extend_from_slice(&head.to_bytes());
            slices::encode(part, &mut self.chunk);
            self.write(SLICES, self.chunk.len())?;
            rest = after;
        }
        Ok(())
    }

    pub fn slice_summary(&mut self, summary: &SliceSummary) -> Result<(), TraceError> {
        self.json(SLICE_SUMMARY, summary)
    }

    pub fn flush(&mut self) -> Result<(), TraceError> {
        Ok(self.out.flush()?)
    }

    /// What is written to. Each call appended whole chunks.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    pub fn bytes_written(&self) -> u64 {
        self.bytes
    }

    /// The last chunk; its absence in a file means that the recorder was killed.
    pub fn finish(mut self, summary: &Summary) -> Result<W, TraceError> {
        self.json(SUMMARY, summary)?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// How many rows make one chunk; at least one.
fn batch_of(rows: &[Sliced]) -> usize {
    let mut bytes = 0;
    let fits = rows.iter().take(BATCH_SLICES_MAX).take_while(|row| {
        bytes += row.bytes.as_ref().map_or(0, |b| b.bytes.len());
        bytes <= BATCH_PACKET_BYTES_MAX
    });
    fits.count().max(1)
}
