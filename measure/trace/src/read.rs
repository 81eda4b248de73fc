//! Reading a trace, however it ended. The bytes are not trusted: nothing is believed without its
//! checksum, nothing is allocated that the file's length does not justify.
use crate::codec;
use crate::error::TraceError;
use crate::format::{self, *};
use crate::map::Bytes;
use hopscope_event::table::ModuleEntry;
use hopscope_event::{
    ClockSync, FunctionEntry, ProcessEntry, Record, RecordingMeta, Refusal, Summary, ThreadEntry, ThreadIx,
};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::path::Path;

/// Everything but the records.
#[derive(Debug, Clone)]
pub struct Tables {
    pub meta: RecordingMeta,
    pub processes: Vec<ProcessEntry>,
    pub threads: Vec<ThreadEntry>,
    pub modules: Vec<ModuleEntry>,
    pub functions: Vec<FunctionEntry>,
    pub refusals: Vec<Refusal>,
    pub clocks: Vec<ClockSync>,
    pub summary: Option<Summary>,
    pub damage: Option<Damage>,
    /// Chunks of types that this version does not know.
    pub unknown_chunks: u64,
    pub file_bytes: u64,
    pub chunks: u64,
    pub format: (u16, u16),
}

/// What of a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Position of the first chunk that is not whole.
    pub at: u64,
    /// Bytes from there to the end that were given up.
    pub bytes_lost: u64,
    /// Chunks in the middle that were skipped.
    pub chunks_skipped: u64,
    pub what: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedBatch {
    pub thread: ThreadIx,
    pub first_index: u64,
    pub lost_before: u64,
    pub torn_before: u64,
    pub records: Vec<Record>,
}

pub struct TraceReader {
    bytes: Bytes,
    tables: Tables,
    /// Payloads of the record chunks: start, end.
    batches: Vec<(usize, usize)>,
}

