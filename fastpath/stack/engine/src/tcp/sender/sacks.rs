//! An ACK's SACK option: which of its blocks are new, old, duplicate (RFC 2883) or nonsense.
use super::delivery::Delivery;
use super::state::Sender;
use super::types::Ack;
use crate::Counters;
use crate::tcp::seq::SeqRange;

/// As many blocks as fit in the options.
const BLOCKS: usize = 4;

impl Sender {
    /// Marks what `ack` says is there, and returns its DSACK block. snd_una has moved already.
    pub(super) fn take_sacks(
        &mut self,
        ack: &Ack<'_>,
        delivery: &mut Delivery,
        counters: &mut Counters,
    ) -> Option<SeqRange> {
        if !self.settings.sack || ack.sack.is_empty() {
            return None;
        }
        let dsack = self.dsack(ack, counters);
        let mut blocks = [SeqRange::default(); BLOCKS];
        let mut count = 0;
        let skipped = usize::from(dsack.is_some());
        for block in ack.sack.iter().skip(skipped).take(BLOCKS) {
            if !block.is_ordered() || block.end.after(self.board.nxt()) {
                counters.sack_discard += 1;
            } else if block.end.after(self.board.una()) {
                blocks[count] = SeqRange::new(block.start.later(self.board.una()), block.end);
                count += 1;
            }
        }
        // In the order of the bytes, so that reordering is seen only where there is some.
        let una = self.board.una();
        let blocks = &mut blocks[..count];
        blocks.sort_unstable_by_key(|b| b.start - una);
        for block in blocks {
            self.board.sack(*block, self.window.mss(), delivery);
        }
        dsack
    }

    /// RFC 2883, 4: the first block, where snd_una or the second block covers it.
    fn dsack(&mut self, ack: &Ack<'_>, counters: &mut Counters) -> Option<SeqRange> {
        let first = *ack.sack.first().filter(|b| b.is_ordered())?;
        let old = first.start.before(ack.ack) && first.end.until(ack.ack);
        let within_next = || ack.sack.get(1).is_some_and(|next| next.covers(first));
        if !old && !within_next() {
            return None;
        }
        // Not of what this recovery sent twice, and more than was ever: the network duplicates, or the peer makes it up (Linux
        // TCPDSACKIgnoredDubious).
        let confirmed = self.undo.dsack(first);
        self.totals.bytes_dsacked += u64::from(first.len());
        if self.totals.bytes_dsacked > self.totals.bytes_retransmitted {
            self.totals.bytes_dsacked = self.totals.bytes_retransmitted;
            if confirmed == 0 {
                counters.dsack_ignored_dubious += 1;
                return Some(SeqRange::new(first.start, first.start));
            }
        }
        match old {
            true => counters.dsack_recv += 1,
            false => counters.dsack_ofo_recv += 1,
        }
        self.totals.dsacks = self.totals.dsacks.wrapping_add(1);
        self.rack.needless(self.board.una(), self.board.nxt());
        Some(first)
    }
}
