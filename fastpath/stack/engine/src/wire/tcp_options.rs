//! TCP's options: MSS (RFC 9293, 3.2), window scale and timestamps (RFC 7323), SACK (RFC 2018).
use super::{be16, be32};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// The kind and length of timestamps after two NOPs: RFC 7323, appendix A, and what nearly all segments begin with.
const ALIGNED_TIMESTAMPS: [u8; 4] = [NOP, NOP, TIMESTAMPS, 10];

/// Window scales above it count as it (RFC 7323, 2.3).
pub const MAX_WINDOW_SCALE: u8 = 14;
/// SACK blocks that 40 bytes of options can hold.
pub const MAX_SACK_BLOCKS: usize = 4;

/// TSval and TSecr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamps {
    pub value: u32,
    pub echo: u32,
}

/// Up to four ranges of sequence numbers: left edge, and right edge, which is not in the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// Beyond [`MAX_SACK_BLOCKS`] nothing is added, which `false` says.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let free = self.blocks.get_mut(usize::from(self.len));
        free.is_some_and(|place| {
            *place = (left, right);
            self.len += 1;
            true
        })
    }

    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Keeps the first `blocks`.
    pub fn truncate(&mut self, blocks: usize) {
        self.len = self.len.min(blocks.min(MAX_SACK_BLOCKS) as u8);
        self.blocks[usize::from(self.len)..].fill((0, 0));
    }
}

/// The options of a segment, received or to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpOptions {
    pub mss: Option<u16>,
    /// At most 14.
    pub window_scale: Option<u8>,
    pub sack_permitted: bool,
    pub timestamps: Option<Timestamps>,
    pub sack: SackBlocks,
}

impl TcpOptions {
    /// Of the bytes between header and payload. Unknown kinds are skipped; of a kind that comes twice the last counts.
    /// The second value is true where a length was wrong: what came before it counts, the rest does not
    /// (RFC 9293, MUST-7).
    #[must_use]
    pub fn parse(bytes: &[u8]) -> (TcpOptions, bool) {
        let mut options = TcpOptions::default();
        if let Some((&ALIGNED_TIMESTAMPS, rest)) = bytes.split_first_chunk()
            && rest.len() == 8
        {
            options.timestamps = Some(timestamps(rest));
            return (options, false);
        }
        let malformed = options.walk(bytes).is_none();
        (options, malformed)
    }

    fn walk(&mut self, mut bytes: &[u8]) -> Option<()> {
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                END => break,
                NOP => bytes = rest,
                _ => {
                    let len = usize::from(*rest.first()?).checked_sub(2)?;
                    let (value, after) = rest.get(1..)?.split_at_checked(len)?;
                    self.take(kind, value)?;
                    bytes = after;
                }
            }
        }
        Some(())
    }

    /// `None`: a length that the kind cannot have.
    fn take(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        match (kind, value.len()) {
            (MSS, 2) => self.mss = Some(be16(value, 0)),
            (WINDOW_SCALE, 1) => self.window_scale = Some(value[0].min(MAX_WINDOW_SCALE)),
            (SACK_PERMITTED, 0) => self.sack_permitted = true,
            (TIMESTAMPS, 8) => self.timestamps = Some(timestamps(value)),
            (SACK, 8 | 16 | 24 | 32) => {
                self.sack = SackBlocks::default();
                for block in value.chunks_exact(8) {
                    self.sack.push(be32(block, 0), be32(block, 4));
                }
            }
            (MSS | WINDOW_SCALE | SACK_PERMITTED | TIMESTAMPS | SACK, _) => return None,
            _ => {}
        }
        Some(())
    }

    /// Bytes that [`TcpOptions::emit`] writes: a multiple of 4, at most 40.
    #[must_use]
    pub fn len(&self) -> usize {
        let words = usize::from(self.mss.is_some())
            + usize::from(self.window_scale.is_some())
            + usize::from(self.sack_permitted && self.timestamps.is_none())
            + self.timestamps.map_or(0, |_| 3);
        let blocks = self.emitted_blocks(words);
        4 * words + if blocks > 0 { 4 + 8 * blocks } else { 0 }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// SACK blocks that fit after `words` 32-bit words of other options: three beside timestamps.
    fn emitted_blocks(&self, words: usize) -> usize {
        let room = (40 - 4 * words).saturating_sub(4) / 8;
        usize::from(self.sack.len).min(room)
    }

    /// `into` has [`TcpOptions::len`] bytes. The order is Linux': MSS, SACK permitted and timestamps, window scale, SACK.
    pub(super) fn emit(&self, into: &mut [u8]) {
        let mut words = into.as_chunks_mut::<4>().0.iter_mut();
        let mut used = 0;
        let mut put = |word: [u8; 4]| {
            if let Some(place) = words.next() {
                *place = word;
                used += 1;
            }
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put([MSS, 4, high, low]);
        }
        match (self.timestamps, self.sack_permitted) {
            (Some(timestamps), permitted) => {
                put(if permitted {
                    [SACK_PERMITTED, 2, TIMESTAMPS, 10]
                } else {
                    ALIGNED_TIMESTAMPS
                });
                put(timestamps.value.to_be_bytes());
                put(timestamps.echo.to_be_bytes());
            }
            (None, true) => put([NOP, NOP, SACK_PERMITTED, 2]),
            (None, false) => {}
        }
        if let Some(scale) = self.window_scale {
            put([NOP, WINDOW_SCALE, 3, scale]);
        }
        let blocks = self.emitted_blocks(used);
        if blocks > 0 {
            let mut put = |word: [u8; 4]| {
                if let Some(place) = words.next() {
                    *place = word;
                }
            };
            put([NOP, NOP, SACK, 2 + 8 * blocks as u8]);
            for (left, right) in &self.sack.as_slice()[..blocks] {
                put(left.to_be_bytes());
                put(right.to_be_bytes());
            }
        }
    }
}

fn timestamps(value: &[u8]) -> Timestamps {
    Timestamps {
        value: be32(value, 0),
        echo: be32(value, 4),
    }
}
