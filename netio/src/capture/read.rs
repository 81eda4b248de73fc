//! One frame after the other out of a pcap or pcapng file of any size and byte order.
use crate::error::CaptureError;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::fs::File;
use std::io::Read;
use std::path::Path;

const FIRST_BUFFER_LEN: usize = 64 * 1024;
/// A longer record is taken for a damaged length.
const MAX_RECORD_LEN: usize = 16 * 1024 * 1024;

/// A frame of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    pub bytes: &'a [u8],
    /// More than `bytes` where the capture cut it.
    pub wire_len: usize,
    /// Since 1970, as the file says it; `None` where the format has none.
    pub time_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CaptureCounts {
    pub frames: u64,
    /// Shorter than on the wire.
    pub cut: u64,
    /// Records that hold no frame: statistics, names, comments.
    pub other_records: u64,
}

/// What an interface of a pcapng section says of its frames.
#[derive(Clone, Copy)]
struct Interface {
    snaplen: u32,
    ticks_per_second: u64,
    offset_s: i64,
}

pub struct CaptureReader {
    path: String,
    reader: Box<dyn PcapReaderIterator + Send>,
    buffer_len: usize,
    /// Of the record that comes next.
    offset: u64,
    classic_ticks: u64,
    interfaces: Vec<Interface>,
    frame: Vec<u8>,
    counts: CaptureCounts,
}

/// What a record is.
enum Record {
    Frame {
        wire_len: usize,
        time_ns: Option<u64>,
    },
    Other,
}

impl CaptureReader {
    /// # Errors
    /// The file cannot be read, or is no capture.
    pub fn open(path: &Path) -> Result<CaptureReader, CaptureError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => CaptureReader::new(&name, file),
            Err(source) => Err(CaptureError::File { path: name, source }),
        }
    }

    /// Reads from `source`, which errors call `path`.
    ///
    /// # Errors
    /// As for [`CaptureReader::open`].
    pub fn new(
        path: &str,
        source: impl Read + Send + 'static,
    ) -> Result<CaptureReader, CaptureError> {
        let reader = create_reader(FIRST_BUFFER_LEN, source)
            .map_err(|_| CaptureError::NotACapture { path: path.into() })?;
        Ok(CaptureReader {
            path: path.into(),
            reader,
            buffer_len: FIRST_BUFFER_LEN,
            offset: 0,
            classic_ticks: 0,
            interfaces: Vec::new(),
            frame: Vec::new(),
            counts: CaptureCounts::default(),
        })
    }

    pub fn counts(&self) -> CaptureCounts {
        self.counts
    }

    /// The next frame, or `None` at the end of the file.
    ///
    /// # Errors
    /// The file is malformed or cut off here; all before is good.
    pub fn next_frame(&mut self) -> Result<Option<Captured<'_>>, CaptureError> {
        loop {
            let taken = match self.reader.next() {
                Ok((len, block)) => {
                    let record = interpret(
                        block,
                        &mut self.classic_ticks,
                        &mut self.interfaces,
                        &mut self.frame,
                    );
                    self.reader.consume(len);
                    Some((len, record))
                }
                Err(PcapError::Eof) => return Ok(None),
                Err(PcapError::Incomplete(_) | PcapError::BufferTooSmall) => None,
                Err(PcapError::UnexpectedEof) => return Err(self.cut_off()),
                Err(error) => {
                    let what = match error {
                        PcapError::NomError(_, kind) | PcapError::OwnedNomError(_, kind) => {
                            format!("no record can be read here ({kind:?})")
                        }
                        other => other.to_string(),
                    };
                    return Err(self.malformed(what));
                }
            };
            let Some((len, record)) = taken else {
                self.read_more()?;
                continue;
            };
            match record {
                Ok(Record::Frame { wire_len, time_ns }) => {
                    self.offset += len as u64;
                    self.counts.frames += 1;
                    self.counts.cut += u64::from(self.frame.len() < wire_len);
                    return Ok(Some(Captured {
                        bytes: &self.frame,
                        wire_len,
                        time_ns,
                    }));
                }
                Ok(Record::Other) => {
                    self.counts.other_records += 1;
                    self.offset += len as u64;
                }
                Err(Wrong::LinkType(link_type)) => {
                    return Err(CaptureError::LinkType {
                        path: self.path.clone(),
                        offset: self.offset,
                        link_type,
                    });
                }
                Err(Wrong::Content(what)) => return Err(self.malformed(what)),
            }
        }
    }

    /// Each call reads something, makes room, or fails: a record that needs more than there can be
    /// ends in an error.
    fn read_more(&mut self) -> Result<(), CaptureError> {
        if self.reader.reader_exhausted() {
            return Err(self.cut_off());
        }
        let before = self.reader.data().len();
        if let Err(error) = self.reader.refill() {
            let what = error.to_string();
            return Err(self.malformed(what));
        }
        if self.reader.data().len() > before || self.reader.reader_exhausted() {
            return Ok(());
        }
        if self.buffer_len >= MAX_RECORD_LEN {
            return Err(self.malformed(format!("a record of more than {MAX_RECORD_LEN} bytes")));
        }
        self.buffer_len *= 2;
        self.reader.grow(self.buffer_len);
        Ok(())
    }

    fn cut_off(&self) -> CaptureError {
        CaptureError::CutOff {
            path: self.path.clone(),
            offset: self.offset,
            frames: self.counts.frames,
        }
    }

    fn malformed(&self, what: String) -> CaptureError {
        CaptureError::Malformed {
            path: self.path.clone(),
            offset: self.offset,
            what,
            frames: self.counts.frames,
        }
    }
}

