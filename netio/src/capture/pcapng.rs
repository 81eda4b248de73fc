//! The format of today's tools (draft-ietf-opsawg-pcapng), little-endian, times in nanoseconds,
//! a comment for a frame where there is something to say.
use std::io::{self, Write};

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
pub(super) const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
pub(super) const ENHANCED_PACKET: u32 = 6;
const INTERFACE_STATISTICS: u32 = 5;
/// Bit 31: for local use, by whoever knows it; other tools pass such a block over, where they would
/// show a custom one as if it were a packet.
pub(super) const PRIVATE: u32 = 0x8048_4f50;
const ETHERNET: u16 = 1;
/// IPv4 or IPv6 without a header before (`LINKTYPE_RAW`).
const RAW: u16 = 101;

// Options; a number has one meaning for each type of block.
pub(super) const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
/// Binary, may be copied to another file.
pub(super) const CUSTOM_BINARY: u16 = 2989;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;
/// Ten to the power of minus nine seconds.
const NANOSECONDS: u8 = 9;

/// Whose custom options these are: the number for examples (RFC 5612), as hopscope has
/// none of its own. What is in them begins with a mark.
pub const ENTERPRISE: u32 = 32_473;

/// What the frames of an interface begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameLink {
    Ethernet,
    /// An IP header.
    Network,
}

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
        self.interface_of(name, FrameLink::Ethernet)
    }

    /// As [`PcapngWriter::interface`], of frames that begin with `link`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn interface_of(&mut self, name: &str, link: FrameLink) -> io::Result<u32> {
        let link = match link {
            FrameLink::Ethernet => ETHERNET,
            FrameLink::Network => RAW,
        };
        self.halves(&[link, 0]);
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
        self.frame_with(interface, time_ns, bytes, wire_len, comment, &[])
    }

    /// A frame with what only hopscope reads; nothing when `private` is empty.
    ///
    /// # Errors
    /// Those of `out`; `private` is longer than an option can be.
    ///
    /// # Panics
    /// As for [`PcapngWriter::frame`].
    pub fn frame_with(
        &mut self,
        interface: u32,
        time_ns: u64,
        bytes: &[u8],
        wire_len: usize,
        comment: Option<&str>,
        private: &[u8],
    ) -> io::Result<()> {
        if private.len() + 4 > usize::from(u16::MAX) {
            let what = "more than an option of pcapng can hold";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        assert!(interface < self.interfaces, "an interface of this file");
        let (high, low) = ((time_ns >> 32) as u32, time_ns as u32);
        self.words(&[interface, high, low, bytes.len() as u32, wire_len as u32]);
        self.padded(bytes);
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        if !private.is_empty() {
            let value = [&ENTERPRISE.to_le_bytes(), private].concat();
            self.option(CUSTOM_BINARY, &value);
        }
        if comment.is_some() || !private.is_empty() {
            self.end_options();
        }
        self.write(ENHANCED_PACKET)
    }

    /// A block that only hopscope reads. Padded with zeros to a multiple of four.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn private(&mut self, private: &[u8]) -> io::Result<()> {
        self.padded(private);
        self.write(PRIVATE)
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

    /// # Errors
    /// Those of `out`.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
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
