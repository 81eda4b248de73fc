//! A capture file as a port: read from as fast as it is asked, or written to.
use super::{CaptureReader, PcapWriter, PcapngWriter};
use crate::clock::tsc_now;
use crate::error::CaptureError;
use crate::{Capabilities, Counters, Direction, Fill, Frame, Offload, PacketIo, PortError, Visit};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What tcpdump takes for the longest frame.
const MAX_FRAME_LEN: usize = 262_144;

/// Either format, by the file's name: classic for `.pcap`, else pcapng.
pub enum CaptureWriter {
    Classic(PcapWriter<BufWriter<File>>),
    Pcapng(PcapngWriter<BufWriter<File>>),
}

impl CaptureWriter {
    /// Replaces what was at `path`; only its owner may read a new file.
    ///
    /// # Errors
    /// The file cannot be made or written.
    pub fn create(path: &Path) -> io::Result<CaptureWriter> {
        let out = BufWriter::new(
            File::options()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(path)?,
        );
        if path.extension().is_some_and(|ext| ext == "pcap") {
            return Ok(CaptureWriter::Classic(PcapWriter::new(out)?));
        }
        let mut writer = PcapngWriter::new(out)?;
        writer.interface("hopscope")?;
        Ok(CaptureWriter::Pcapng(writer))
    }

    /// # Errors
    /// The file cannot be written.
    pub fn frame(&mut self, time_ns: u64, bytes: &[u8], wire_len: usize) -> io::Result<()> {
        match self {
            CaptureWriter::Classic(writer) => writer.frame(time_ns, bytes, wire_len),
            CaptureWriter::Pcapng(writer) => writer.frame(0, time_ns, bytes, wire_len, None),
        }
    }

    /// # Errors
    /// The file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            CaptureWriter::Classic(writer) => writer.flush(),
            CaptureWriter::Pcapng(writer) => writer.flush(),
        }
    }
}

enum Side {
    Read(Box<CaptureReader>),
    Write(CaptureWriter),
}

pub struct CapturePort {
    name: String,
    side: Side,
    /// For a frame to be written.
    slot: Box<[u8]>,
    counters: Counters,
}

impl CapturePort {
    /// [`Direction::Receive`] reads the file, [`Direction::Send`] makes it anew.
    ///
    /// # Errors
    /// The file cannot be opened, is no capture, or both directions are asked for.
    pub fn open(path: &Path, direction: Direction) -> Result<CapturePort, PortError> {
        let name = format!("pcap:{}", path.display());
        let side = match direction {
            Direction::Receive => Side::Read(Box::new(CaptureReader::open(path)?)),
            Direction::Send => {
                let failed = |source| CaptureError::File {
                    path: path.display().to_string(),
                    source,
                };
                Side::Write(CaptureWriter::create(path).map_err(failed)?)
            }
            Direction::Both => return Err(PortError::OneWay { name }),
        };
        let slot = match side {
            Side::Read(_) => 0,
            Side::Write(_) => MAX_FRAME_LEN,
        };
        Ok(CapturePort {
            name,
            side,
            slot: vec![0; slot].into(),
            counters: Counters::default(),
        })
    }
}

impl PacketIo for CapturePort {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            max_frame_len: MAX_FRAME_LEN,
            offload: false,
        }
    }

    fn receive(&mut self, max: usize, visit: Visit<'_>) -> Result<usize, PortError> {
        let Side::Read(reader) = &mut self.side else {
            return Err(PortError::direction(&self.name, Direction::Send));
        };
        let received = tsc_now();
        for count in 0..max {
            let Some(frame) = reader.next_frame()? else {
                return match count {
                    0 => Err(PortError::Ended {
                        name: self.name.clone(),
                    }),
                    _ => Ok(count),
                };
            };
            self.counters.received += 1;
            self.counters.received_bytes += frame.bytes.len() as u64;
            self.counters.receive_cut += u64::from(frame.bytes.len() < frame.wire_len);
            visit(Frame {
                bytes: frame.bytes,
                wire_len: frame.wire_len,
                received,
                offload: Offload::default(),
            });
        }
        Ok(max)
    }

    fn send(&mut self, count: usize, fill: Fill<'_>) -> Result<usize, PortError> {
        let Side::Write(writer) = &mut self.side else {
            return Err(PortError::direction(&self.name, Direction::Receive));
        };
        for done in 0..count {
            let outgoing = fill(&mut self.slot);
            let Some(len) = outgoing.checked(&self.name, MAX_FRAME_LEN)? else {
                return Ok(done);
            };
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let time_ns = now.map_or(0, |d| d.as_nanos() as u64);
            writer
                .frame(time_ns, &self.slot[..len], len)
                .map_err(|e| PortError::device(&self.name, "writing", e))?;
            self.counters.sent += 1;
            self.counters.sent_bytes += len as u64;
        }
        Ok(count)
    }

    fn flush(&mut self) -> Result<usize, PortError> {
        if let Side::Write(writer) = &mut self.side {
            writer
                .flush()
                .map_err(|e| PortError::device(&self.name, "writing", e))?;
        }
        Ok(0)
    }

    fn counters(&mut self) -> Result<Counters, PortError> {
        Ok(self.counters)
    }
}