impl TraceReader {
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader, TraceError> {
        let path = path.as_ref();
        let opened = File::open(path).and_then(|file| Bytes::of(&file));
        let bytes = opened.map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        TraceReader::new(bytes)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<TraceReader, TraceError> {
        TraceReader::new(Bytes::Owned(bytes))
    }

    fn new(bytes: Bytes) -> Result<TraceReader, TraceError> {
        let format = file_header(&bytes)?;
        let mut scan = Scan::default();
        let mut at = FILE_HEADER_BYTES;
        while at < bytes.len() {
            match chunk(&bytes, at) {
                Ok((kind, payload)) => {
                    scan.take(kind, &bytes[payload.0..payload.1], payload, at);
                    at = payload.1;
                }
                Err(Broken::Content { end, what }) if end < bytes.len() && chunk(&bytes, end).is_ok() => {
                    scan.damaged(at, what);
                    scan.skipped += 1;
                    at = end;
                }
                Err(Broken::Content { what, .. } | Broken::Header { what }) => {
                    scan.damaged(at, what);
                    scan.bytes_lost = (bytes.len() - at) as u64;
                    break;
                }
            }
        }
        let (tables, batches) = scan.finish(bytes.len() as u64, format)?;
        Ok(TraceReader { bytes, tables, batches })
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Decodes lazily, in file order; batches of one thread are in ring order.
    pub fn batches(&self) -> impl Iterator<Item = Result<OwnedBatch, TraceError>> {
        self.batches.iter().map(|(from, to)| {
            batch(&self.bytes[*from..*to])
                .ok_or_else(|| TraceError::Chunk { at: *from as u64, what: "records do not decode".into() })
        })
    }
}

fn file_header(bytes: &[u8]) -> Result<(u16, u16), TraceError> {
    let header = bytes.get(..FILE_HEADER_BYTES).ok_or(TraceError::NotATrace)?;
    if header[..8] != MAGIC || header[12..16] != BYTE_ORDER.to_le_bytes() {
        return Err(TraceError::NotATrace);
    }
    let major = u16::from_le_bytes([header[8], header[9]]);
    let minor = u16::from_le_bytes([header[10], header[11]]);
    if major != MAJOR {
        return Err(TraceError::Version { major, minor });
    }
    Ok((major, minor))
}

enum Broken {
    /// The length makes no sense: where the next chunk starts is not known.
    Header { what: String },
    Content { end: usize, what: String },
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn chunk(bytes: &[u8], at: usize) -> Result<(u32, (usize, usize)), Broken> {
    let start = at + CHUNK_HEADER_BYTES;
    if bytes.len() < start {
        return Err(Broken::Header { what: "the file ends inside a chunk header".into() });
    }
    let (kind, len, crc) = (word(bytes, at), word(bytes, at + 4) as usize, word(bytes, at + 8));
    if len > PAYLOAD_MAX {
        return Err(Broken::Header { what: format!("a chunk claims {len} bytes") });
    }
    let end = start + len;
    if bytes.len() < end {
        return Err(Broken::Header { what: "the file ends inside a chunk".into() });
    }
    if format::checksum(kind, &bytes[start..end]) != crc {
        return Err(Broken::Content { end, what: "a chunk's checksum is wrong".into() });
    }
    Ok((kind, (start, end)))
}

fn batch(payload: &[u8]) -> Option<OwnedBatch> {
    let header = payload.get(..BATCH_HEADER_BYTES)?;
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
    Some(OwnedBatch {
        thread: ThreadIx(word(header, 0)),
        first_index: long(8),
        lost_before: long(16),
        torn_before: long(24),
        records: codec::decode(&payload[BATCH_HEADER_BYTES..], word(header, 4) as usize)?,
    })
}

#[derive(Default)]
struct Scan {
    meta: Option<RecordingMeta>,
    processes: Vec<ProcessEntry>,
    threads: Vec<ThreadEntry>,
    modules: Vec<ModuleEntry>,
    functions: Vec<FunctionEntry>,
    refusals: Vec<Refusal>,
    clocks: Vec<ClockSync>,
    summary: Option<Summary>,
    batches: Vec<(usize, usize)>,
    unknown: u64,
    chunks: u64,
    first_damage: Option<(usize, String)>,
    skipped: u64,
    bytes_lost: u64,
}

impl Scan {
    fn damaged(&mut self, at: usize, what: String) {
        self.first_damage.get_or_insert((at, what));
    }

    fn take(&mut self, kind: u32, payload: &[u8], range: (usize, usize), at: usize) {
        self.chunks += 1;
        let done = match kind {
            META => json(payload).map(|meta| self.meta = Some(meta)),
            PROCESS => json(payload).map(|p| self.processes.push(p)),
            THREAD => json(payload).map(|t| self.threads.push(t)),
            MODULES => json(payload).map(|rows: Vec<_>| self.modules.extend(rows)),
            FUNCTIONS => json(payload).map(|rows: Vec<_>| self.functions.extend(rows)),
            REFUSALS => json(payload).map(|rows: Vec<_>| self.refusals.extend(rows)),
            CLOCK => json(payload).map(|c| self.clocks.push(c)),
            SUMMARY => json(payload).map(|s| self.summary = Some(s)),
            RECORDS => {
                self.batches.push(range);
                Ok(())
            }
            _ => {
                self.unknown += 1;
                Ok(())
            }
        };
        if let Err(e) = done {
            self.damaged(at, format!("a table does not parse: {e}"));
            self.skipped += 1;
        }
    }

    fn finish(self, file_bytes: u64, format: (u16, u16)) -> Result<(Tables, Vec<(usize, usize)>), TraceError> {
        let (skipped, bytes_lost) = (self.skipped, self.bytes_lost);
        let damage = self.first_damage.map(|(at, what)| Damage {
            at: at as u64,
            bytes_lost,
            chunks_skipped: skipped,
            what,
        });
        let no_meta = || {
            TraceError::NoMeta(damage.as_ref().map_or("it is missing".into(), |d| d.what.clone()))
        };
        let tables = Tables {
            meta: self.meta.ok_or_else(no_meta)?,
            processes: self.processes,
            threads: self.threads,
            modules: self.modules,
            functions: self.functions,
            refusals: self.refusals,
            clocks: self.clocks,
            summary: self.summary,
            damage,
            unknown_chunks: self.unknown,
            file_bytes,
            chunks: self.chunks,
            format,
        };
        Ok((tables, self.batches))
    }
}

fn json<T: DeserializeOwned>(payload: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(payload)
}

/// Entry for fuzzers: reads everything that there is.
pub fn fuzz_reader(bytes: &[u8]) {
    if let Ok(reader) = TraceReader::from_bytes(bytes.to_vec()) {
        for batch in reader.batches().flatten() {
            assert!(batch.records.len() <= bytes.len());
        }
    }
}
