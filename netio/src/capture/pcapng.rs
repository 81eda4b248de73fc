//! The format of today's tools (draft-ietf-opsawg-pcapng), little-endian, times in nanoseconds,
//! a comment for a frame where there is something to say.
use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const INTERFACE_STATISTICS: u32 = 5;
const ETHERNET: u16 = 1;

// Options; a number has one meaning for each type of block.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
/// Ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

/// What an interface saw, for the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterfaceCounts {
    pub received: u64,
    pub dropped: u64,
}

pub struct PcapngWriter<W: Write> {
    out: W,
    block: Vec<u8>,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section's header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<PcapngWriter<W>> {
        let mut writer = PcapngWriter {
            out,
            block: Vec::new(),
            interfaces: 0,
        };
        writer.words(&[BYTE_ORDER]);
        // Version 1.0, and a section whose length is not known.
        writer.halves(&[1, 0]);
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(SHB_USERAPPL, b"hopscope");
        writer.end_options();
        writer.write(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Adds an interface; its number, for its frames.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn interface(&mut self, name: &str) -> io::Result<u32> {
        self.halves(&[ETHERNET, 0]);
        // No limit to a frame's length.
        self.words(&[0]);
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_TSRESOL, &[NANOSECONDS]);
        self.end_options();
        self.write(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// When `interface` was not given out by [`PcapngWriter::interface`].
    pub fn frame(
        &mut self,
        interface: u32,
        time_ns: u64,
        bytes: &[u8],
        wire_len: usize,
        comment: Option<&str>,
    ) -> io::Result<()> {
        assert!(interface < self.interfaces, "an interface of this file");
        let (high, low) = ((time_ns >> 32) as u32, time_ns as u32);
        self.words(&[interface, high, low, bytes.len() as u32, wire_len as u32]);
        self.padded(bytes);
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
            self.end_options();
        }
        self.write(ENHANCED_PACKET)
    }

    /// # Errors
    /// Those of `out`.
    pub fn statistics(
        &mut self,
        interface: u32,
        time_ns: u64,
        counts: InterfaceCounts,
    ) -> io::Result<()> {
        self.words(&[interface, (time_ns >> 32) as u32, time_ns as u32]);
        self.option(ISB_IFRECV, &counts.received.to_le_bytes());
        self.option(ISB_IFDROP, &counts.dropped.to_le_bytes());
        self.end_options();
        self.write(INTERFACE_STATISTICS)
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

    fn words(&mut self, words: &[u32]) {
        self.block
            .extend(words.iter().flat_map(|w| w.to_le_bytes()));
    }

    fn halves(&mut self, halves: &[u16]) {
        self.block
            .extend(halves.iter().flat_map(|h| h.to_le_bytes()));
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// What is longer than an option can be is cut at a character's end and marked.
    fn option(&mut self, code: u16, value: &[u8]) {
        const MARK: &[u8] = "…".as_bytes();
        let mut value = std::borrow::Cow::Borrowed(value);
        if value.len() > usize::from(u16::MAX) {
            let mut end = usize::from(u16::MAX) - MARK.len();
            while value[end] & 0xc0 == 0x80 {
                end -= 1;
            }
            value = [&value[..end], MARK].concat().into();
        }
        self.halves(&[code, value.len() as u16]);
        self.padded(&value);
    }

    fn end_options(&mut self) {
        self.halves(&[END_OF_OPTIONS, 0]);
    }

    fn write(&mut self, kind: u32) -> io::Result<()> {
        let len = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&len)?;
        self.block.clear();
        Ok(())
    }
}
