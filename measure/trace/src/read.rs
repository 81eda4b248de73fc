//! Reading a trace, however it ended. The bytes are untrusted: nothing is used without its
//! checksum, nothing is allocated that the file's length does not justify.
use crate::ahead::{self, Ahead};
use crate::batch::{BatchHead, OwnedBatch};
use crate::error::TraceError;
use crate::format::*;
use crate::slices::{self, SlicesHead};
use crate::source::Source;
use crate::stamps::{OwnedStamps, StampsHead};
use crate::switches::{OwnedSwitches, SwitchesHead};
use crate::tables::{Placed, Scan, Tables};
use hopscope_event::slice::Sliced;
use std::io;
use std::path::Path;

pub struct TraceReader {
    source: Source,
    tables: Tables,
    batches: Vec<Placed<BatchHead>>,
    first_stamps: Vec<u64>,
    stamps: Vec<Placed<StampsHead>>,
    switches: Vec<Placed<SwitchesHead>>,
    slices: Vec<Placed<SlicesHead>>,
}

impl TraceReader {
    /// Reads the whole file once: its tables, and the checksums of all chunks. Of records, stamps,
    /// switches and slices only the places are kept.
    pub fn open(path: impl AsRef<Path>) -> Result<TraceReader, TraceError> {
        let path = path.as_ref();
        let failed = |source| TraceError::Open {
            path: path.to_owned(),
            source,
        };
        TraceReader::new(Source::of(path).map_err(failed)?, failed)
    }

    pub fn from_bytes(bytes: Vec<u8>) -> Result<TraceReader, TraceError> {
        TraceReader::new(Source::Memory(bytes), |source| TraceError::Read {
            at: 0,
            source,
        })
    }

    fn new(
        source: Source,
        failed: impl Fn(io::Error) -> TraceError,
    ) -> Result<TraceReader, TraceError> {
        let header = 0..source.len().min(FILE_HEADER_BYTES as u64);
        let mut room = Vec::new();
        let format = file_header(source.bytes(header, &mut room).map_err(&failed)?)?;
        let mut scan = Scan::of(&source).map_err(&failed)?;
        let batches = std::mem::take(&mut scan.batches);
        let first_stamps = std::mem::take(&mut scan.first_stamps);
        let stamps = std::mem::take(&mut scan.stamps);
        let switches = std::mem::take(&mut scan.switches);
        let slices = std::mem::take(&mut scan.slices);
        let tables = scan.finish(source.len(), format)?;
        Ok(TraceReader {
            source,
            tables,
            batches,
            first_stamps,
            stamps,
            switches,
            slices,
        })
    }

    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Decodes lazily, in file order; batches of one thread are in ring order.
    ///
    /// # Errors
    /// The file can no longer be read, or a batch whose checksum is right has records that do not
    /// decode: the file was made by something else than a [`crate::TraceWriter`].
    pub fn batches(&self) -> impl Iterator<Item = Result<OwnedBatch, TraceError>> {
        self.decoded(&self.batches, OwnedBatch::of_payload, "records")
    }

    /// What the batches say of themselves, in file order, without decoding records.
    pub fn heads(&self) -> impl Iterator<Item = BatchHead> {
        self.batches.iter().map(|placed| placed.head)
    }

    /// What follows each batch in the file, in file order, without decoding records.
    pub fn ahead(&self) -> Vec<Ahead> {
        ahead::of(self.heads(), &self.first_stamps)
    }

    /// Stamps of packets, decoded lazily, in file order.
    ///
    /// # Errors
    /// As for [`TraceReader::batches`].
    pub fn stamps(&self) -> impl Iterator<Item = Result<OwnedStamps, TraceError>> {
        self.decoded(&self.stamps, OwnedStamps::of_payload, "stamps of packets")
    }

    /// What the batches of stamps say of themselves, in file order, without decoding rows.
    pub fn stamp_heads(&self) -> impl Iterator<Item = StampsHead> {
        self.stamps.iter().map(|placed| placed.head)
    }

    /// When threads did not run, decoded lazily, in file order; rows of one thread are in order of
    /// time.
    ///
    /// # Errors
    /// As for [`TraceReader::batches`].
    pub fn off_cpu(&self) -> impl Iterator<Item = Result<OwnedSwitches, TraceError>> {
        self.decoded(
            &self.switches,
            OwnedSwitches::of_payload,
            "context switches",
        )
    }

    /// What the batches of context switches say of themselves, in file order.
    pub fn off_cpu_heads(&self) -> impl Iterator<Item = SwitchesHead> {
        self.switches.iter().map(|placed| placed.head)
    }

    /// Sliced packets, decoded lazily, in file order.
    ///
    /// # Errors
    /// As for [`TraceReader::batches`].
    pub fn slices(&self) -> impl Iterator<Item = Result<Vec<Sliced>, TraceError>> {
        self.decoded(&self.slices, slices::of_payload, "sliced packets")
    }

    /// What the batches of sliced packets say of themselves, in file order.
    pub fn slice_heads(&self) -> impl Iterator<Item = SlicesHead> {
        self.slices.iter().map(|placed| placed.head)
    }

    fn decoded<'a, H, T>(
        &'a self,
        places: &'a [Placed<H>],
        decode: impl Fn(&[u8]) -> Option<T> + 'a,
        rows: &'static str,
    ) -> impl Iterator<Item = Result<T, TraceError>> + 'a {
        let mut room = Vec::new();
        places.iter().map(move |placed| {
            let at = placed.start - CHUNK_HEADER_BYTES as u64;
            let payload = self.source.bytes(placed.start..placed.end, &mut room);
            let payload = payload.map_err(|source| TraceError::Read { at, source })?;
            decode(payload).ok_or_else(|| TraceError::Chunk {
                at,
                what: format!("{rows} do not decode"),
            })
        })
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
        for (head, rows) in reader.slice_heads().zip(reader.slices()) {
            if let Ok(rows) = rows {
                assert_eq!(rows.len(), head.rows as usize);
                let held = rows
                    .iter()
                    .flat_map(|row| &row.bytes)
                    .map(|b| b.bytes.len());
                assert!(held.sum::<usize>() <= bytes.len());
            }
        }
    }
}
