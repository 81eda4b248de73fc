//! What is between snd_una and snd_nxt: sent when, SACKed, lost. Work per ACK is by what it newly says, plus a search in log time.
use super::delivery::Delivery;
use super::entry::{Entry, EntryState, Order};
use super::ranges::RangeSet;
use crate::Ns;
use crate::tcp::seq::{Seq, SeqRange};
use std::collections::VecDeque;

/// More entries than whole segments only come of SACK blocks that cut segments. From here on those are rounded inwards, so that a peer
/// cannot cut what it is sent into single bytes.
const CUT_ENTRIES: usize = 64;
/// Entries that an idle connection may keep allocated.
const KEPT_ENTRIES: usize = 16;

#[derive(Debug)]
pub(super) struct Scoreboard {
    una: Seq,
    nxt: Seq,
    /// In order, without gaps: una..nxt.
    entries: VecDeque<Entry>,
    sacked: RangeSet,
    /// Lost, and not retransmitted since.
    lost: RangeSet,
    in_flight_bytes: u32,
    /// Of them, what was retransmitted.
    retransmitted_in_flight_bytes: u32,
    sacked_segments: u32,
    /// The highest end that was ever delivered (RFC 8985, 5.2, RACK.fack).
    fack: Seq,
}

impl Scoreboard {
    pub(super) fn new(first: Seq) -> Scoreboard {
        Scoreboard {
            una: first,
            nxt: first,
            entries: VecDeque::new(),
            sacked: RangeSet::default(),
            lost: RangeSet::default(),
            in_flight_bytes: 0,
            retransmitted_in_flight_bytes: 0,
            sacked_segments: 0,
            fack: first,
        }
    }

    pub(super) fn una(&self) -> Seq {
        self.una
    }

    pub(super) fn nxt(&self) -> Seq {
        self.nxt
    }

    pub(super) fn flight_bytes(&self) -> u32 {
        self.nxt - self.una
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// RFC 6675's pipe: sent, not known to be lost, not known to have arrived.
    pub(super) fn in_flight_bytes(&self) -> u32 {
        self.in_flight_bytes
    }

    /// Linux retrans_out.
    pub(super) fn retransmitted_in_flight_bytes(&self) -> u32 {
        self.retransmitted_in_flight_bytes
    }

    pub(super) fn sacked(&self) -> &RangeSet {
        &self.sacked
    }

    pub(super) fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }

    pub(super) fn lost(&self) -> &RangeSet {
        &self.lost
    }

