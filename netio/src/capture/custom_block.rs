//! What only hopscope reads in a pcapng file of its own, and the frames that it belongs to.
use super::pcapng::{BYTE_ORDER, CUSTOM_BINARY, END_OF_OPTIONS};
use super::pcapng::{ENHANCED_PACKET, ENTERPRISE, PRIVATE, SECTION_HEADER};
use crate::error::CaptureError;
use std::io::{ErrorKind, Read};

/// A longer block is taken for a damaged length.
const MAX_BLOCK_LEN: usize = 16 << 20;
/// Type and length before, length behind.
const AROUND: usize = 12;
/// Interface, time, captured length, original length.
const FRAME_HEAD: usize = 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateBlock {
    /// A block of hopscope's own (or of who else took its number), with up to three zeros at its end.
    Private(Vec<u8>),
    Frame {
        bytes: Vec<u8>,
        wire_len: u32,
        /// `None`: another tool wrote this frame.
        private: Option<Vec<u8>>,
    },
    /// Interfaces, statistics, other tools' blocks.
    Other,
}

/// Block after block of a little-endian file of one section, which is what hopscope writes.
pub struct PrivateReader<R> {
    path: String,
    source: R,
    offset: u64,
    frames: u64,
}

impl<R: Read> PrivateReader<R> {
    /// # Errors
    /// The file does not begin like a little-endian pcapng file.
    pub fn new(path: &str, source: R) -> Result<PrivateReader<R>, CaptureError> {
        let mut reader = PrivateReader {
            path: path.to_owned(),
            source,
            offset: 0,
            frames: 0,
        };
        let not_one = || CaptureError::NotACapture { path: path.into() };
        let first = reader.block().map_err(|error| match error {
            CaptureError::CutOff { .. } => not_one(),
            other => other,
        });
        let (kind, body) = first?.ok_or_else(not_one)?;
        let order = body.first_chunk().map(|b| u32::from_le_bytes(*b));
        if kind == SECTION_HEADER && order == Some(BYTE_ORDER) {
            Ok(reader)
        } else {
            Err(not_one())
        }
    }

    /// The next block, or `None` at the end of the file.
    ///
    /// # Errors
    /// The file is malformed or cut off here; all before is good.
    pub fn next_block(&mut self) -> Result<Option<PrivateBlock>, CaptureError> {
        let at = self.offset;
        let Some((kind, body)) = self.block()? else {
            return Ok(None);
        };
        let block = match kind {
            SECTION_HEADER => return Err(self.malformed(at, "a second section")),
            PRIVATE => PrivateBlock::Private(body),
            ENHANCED_PACKET => {
                let frame = frame(&body)
                    .ok_or_else(|| self.malformed(at, "a frame that is longer than its block"))?;
                self.frames += 1;
                frame
            }
            _ => PrivateBlock::Other,
        };
        Ok(Some(block))
    }

    /// Where the next block begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn block(&mut self) -> Result<Option<(u32, Vec<u8>)>, CaptureError> {
        let at = self.offset;
        let mut head = [0; 8];
        match self.fill(&mut head, at)? {
            0 => return Ok(None),
            8 => {}
            _ => return Err(self.cut_off(at)),
        }
        let word = |from: usize| u32::from_le_bytes(std::array::from_fn(|i| head[from + i]));
        let (kind, len) = (word(0), word(4) as usize);
        if !(AROUND..=MAX_BLOCK_LEN).contains(&len) || !len.is_multiple_of(4) {
            return Err(match at {
                0 => CaptureError::NotACapture {
                    path: self.path.clone(),
                },
                _ => self.malformed(at, "a block of impossible length"),
            });
        }
        let mut body = vec![0; len - 8];
        if self.fill(&mut body, at)? < body.len() {
            return Err(self.cut_off(at));
        }
        let behind = body.split_off(len - AROUND);
        if behind != (len as u32).to_le_bytes() {
            return Err(self.malformed(at, "a block whose two lengths differ"));
        }
        self.offset += len as u64;
        Ok(Some((kind, body)))
    }

    /// As much as there is.
    fn fill(&mut self, room: &mut [u8], at: u64) -> Result<usize, CaptureError> {
        let mut filled = 0;
        while filled < room.len() {
            match self.source.read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.malformed(at, &error.to_string())),
            }
        }
        Ok(filled)
    }

    fn cut_off(&self, offset: u64) -> CaptureError {
        CaptureError::CutOff {
            path: self.path.clone(),
            offset,
            frames: self.frames,
        }
    }

    fn malformed(&self, offset: u64, what: &str) -> CaptureError {
        CaptureError::Malformed {
            path: self.path.clone(),
            offset,
            what: what.to_owned(),
            frames: self.frames,
        }
    }
}

