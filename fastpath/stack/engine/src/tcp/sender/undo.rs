//! Whether the retransmissions of a recovery were needed: if not, its reduction of cwnd is taken back (Eifel, RFC 3522 and 4015; DSACK, RFC 3708).
use super::delivery::floor;
use super::ranges::RangeSet;
use super::window::SavedWindow;
use crate::Ns;
use crate::tcp::seq::{Seq, SeqRange};

/// So many bytes later nothing of a recovery counts any more, because sequence numbers wrap.
const LASTS_BYTES: i32 = 1 << 30;
/// Holes of a recovery that an idle connection remembers.
const KEPT_RANGES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Undo {
    /// snd_una when the recovery began, and the window before it.
    began: Option<(Seq, SavedWindow)>,
    /// When the first retransmission since was sent.
    first_at: Option<Ns>,
    /// Bytes retransmitted since, of which no DSACK says that they arrived twice.
    unconfirmed_bytes: u32,
    /// What of them a DSACK may be about. Others are of a network that duplicates, and say nothing of our retransmissions.
    unconfirmed: RangeSet,
}

impl Undo {
    pub(super) fn begin(&mut self, una: Seq, before: SavedWindow) {
        *self = Undo {
            began: Some((una, before)),
            first_at: None,
            unconfirmed_bytes: 0,
            unconfirmed: RangeSet::default(),
        };
    }

    pub(super) fn forget(&mut self) {
        *self = Undo::default();
    }

    /// snd_una is here now.
    pub(super) fn advanced(&mut self, una: Seq) {
        if self
            .began
            .is_some_and(|(began, _)| una.since(began) > LASTS_BYTES)
        {
            self.forget();
        }
    }

    /// All is acknowledged. DSACKs may still come, but so many holes are hardly all of late segments.
    pub(super) fn rest(&mut self) {
        if self.unconfirmed.len() > KEPT_RANGES {
            self.forget();
        }
    }

    pub(super) fn retransmitted(&mut self, now: Ns, range: SeqRange) {
        if self.began.is_some() {
            self.first_at.get_or_insert(now);
            self.unconfirmed_bytes = self.unconfirmed_bytes.saturating_add(range.len());
            self.unconfirmed.insert(range);
        }
    }

    /// The receiver has `range` twice; how much of it was retransmitted since.
    pub(super) fn dsack(&mut self, range: SeqRange) -> u32 {
        let before = self.unconfirmed.bytes();
        self.unconfirmed.remove(range);
        let confirmed = before - self.unconfirmed.bytes();
        self.unconfirmed_bytes = self.unconfirmed_bytes.saturating_sub(confirmed);
        confirmed
    }

    /// All retransmissions of the recovery were needless.
    pub(super) fn by_dsack(&self) -> Option<SavedWindow> {
        (self.first_at.is_some() && self.unconfirmed_bytes == 0).then_some(self.began?.1)
    }

    /// The ACK that advanced snd_una answers a segment that was sent before the first retransmission.
    pub(super) fn by_timestamp(&self, ts_echo: Option<Ns>, tick: Ns) -> Option<SavedWindow> {
        let first = floor(self.first_at?, tick);
        ts_echo
            .filter(|echo| *echo < first)
            .and(Some(self.began?.1))
    }

    pub(super) fn saved(&self) -> Option<SavedWindow> {
        Some(self.began?.1)
    }

    /// All was acknowledged before anything was retransmitted.
    pub(super) fn by_idleness(&self) -> Option<SavedWindow> {
        self.first_at.is_none().then_some(self.began?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Congestion;
    use crate::tcp::sender::window::Window;

    /// After 2 GiB a number of the recovery could be one of the future.
    #[test]
    fn rfc9293_3_4_what_is_long_past_undoes_nothing() {
        let before = Window::new(Congestion::Cubic, false, 1000, 10, Seq(0)).congestion();
        let mut undo = Undo::default();
        undo.begin(Seq(0), before);
        undo.retransmitted(Ns(1), SeqRange::of(Seq(0), 1000));
        for una in (0..5).map(|n| Seq(n << 29)) {
            undo.advanced(una);
        }
        assert_eq!(undo.dsack(SeqRange::of(Seq(0), 1000)), 0);
        assert!(undo.saved().is_none());
    }

    #[test]
    fn many_holes_are_not_remembered_at_rest() {
        let before = Window::new(Congestion::Cubic, false, 1000, 10, Seq(0)).congestion();
        for (holes, kept) in [(16, true), (17, false)] {
            let mut undo = Undo::default();
            undo.begin(Seq(0), before);
            for hole in 0..holes {
                undo.retransmitted(Ns(1), SeqRange::of(Seq(hole * 2000), 1000));
            }
            undo.rest();
            assert_eq!(undo.saved().is_some(), kept);
        }
    }
}
