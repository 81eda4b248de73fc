//! Reading a trace, however it ended. The bytes are not trusted: nothing is believed without its
//! checksum, nothing is allocated that the file's length does not justify.
use crate::batch::{BatchHead, OwnedBatch};
use crate::error::TraceError;
use crate::format::*;
use crate::map::Bytes;
use crate::stamps::{OwnedStamps, StampsHead};
use crate::switches::{OwnedSwitches, SwitchesHead};
use crate::tables::{Scan, Tables};
use std::ops::Range;
use std::path::Path;

pub struct TraceReader {
    bytes: Bytes,
    tables: Tables,
    /// Payloads of the record chunks.
    batches: Vec<Range<usize>>,
    /// Payloads of the stamp chunks.
    stamps: Vec<Range<usize>>,
    /// Payloads of the chunks with context switches.
    switches: Vec<Range<usize>>,
}

impl TraceReader {
    /// Maps the file and reads its tables; checksums of all chunks are verified here.
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader, TraceError> {
        let path = path.as_ref();
        let bytes = Bytes::of(path).map_err(|source| TraceError::Open {
            path: path.to_owned(),
            source,
        })?;
        TraceReader::new(bytes)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<TraceReader, TraceError> {
        TraceReader::new(Bytes::Owned(bytes))
    }

    fn new(bytes: Bytes) -> Result<TraceReader, TraceError> {
        let format = file_header(&bytes)?;
        let mut scan = Scan::of(&bytes);
        let batches = std::mem::take(&mut scan.batches);
        let stamps = std::mem::take(&mut scan.stamps);
        let switches = std::mem::take(&mut scan.switches);
        let tables = scan.finish(bytes.len() as u64, format)?;
        Ok(TraceReader {
            bytes,
            tables,
            batches,
            stamps,
            switches,
        })
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Decodes lazily, in file order; batches of one thread are in ring order.
    ///
    /// # Errors
    /// A batch whose checksum is right and whose records do not decode: the file was made by
    /// something else than a [`crate::TraceWriter`].
    pub fn batches(&self) -> impl Iterator<Item = Result<OwnedBatch, TraceError>> {
        self.batches.iter().map(|range| {
            OwnedBatch::of_payload(&self.bytes[range.clone()]).ok_or_else(|| TraceError::Chunk {
                at: (range.start - CHUNK_HEADER_BYTES) as u64,
                what: "records do not decode".into(),
            })
        })
    }

    /// What the batches say of themselves, in file order, without decoding records.
    pub fn heads(&self) -> impl Iterator<Item = BatchHead> {
        let head = |range: &Range<usize>| BatchHead::of_payload(&self.bytes[range.clone()]);
        self.batches.iter().filter_map(head)
    }

    /// Stamps of packets, decoded lazily, in file order.
    ///
    /// # Errors
    /// As for [`TraceReader::batches`].
    pub fn stamps(&self) -> impl Iterator<Item = Result<OwnedStamps, TraceError>> {
        self.stamps.iter().map(|range| {
            OwnedStamps::of_payload(&self.bytes[range.clone()]).ok_or_else(|| TraceError::Chunk {
                at: (range.start - CHUNK_HEADER_BYTES) as u64,
                what: "stamps of packets do not decode".into(),
            })
        })
    }

    /// What the batches of stamps say of themselves, in file order, without decoding rows.
    pub fn stamp_heads(&self) -> impl Iterator<Item = StampsHead> {
        let head = |range: &Range<usize>| StampsHead::of_payload(&self.bytes[range.clone()]);
        self.stamps.iter().filter_map(head)
    }

    /// When threads did not run, decoded lazily, in file order; rows of one thread are in order of
    /// time.
    ///
    /// # Errors
    /// As for [`TraceReader::batches`].
    pub fn off_cpu(&self) -> impl Iterator<Item = Result<OwnedSwitches, TraceError>> {
        self.switches.iter().map(|range| {
            OwnedSwitches::of_payload(&self.bytes[range.clone()]).ok_or_else(|| TraceError::Chunk {
                at: (range.start - CHUNK_HEADER_BYTES) as u64,
                what: "context switches do not decode".into(),
            })
        })
    }

    /// What the batches of context switches say of themselves, in file order.
    pub fn off_cpu_heads(&self) -> impl Iterator<Item = SwitchesHead> {
        let head = |range: &Range<usize>| SwitchesHead::of_payload(&self.bytes[range.clone()]);
        self.switches.iter().filter_map(head)
    }
}

fn file_header(bytes: &[u8]) -> Result<(u16, u16), TraceError> {
    let header: &[u8; FILE_HEADER_BYTES] = bytes.first_chunk().ok_or(TraceError::NotATrace)?;
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

/// Entry for fuzzers: reads everything that there is.
pub fn fuzz_reader(bytes: &[u8]) {
    if let Ok(reader) = TraceReader::from_bytes(bytes.to_vec()) {
        for (head, batch) in reader.heads().zip(reader.batches()) {
            if let Ok(batch) = batch {
                assert_eq!(batch.records.len(), head.records as usize);
                assert!(batch.records.len() <= bytes.len());
            }
        }
        for (head, batch) in reader.stamp_heads().zip(reader.stamps()) {
            if let Ok(batch) = batch {
                assert_eq!(batch.stamps.len(), head.rows as usize);
                assert!(batch.stamps.len() <= bytes.len());
            }
        }
        for (head, batch) in reader.off_cpu_heads().zip(reader.off_cpu()) {
            if let Ok(batch) = batch {
                assert_eq!(batch.rows.len(), head.rows as usize);
                assert!(batch.rows.len() <= bytes.len());
            }
        }
    }
}
