//! The classic format (draft-ietf-opsawg-pcap), little-endian, times in nanoseconds.
use std::io::{self, Write};

const MAGIC_NS: u32 = 0xa1b2_3c4d;
const SNAPLEN: u32 = 262_144;
const ETHERNET: u32 = 1;

pub struct PcapWriter<W: Write> {
    out: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<PcapWriter<W>> {
        out.write_all(&MAGIC_NS.to_le_bytes())?;
        for half in [2u16, 4] {
            out.write_all(&half.to_le_bytes())?;
        }
        // Time zone and accuracy: always zero.
        for word in [0, 0, SNAPLEN, ETHERNET] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(PcapWriter { out })
    }

    /// # Errors
    /// Those of `out`; a time after 2106 does not fit the format.
    pub fn frame(&mut self, time_ns: u64, bytes: &[u8], wire_len: usize) -> io::Result<()> {
        let seconds = u32::try_from(time_ns / 1_000_000_000)
            .map_err(|_| io::Error::other("times after 2106 need pcapng"))?;
        let fraction = (time_ns % 1_000_000_000) as u32;
        for word in [seconds, fraction, bytes.len() as u32, wire_len as u32] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        self.out.write_all(bytes)
    }

    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
