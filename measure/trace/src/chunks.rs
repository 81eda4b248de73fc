//! The chunks of a file, in order, past whatever is damaged. Takes linear time on any bytes: a step
//! back is never taken, and looking for a lost header reads no payloads.
use crate::format::{CHUNK_HEADER_BYTES, ChunkHeader};
use std::ops::Range;

pub(crate) enum Step {
    Chunk {
        kind: u32,
        payload: Range<usize>,
    },
    /// Something is wrong at byte `at`; what follows it may be whole.
    Skipped {
        at: usize,
        what: &'static str,
    },
    /// Nothing can be read from byte `at` on.
    Ended {
        at: usize,
        what: &'static str,
    },
}

pub(crate) struct Chunks<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Chunks<'a> {
        Chunks { bytes, at }
    }

    /// The first position from `from` on that holds the header of a chunk that fits into the file.
    fn next_header(&self, from: usize) -> Option<usize> {
        (from..=self.bytes.len().checked_sub(CHUNK_HEADER_BYTES)?).find(|at| {
            let bytes = &self.bytes[*at..];
            // Types are lower-case letters: this spares most checksums.
            bytes[..4].iter().all(u8::is_ascii_lowercase)
                && header(bytes).is_some_and(|h| h.len as usize <= bytes.len() - CHUNK_HEADER_BYTES)
        })
    }
}

fn header(bytes: &[u8]) -> Option<ChunkHeader> {
    ChunkHeader::from_bytes(bytes.first_chunk()?)
}

impl Iterator for Chunks<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let at = self.at;
        let rest = self.bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let ended = |this: &mut Self, what| {
            this.at = this.bytes.len();
            Some(Step::Ended { at, what })
        };
        if rest.len() < CHUNK_HEADER_BYTES {
            return ended(self, "the file ends inside a chunk header");
        }
        let Some(header) = header(rest) else {
            let what = "a chunk header is damaged";
            return match self.next_header(at + 1) {
                Some(next) => {
                    self.at = next;
                    Some(Step::Skipped { at, what })
                }
                None => ended(self, what),
            };
        };
        let start = at + CHUNK_HEADER_BYTES;
        let payload = start..start + header.len as usize;
        let Some(content) = self.bytes.get(payload.clone()) else {
            return ended(self, "the file ends inside a chunk");
        };
        self.at = payload.end;
        if crc32fast::hash(content) != header.payload_crc {
            let what = "the checksum of a chunk is wrong";
            return Some(Step::Skipped { at, what });
        }
        let kind = header.kind;
        Some(Step::Chunk { kind, payload })
    }
}