    pub(super) fn first(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub(super) fn last(&self) -> Option<&Entry> {
        self.entries.back()
    }

    /// New bytes, from snd_nxt on.
    pub(super) fn push(&mut self, at: Ns, bytes: u32, order: Order, mss: u32) -> u16 {
        let segments = bytes.div_ceil(mss).min(u32::from(u16::MAX)) as u16;
        self.entries.push_back(Entry {
            start: self.nxt,
            bytes,
            sent_at: at,
            order,
            segments,
            state: EntryState::InFlight,
            retransmitted: false,
        });
        self.nxt += bytes;
        self.in_flight_bytes += bytes;
        segments
    }

    /// `range` was sent again. Segments of it.
    pub(super) fn resend(&mut self, at: Ns, range: SeqRange, order: Order, mss: u32) -> u32 {
        let (from, to) = self.cut(range, mss);
        let mut segments = 0;
        for entry in self.entries.range_mut(from..to) {
            match entry.state {
                EntryState::Sacked => continue,
                EntryState::Lost => self.in_flight_bytes += entry.bytes,
                EntryState::InFlight => {}
            }
            if entry.state == EntryState::Lost || !entry.retransmitted {
                self.retransmitted_in_flight_bytes += entry.bytes;
            }
            entry.state = EntryState::InFlight;
            entry.retransmitted = true;
            entry.sent_at = at;
            entry.order = order;
            segments += u32::from(entry.segments);
        }
        self.lost.remove(range);
        segments
    }

    /// snd_una moves to `ack`, which is at most snd_nxt.
    pub(super) fn advance(&mut self, ack: Seq, mss: u32, delivery: &mut Delivery) {
        delivery.acked_bytes = ack - self.una;
        while let Some(first) = self.entries.front_mut() {
            if first.end().until(ack) {
                let entry = *first;
                self.entries.pop_front();
                self.leave(&entry, delivery);
            } else {
                break;
            }
        }
        if self.cut_at(ack, mss) > 0
            && let Some(head) = self.entries.pop_front()
        {
            self.leave(&head, delivery);
        }
        self.una = ack;
        self.fack = self.fack.later(ack);
        self.sacked.remove_before(ack);
        self.lost.remove_before(ack);
        if self.entries.is_empty() && self.entries.capacity() > KEPT_ENTRIES {
            self.release();
        }
    }

    /// `block` is within una..nxt.
    pub(super) fn sack(&mut self, block: SeqRange, mss: u32, delivery: &mut Delivery) {
        let mut rest = block;
        while let Some(gap) = self.sacked.first_gap(rest) {
            let whole = self.round(gap, mss);
            if whole.is_ordered() {
                self.deliver(whole, mss, delivery);
            }
            rest.start = gap.end;
        }
    }

    /// Forgets SACK: the receiver dropped what it had (RFC 2018, 8).
    pub(super) fn forget_sacks(&mut self) {
        for entry in &mut self.entries {
            if entry.state == EntryState::Sacked {
                entry.state = EntryState::Lost;
                self.lost.insert(entry.range());
            }
        }
        self.sacked.clear();
        self.sacked_segments = 0;
    }

    /// Marks what of `range` is in flight, and for which `is_lost` holds, as lost: bytes of it, and whether retransmissions were among it.
    pub(super) fn lose(&mut self, range: SeqRange, is_lost: impl Fn(&Entry) -> bool) -> (u32, u32) {
        let (mut bytes, mut again) = (0, 0);
        let from = self.index(range.start);
        for entry in self.entries.range_mut(from..) {
            if entry.start.from(range.end) {
                break;
            }
            if entry.state == EntryState::InFlight && is_lost(entry) {
                entry.state = EntryState::Lost;
                self.lost.insert(entry.range());
                bytes += entry.bytes;
                if entry.retransmitted {
                    again += u32::from(entry.segments);
                    self.retransmitted_in_flight_bytes -= entry.bytes;
                }
            }
        }
        self.in_flight_bytes -= bytes;
        (bytes, again)
    }

    /// What was lost is in flight after all.
    pub(super) fn unlose(&mut self) {
        for entry in &mut self.entries {
            if entry.state == EntryState::Lost {
                entry.state = EntryState::InFlight;
                self.in_flight_bytes += entry.bytes;
                if entry.retransmitted {
                    self.retransmitted_in_flight_bytes += entry.bytes;
                }
            }
        }
        self.lost.clear();
    }

    /// The first entry of `range` that is in flight since transmission `order`.
    pub(super) fn in_flight_since(&self, range: SeqRange, order: Order) -> Option<&Entry> {
        self.entries
            .range(self.index(range.start)..)
            .take_while(|e| e.start.before(range.end))
            .find(|e| e.state == EntryState::InFlight && e.order == order)
    }

    /// Cuts entries at both ends of `range`: indices of those within.
    pub(super) fn cut(&mut self, range: SeqRange, mss: u32) -> (usize, usize) {
        let from = self.cut_at(range.start, mss);
        let to = self.cut_at(range.end, mss);
        (from, to)
    }

    fn cut_at(&mut self, seq: Seq, mss: u32) -> usize {
        let index = self.index(seq);
        let Some(entry) = self.entries.get_mut(index) else {
            return index;
        };
        if entry.start.from(seq) {
            return index;
        }
        let before = entry.segments;
        let head = entry.split(seq - entry.start, mss);
        if head.state == EntryState::Sacked {
            // A segment that is cut counts as two.
            self.sacked_segments += u32::from(head.segments + entry.segments - before);
        }
        self.entries.insert(index, head);
        index + 1
    }

    /// Index of the entry that has `seq`; their number where none does.
    fn index(&self, seq: Seq) -> usize {
        self.entries.partition_point(|e| e.end().until(seq))
    }

    /// `gap` without the parts of segments at its ends, where there are too many entries to cut any.
    fn round(&self, gap: SeqRange, mss: u32) -> SeqRange {
        let most = CUT_ENTRIES + 2 * (self.flight_bytes() / mss) as usize;
        if self.entries.len() < most {
            return gap;
        }
        let up = |seq| match self.entries.get(self.index(seq)) {
            Some(e) if e.start.before(seq) => {
                (e.start + (seq - e.start).next_multiple_of(mss)).earlier(e.end())
            }
            _ => seq,
        };
        let down = |seq| match self.entries.get(self.index(seq)) {
            Some(e) if e.start.before(seq) => e.start + (seq - e.start) / mss * mss,
            _ => seq,
        };
        SeqRange::new(up(gap.start), down(gap.end))
    }

    /// Nothing of `range` was SACKed before.
    fn deliver(&mut self, range: SeqRange, mss: u32, delivery: &mut Delivery) {
        let (from, to) = self.cut(range, mss);
        for entry in self.entries.range_mut(from..to) {
            delivery.add(entry, self.fack, true);
            self.fack = self.fack.later(entry.end());
            if entry.state == EntryState::InFlight {
                self.in_flight_bytes -= entry.bytes;
                if entry.retransmitted {
                    self.retransmitted_in_flight_bytes -= entry.bytes;
                }
            }
            entry.state = EntryState::Sacked;
            self.sacked_segments += u32::from(entry.segments);
        }
        self.sacked.insert(range);
        self.lost.remove(range);
    }

    /// `entry` left by snd_una.
    fn leave(&mut self, entry: &Entry, delivery: &mut Delivery) {
        match entry.state {
            EntryState::Sacked => {
                self.sacked_segments = self
                    .sacked_segments
                    .saturating_sub(u32::from(entry.segments));
                return;
            }
            EntryState::InFlight => {
                self.in_flight_bytes -= entry.bytes;
                if entry.retransmitted {
                    self.retransmitted_in_flight_bytes -= entry.bytes;
                }
            }
            EntryState::Lost => {}
        }
        delivery.add(entry, self.fack, false);
        self.fack = self.fack.later(entry.end());
    }

    fn release(&mut self) {
        self.entries.shrink_to(KEPT_ENTRIES);
        self.sacked.shrink();
        self.lost.shrink();
    }
}
