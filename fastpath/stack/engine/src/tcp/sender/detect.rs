//! Which segments are lost: by time (RFC 8985), by SACK alone (RFC 6675) or by duplicate ACKs (RFC 6582).
use super::rack::ReorderingInput;
use super::state::{DUPTHRESH, Sender};
use crate::info::CongestionState;
use crate::tcp::seq::{Seq, SeqRange};
use crate::{Counters, Ns};

impl Sender {
    /// Bytes that are newly marked as lost.
    pub(super) fn detect_losses(
        &mut self,
        now: Ns,
        advanced: bool,
        counters: &mut Counters,
    ) -> u32 {
        if self.settings.rack {
            self.detect_by_time(now, counters)
        } else if self.settings.sack {
            self.detect_by_sacks()
        } else {
            self.detect_by_duplicates(advanced)
        }
    }

    /// RFC 8985, 6.2, step 5. The timer is for the earliest candidate: the RFC's one for the last would leave it unrepaired longer.
    fn detect_by_time(&mut self, now: Ns, counters: &mut Counters) -> u32 {
        self.timers.reordering = None;
        let Some(latest) = self.rack.latest() else {
            return 0;
        };
        let reo_wnd = self.reo_wnd();
        let mut lost = 0;
        while let Some(sent) = self.log.oldest(&self.board) {
            let together = sent.order == latest.order;
            let candidate = self.board.in_flight_since(sent.range, sent.order);
            let is_before = candidate.is_some_and(|e| e.end().before(latest.end));
            if sent.order.after(latest.order) || together && !is_before {
                break;
            }
            let due = self.rack.lost_at(sent.at, reo_wnd);
            if due > now {
                self.timers.reordering = Some(due);
                break;
            }
            let (bytes, again) = self.board.lose(sent.range, |e| {
                e.order == sent.order && (!together || e.end().before(latest.end))
            });
            lost += bytes;
            counters.lost_retransmit += u64::from(again);
        }
        lost
    }

    pub(super) fn reo_wnd(&self) -> Ns {
        let srtt = self.rtt.srtt().unwrap_or(Ns(0));
        self.rack.reo_wnd(ReorderingInput {
            in_recovery: matches!(
                self.state,
                CongestionState::Recovery | CongestionState::Loss
            ),
            enough_sacked: self.board.sacked_segments() >= DUPTHRESH,
            srtt,
            min_rtt: self.min_rtt.get().unwrap_or(srtt),
        })
    }

    /// RFC 6675, 4, IsLost: below `reordering` ranges, or more than that less one segments, that are SACKed.
    fn detect_by_sacks(&mut self) -> u32 {
        let enough_bytes = (self.reordering - 1).saturating_mul(self.mss());
        let (mut bytes, mut ranges) = (0, 0);
        let mut below: Option<Seq> = None;
        for range in self.board.sacked().descending() {
            bytes += range.len();
            ranges += 1;
            if bytes > enough_bytes || ranges >= self.reordering {
                below = Some(range.start);
                break;
            }
        }
        let from = self.marked_below.later(self.board.una());
        let Some(below) = below.filter(|b| b.after(from)) else {
            return 0;
        };
        self.marked_below = below;
        let holes = SeqRange::new(from, below);
        self.board.lose(holes, |e| !e.retransmitted).0
    }

    /// RFC 6582, 3.2: the first segment, at the third duplicate and at each partial ACK.
    fn detect_by_duplicates(&mut self, advanced: bool) -> u32 {
        let una = self.board.una();
        let lost = match self.state {
            CongestionState::Recovery => advanced,
            CongestionState::Loss => false,
            // Step 1: not by the duplicates that the recovery before this one caused itself.
            _ => self.reno.duplicates >= self.reordering && una.after(self.recovery_point),
        };
        if !lost || self.board.is_empty() {
            return 0;
        }
        let first = SeqRange::of(una, self.mss().min(self.board.flight_bytes()));
        self.board.cut(first, self.window.mss());
        self.board.lose(first, |_| true).0
    }
}
