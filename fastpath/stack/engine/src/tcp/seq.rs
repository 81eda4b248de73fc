//! Sequence numbers (RFC 9293, 3.4): 32 bits that wrap, so that `a` is before `b` when the way from `a` up to `b` is the shorter one.
use std::ops::{Add, AddAssign, Sub};

/// A sequence number. It has no `Ord`, because order on a circle is not transitive: compare with [`Seq::before`] and its siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Seq(pub(crate) u32);

impl Seq {
    /// Signed distance in bytes from `earlier` up to `self`; negative when `self` is before.
    pub(crate) fn since(self, earlier: Seq) -> i32 {
        self.0.wrapping_sub(earlier.0) as i32
    }

    pub(crate) fn before(self, other: Seq) -> bool {
        self.since(other) < 0
    }

    pub(crate) fn after(self, other: Seq) -> bool {
        self.since(other) > 0
    }

    /// Before, or the same.
    pub(crate) fn until(self, other: Seq) -> bool {
        self.since(other) <= 0
    }

    /// After, or the same.
    pub(crate) fn from(self, other: Seq) -> bool {
        self.since(other) >= 0
    }

    pub(crate) fn earlier(self, other: Seq) -> Seq {
        if self.before(other) { self } else { other }
    }

    pub(crate) fn later(self, other: Seq) -> Seq {
        if self.after(other) { self } else { other }
    }
}

impl Add<u32> for Seq {
    type Output = Seq;

    fn add(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for Seq {
    type Output = Seq;

    fn sub(self, bytes: u32) -> Seq {
        Seq(self.0.wrapping_sub(bytes))
    }
}

impl Sub for Seq {
    /// Bytes from `rhs` up to `self`, modulo 2³²: only where `rhs` is known to be the earlier.
    type Output = u32;

    fn sub(self, rhs: Seq) -> u32 {
        self.0.wrapping_sub(rhs.0)
    }
}

/// Sequence numbers from `start` up to `end`, without `end`. Of a peer's block nothing is known: check [`SeqRange::is_ordered`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SeqRange {
    pub(crate) start: Seq,
    pub(crate) end: Seq,
}

impl SeqRange {
    pub(crate) fn new(start: Seq, end: Seq) -> SeqRange {
        SeqRange { start, end }
    }

    pub(crate) fn of(start: Seq, bytes: u32) -> SeqRange {
        SeqRange {
            start,
            end: start + bytes,
        }
    }

    /// In bytes; SYN and FIN count as one each (RFC 9293, 3.4). 0 where `end` is before `start`.
    pub(crate) fn len(self) -> u32 {
        self.end.since(self.start).max(0) as u32
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Start is before end.
    pub(crate) fn is_ordered(self) -> bool {
        self.start.before(self.end)
    }

    #[cfg(test)]
    pub(crate) fn holds(self, seq: Seq) -> bool {
        seq.from(self.start) && seq.before(self.end)
    }

    /// All of `other` lies in it.
    pub(crate) fn covers(self, other: SeqRange) -> bool {
        other.start.from(self.start) && other.end.until(self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9293_3_4_comparison_wraps() {
        let high = Seq(u32::MAX - 9);
        let low = high + 20;
        assert_eq!(low, Seq(10));
        assert!(high.before(low) && low.after(high) && high.until(high) && low.from(high));
        assert_eq!(low - high, 20);
        assert_eq!(high.since(low), -20);
        assert_eq!((high.earlier(low), high.later(low)), (high, low));
    }

    #[test]
    fn rfc9293_3_4_range_wraps() {
        let range = SeqRange::of(Seq(u32::MAX - 9), 20);
        assert_eq!(range.len(), 20);
        assert!(range.holds(Seq(0)) && !range.holds(Seq(10)));
        let within = SeqRange::new(Seq(5), Seq(10));
        assert!(range.covers(within) && !within.covers(range));
    }

    #[test]
    fn a_reversed_block_has_no_bytes() {
        let reversed = SeqRange::new(Seq(9), Seq(3));
        assert!(!reversed.is_ordered());
        assert_eq!(reversed.len(), 0);
    }
}
