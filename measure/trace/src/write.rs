//! Writing a trace: every call appends whole chunks, so that a crash loses at most the last one.
use crate::codec;
use crate::error::TraceError;
use crate::format::{self, *};
use hopscope_event::table::ModuleEntry;
use hopscope_event::{
    ClockSync, FunctionEntry, ProcessEntry, Record, RecordingMeta, Refusal, Summary, ThreadEntry, ThreadIx,
};
use serde::Serialize;
use std::io::Write;

/// Records of one thread, in ring order.
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    pub thread: ThreadIx,
    /// Free-running ring index of the first record.
    pub first_index: u64,
    /// Overwritten since the previous batch of this thread.
    pub lost_before: u64,
    pub torn_before: u64,
    pub records: &'a [Record],
}

pub struct TraceWriter<W: Write> {
    out: W,
    payload: Vec<u8>,
    bytes: u64,
}

impl<W: Write> TraceWriter<W> {
    pub fn new(out: W, meta: &RecordingMeta) -> Result<TraceWriter<W>, TraceError> {
        let mut writer = TraceWriter { out, payload: Vec::new(), bytes: 0 };
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
        self.payload.clear();
        serde_json::to_writer(&mut self.payload, table).map_err(std::io::Error::from)?;
        self.chunk(kind)
    }

    fn chunk(&mut self, kind: u32) -> Result<(), TraceError> {
        if self.payload.len() > PAYLOAD_MAX {
            return Err(TraceError::TooLarge(self.payload.len()));
        }
        let mut header = [0u8; CHUNK_HEADER_BYTES];
        header[0..4].copy_from_slice(&kind.to_le_bytes());
        header[4..8].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        header[8..12].copy_from_slice(&format::checksum(kind, &self.payload).to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(&self.payload)?;
        self.bytes += (header.len() + self.payload.len()) as u64;
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

    pub fn clock(&mut self, sync: ClockSync) -> Result<(), TraceError> {
        self.json(CLOCK, &sync)
    }

    /// Lap bits in the records' stack words must be gone (the ring reader takes them out).
    pub fn records(&mut self, batch: Batch) -> Result<(), TraceError> {
        let (mut lost, mut torn) = (batch.lost_before, batch.torn_before);
        let mut index = batch.first_index;
        let mut rest = batch.records;
        loop {
            let (part, after) = rest.split_at(rest.len().min(BATCH_RECORDS_MAX));
            self.payload.clear();
            self.payload.extend_from_slice(&batch.thread.0.to_le_bytes());
            self.payload.extend_from_slice(&(part.len() as u32).to_le_bytes());
            for word in [index, lost, torn] {
                self.payload.extend_from_slice(&word.to_le_bytes());
            }
            codec::encode(part, &mut self.payload);
            self.chunk(RECORDS)?;
            (lost, torn) = (0, 0);
            index += part.len() as u64;
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    pub fn flush(&mut self) -> Result<(), TraceError> {
        Ok(self.out.flush()?)
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