enum Wrong {
    LinkType(i32),
    Content(String),
}

fn interpret(
    block: PcapBlockOwned<'_>,
    classic_ticks: &mut u64,
    interfaces: &mut Vec<Interface>,
    frame: &mut Vec<u8>,
) -> Result<Record, Wrong> {
    let ethernet = |link_type: Linktype| match link_type {
        Linktype::ETHERNET => Ok(()),
        Linktype(other) => Err(Wrong::LinkType(other)),
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            // The upper bits tell how long a checksum follows each frame: not part of the type.
            ethernet(Linktype(header.network.0 & 0xffff))?;
            *classic_ticks = if header.is_nanosecond_precision() {
                1_000_000_000
            } else {
                1_000_000
            };
            Ok(Record::Other)
        }
        PcapBlockOwned::Legacy(block) => {
            take(frame, block.data, block.caplen)?;
            let fraction = u64::from(block.ts_usec) * (1_000_000_000 / *classic_ticks);
            Ok(Record::Frame {
                wire_len: block.origlen as usize,
                time_ns: Some(u64::from(block.ts_sec) * 1_000_000_000 + fraction),
            })
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.clear();
            Ok(Record::Other)
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
            ethernet(block.linktype)?;
            let no_unit = || Wrong::Content("a time unit that no clock has".into());
            interfaces.push(Interface {
                snaplen: block.snaplen,
                ticks_per_second: block.ts_resolution().ok_or_else(no_unit)?,
                offset_s: block.ts_offset(),
            });
            Ok(Record::Other)
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let interface = interfaces.get(block.if_id as usize).ok_or_else(|| {
                Wrong::Content(format!(
                    "a frame of interface {}, which is not described",
                    block.if_id
                ))
            })?;
            take(frame, block.data, block.caplen)?;
            let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
            Ok(Record::Frame {
                wire_len: block.origlen as usize,
                time_ns: Some(interface.time_ns(ticks)?),
            })
        }
        PcapBlockOwned::NG(Block::SimplePacket(block)) => {
            let interface = interfaces.first().ok_or_else(|| {
                Wrong::Content("a frame before any interface is described".into())
            })?;
            let captured = match interface.snaplen {
                0 => block.origlen,
                snaplen => block.origlen.min(snaplen),
            };
            take(frame, block.data, captured)?;
            Ok(Record::Frame {
                wire_len: block.origlen as usize,
                time_ns: None,
            })
        }
        PcapBlockOwned::NG(_) => Ok(Record::Other),
    }
}

impl Interface {
    fn time_ns(self, ticks: u64) -> Result<u64, Wrong> {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second.max(1));
        let moved = i128::try_from(ns)
            .ok()
            .and_then(|ns| u64::try_from(ns + i128::from(self.offset_s) * 1_000_000_000).ok());
        moved.ok_or_else(|| Wrong::Content("a time outside of 1970 to 2554".into()))
    }
}

fn take(frame: &mut Vec<u8>, data: &[u8], captured: u32) -> Result<(), Wrong> {
    let bytes = data.get(..captured as usize).ok_or_else(|| {
        Wrong::Content(format!(
            "a frame of {captured} bytes in a record of {}",
            data.len()
        ))
    })?;
    frame.clear();
    frame.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests;
