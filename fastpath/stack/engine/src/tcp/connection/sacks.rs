//! What SACK options tell of out-of-order data: the most recent ranges first (RFC 2018, 4), a duplicate before them (RFC 2883, 4).
use crate::tcp::seq::{Seq, SeqRange};
use crate::wire::tcp_options::SackBlocks;

/// As many as fit into an option beside timestamps, and one.
const MAX: usize = 4;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sacks {
    recent: [SeqRange; MAX],
    len: u8,
    duplicate: Option<SeqRange>,
}

impl Sacks {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0 && self.duplicate.is_none()
    }

    fn recent(&self) -> &[SeqRange] {
        &self.recent[..usize::from(self.len).min(MAX)]
    }

    /// `range` is all there is around a segment that just came out of order.
    pub(crate) fn add(&mut self, range: SeqRange) {
        let mut kept = [range; MAX];
        let mut len = 1;
        for old in self.recent() {
            if !range.covers(*old) && len < MAX {
                kept[len] = *old;
                len += 1;
            }
        }
        (self.recent, self.len) = (kept, len as u8);
    }

    /// Data until `next` are in order.
    pub(crate) fn advance(&mut self, next: Seq) {
        let mut len = 0;
        for at in 0..usize::from(self.len).min(MAX) {
            if self.recent[at].end.after(next) {
                self.recent[len] = self.recent[at];
                len += 1;
            }
        }
        self.len = len as u8;
    }

    pub(crate) fn clear(&mut self) {
        *self = Sacks::default();
    }

    /// Sequence numbers that came again, for the next segment with ACK only. What was known first stays and grows.
    pub(crate) fn set_duplicate(&mut self, range: SeqRange) {
        if range.is_ordered() {
            self.duplicate = Some(match self.duplicate {
                Some(old) if old.end.from(range.start) && range.end.from(old.start) => {
                    SeqRange::new(old.start.earlier(range.start), old.end.later(range.end))
                }
                _ => range,
            });
        }
    }

    /// The highest number that was told.
    pub(crate) fn highest(&self) -> Option<Seq> {
        let ends = self.recent().iter().map(|r| r.end);
        ends.reduce(Seq::later)
    }

    /// Blocks of the next segment's option, at most `most`.
    pub(crate) fn blocks(&self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let all = self.duplicate.iter().chain(self.recent());
        for range in all.take(most) {
            blocks.push(range.start.0, range.end.0);
        }
        blocks
    }

    pub(crate) fn count(&self) -> usize {
        usize::from(self.len) + usize::from(self.duplicate.is_some())
    }

    /// The option was sent.
    pub(crate) fn sent(&mut self) {
        self.duplicate = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u32, end: u32) -> SeqRange {
        SeqRange::new(Seq(start), Seq(end))
    }

    #[test]
    fn rfc2018_4_the_first_block_has_the_segment_that_triggered_it() {
        let mut sacks = Sacks::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (30, 45)] {
            sacks.add(range(start, end));
        }
        assert_eq!(sacks.blocks(4).as_slice(), [(30, 45), (50, 60), (10, 20)]);
        sacks.advance(Seq(25));
        assert_eq!(sacks.blocks(1).as_slice(), [(30, 45)]);
        assert_eq!(sacks.highest(), Some(Seq(60)));
    }

    #[test]
    fn rfc2883_4_a_duplicate_is_told_once_and_first() {
        let mut sacks = Sacks::default();
        sacks.add(range(50, 60));
        sacks.set_duplicate(range(5, 9));
        assert_eq!(sacks.blocks(4).as_slice(), [(5, 9), (50, 60)]);
        sacks.sent();
        assert_eq!(sacks.blocks(4).as_slice(), [(50, 60)]);
    }
}
