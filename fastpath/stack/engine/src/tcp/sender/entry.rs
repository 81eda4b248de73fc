//! One piece of the sequence space between snd_una and snd_nxt.
use crate::Ns;
use crate::tcp::seq::{Seq, SeqRange};

/// Transmissions are numbered, so that of two at the same time the later one is known. Wraps, as [`Seq`] does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Order(pub(super) u32);

impl Order {
    pub(super) fn next(self) -> Order {
        Order(self.0.wrapping_add(1))
    }

    /// Signed distance.
    pub(super) fn since(self, other: Order) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    pub(super) fn after(self, other: Order) -> bool {
        self.since(other) > 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    /// Sent, and not known to be lost or to have arrived.
    InFlight,
    Sacked,
    /// Lost, and not retransmitted since.
    Lost,
}

/// Bytes that were last transmitted together and have one fate. Begins as what one frame carried, up to 64 KiB, and is split where SACK or a
/// retransmission tells its parts apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) start: Seq,
    pub(super) bytes: u32,
    /// When it was last transmitted.
    pub(super) sent_at: Ns,
    pub(super) order: Order,
    pub(super) segments: u16,
    pub(super) state: EntryState,
    /// Ever (RFC 8985, 5.2, Segment.retransmitted).
    pub(super) retransmitted: bool,
}

impl Entry {
    pub(super) fn end(&self) -> Seq {
        self.start + self.bytes
    }

    pub(super) fn range(&self) -> SeqRange {
        SeqRange::of(self.start, self.bytes)
    }

    /// Cuts off and returns the first `bytes`, which are at least one and less than all.
    pub(super) fn split(&mut self, bytes: u32, mss: u32) -> Entry {
        let segments = (bytes.div_ceil(mss) as u16).clamp(1, self.segments.max(2) - 1);
        let head = Entry {
            bytes,
            segments,
            ..*self
        };
        self.start += bytes;
        self.bytes -= bytes;
        self.segments = self.segments.saturating_sub(segments).max(1);
        head
    }
}
