//! The chunks of a file, in order, past whatever is damaged. Takes linear time on any bytes: a step
//! back is never taken, and looking for a lost header reads no payloads.
use crate::format::{CHUNK_HEADER_BYTES, ChunkHeader};
use crate::source::Source;
use std::io;

pub(crate) enum Step<'a> {
    Chunk {
        kind: u32,
        /// Byte of the file where the payload begins.
        start: u64,
        payload: &'a [u8],
    },
    /// Something is wrong at byte `at`; what follows it may be whole.
    Skipped { at: u64, what: &'static str },
    /// Nothing can be read from byte `at` on.
    Ended { at: u64, what: &'static str },
}

pub(crate) struct Chunks<'a> {
    source: &'a Source,
    at: u64,
    room: Vec<u8>,
}

const HEADER: u64 = CHUNK_HEADER_BYTES as u64;
/// Read size while scanning for the next valid header.
const WINDOW: u64 = 1 << 20;

impl<'a> Chunks<'a> {
    pub(crate) fn new(source: &'a Source, at: u64) -> Chunks<'a> {
        Chunks {
            source,
            at,
            room: Vec::new(),
        }
    }

    /// The first position from `from` on that holds the header of a chunk that fits into the file.
    fn next_header(&mut self, mut from: u64) -> io::Result<Option<u64>> {
        let len = self.source.len();
        while from + HEADER <= len {
            let to = (from + WINDOW).min(len);
            let window = self.source.bytes(from..to, &mut self.room)?;
            let found = (from..)
                .zip(window.windows(CHUNK_HEADER_BYTES))
                .find(|(at, bytes)| {
                    // Types are lower-case letters: this spares most checksums.
                    bytes[..4].iter().all(u8::is_ascii_lowercase)
                        && header(bytes).is_some_and(|h| u64::from(h.len) <= len - at - HEADER)
                });
            if let Some((at, _)) = found {
                return Ok(Some(at));
            }
            // A header may begin in this window and end in the next.
            from = to - (HEADER - 1);
        }
        Ok(None)
    }

    /// # Errors
    /// The file cannot be read.
    pub(crate) fn step(&mut self) -> io::Result<Option<Step<'_>>> {
        let (at, len) = (self.at, self.source.len());
        if at >= len {
            return Ok(None);
        }
        // What ends the walk; each other way on sets it anew.
        self.at = len;
        if len - at < HEADER {
            let what = "the file ends inside a chunk header";
            return Ok(Some(Step::Ended { at, what }));
        }
        let start = at + HEADER;
        let Some(header) = header(self.source.bytes(at..start, &mut self.room)?) else {
            let what = "a chunk header is damaged";
            let Some(next) = self.next_header(at + 1)? else {
                return Ok(Some(Step::Ended { at, what }));
            };
            self.at = next;
            return Ok(Some(Step::Skipped { at, what }));
        };
        let end = start + u64::from(header.len);
        if end > len {
            let what = "the file ends inside a chunk";
            return Ok(Some(Step::Ended { at, what }));
        }
        self.at = end;
        let payload = self.source.bytes(start..end, &mut self.room)?;
        if crc32fast::hash(payload) != header.payload_crc {
            let what = "the checksum of a chunk is wrong";
            return Ok(Some(Step::Skipped { at, what }));
        }
        let kind = header.kind;
        Ok(Some(Step::Chunk {
            kind,
            start,
            payload,
        }))
    }
}

fn header(bytes: &[u8]) -> Option<ChunkHeader> {
    ChunkHeader::from_bytes(bytes.first_chunk()?)
}
