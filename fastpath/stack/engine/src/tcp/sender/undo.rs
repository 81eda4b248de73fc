//! Whether the retransmissions of a recovery were needed: if not, its reduction of cwnd is taken back (Eifel, RFC 3522 and 4015; DSACK, RFC 3708).
use super::delivery::floor;
use super::ranges::RangeSet;
use super::window::SavedWindow;
use crate::Ns;
use crate::tcp::seq::{Seq, SeqRange};

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