/// `None`: it claims more bytes than it has.
fn frame(body: &[u8]) -> Option<PrivateBlock> {
    let (head, rest) = body.split_first_chunk::<FRAME_HEAD>()?;
    let word = |from: usize| u32::from_le_bytes(std::array::from_fn(|i| head[from + i]));
    let (captured, wire_len) = (word(12) as usize, word(16));
    let bytes = rest.get(..captured)?;
    let options = rest.get(captured.next_multiple_of(4)..)?;
    Some(PrivateBlock::Frame {
        bytes: bytes.to_vec(),
        wire_len,
        private: private(options)?,
    })
}

/// The custom option with our number. The outer `None`: options that do not fit into the block.
fn private(mut options: &[u8]) -> Option<Option<Vec<u8>>> {
    while !options.is_empty() {
        let (head, rest) = options.split_first_chunk::<4>()?;
        let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let (code, len) = (half(0), usize::from(half(2)));
        if code == END_OF_OPTIONS {
            break;
        }
        let value = rest.get(..len)?;
        options = rest.get(len.next_multiple_of(4)..)?;
        if code == CUSTOM_BINARY
            && let Some((number, value)) = value.split_first_chunk()
            && u32::from_le_bytes(*number) == ENTERPRISE
        {
            return Some(Some(value.to_vec()));
        }
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    use super::super::{FrameLink, PcapngWriter};
    use super::*;
    use proptest::prelude::*;

    fn file() -> Vec<u8> {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        writer.private(b"five!").unwrap();
        let port = writer.interface_of("veth0", FrameLink::Network).unwrap();
        writer
            .frame_with(port, 7, b"abcde", 9, Some("slow"), b"mine")
            .unwrap();
        writer.frame(port, 8, b"", 60, Some("not mine")).unwrap();
        writer.frame(port, 8, b"x", 60, None).unwrap();
        writer.finish().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<PrivateBlock>, CaptureError> {
        let mut reader = PrivateReader::new("x", bytes)?;
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block()? {
            blocks.push(block);
        }
        assert_eq!(reader.offset(), bytes.len() as u64);
        Ok(blocks)
    }

    #[test]
    fn what_was_written_is_read() {
        let frame = |bytes: &[u8], wire_len, private: Option<&[u8]>| PrivateBlock::Frame {
            bytes: bytes.to_vec(),
            wire_len,
            private: private.map(<[u8]>::to_vec),
        };
        let expected = [
            PrivateBlock::Private(b"five!\0\0\0".to_vec()),
            PrivateBlock::Other,
            frame(b"abcde", 9, Some(b"mine")),
            frame(b"", 60, None),
            frame(b"x", 60, None),
        ];
        assert_eq!(read(&file()).unwrap(), expected);
    }

    #[test]
    fn a_file_that_is_cut_off_says_where() {
        let bytes = file();
        let mut whole = 0;
        for len in 0..bytes.len() {
            match read(&bytes[..len]) {
                Ok(_) => whole += 1,
                Err(CaptureError::CutOff { offset, .. }) => assert!(offset < len as u64),
                Err(CaptureError::NotACapture { .. }) => assert!(len < 64, "{len}"),
                Err(other) => panic!("{len}: {other}"),
            }
        }
        // Cut between two blocks.
        assert_eq!(whole, 5);
    }

    #[test]
    fn other_files_are_no_capture() {
        for bytes in [&b""[..], b"HOPTRACE........", &0xa1b2_c3d4u32.to_be_bytes()] {
            let error = read(bytes).unwrap_err();
            assert!(matches!(error, CaptureError::NotACapture { .. }), "{error}");
        }
        let twice = [file(), file()].concat();
        let error = read(&twice).unwrap_err();
        assert!(error.to_string().contains("a second section"), "{error}");
    }

    proptest! {
        #[test]
        fn any_damage_is_survived(
            at in any::<proptest::sample::Index>(),
            damage in proptest::collection::vec(any::<u8>(), 1..16),
        ) {
            let mut bytes = file();
            let at = at.index(bytes.len());
            let end = (at + damage.len()).min(bytes.len());
            bytes.splice(at..end, damage);
            let _ = read(&bytes);
        }
    }
}
