//! What an ACK does, step by step.
use super::delivery::Delivery;
use super::prr::PrrAck;
use super::state::{DUPTHRESH, MAX_REORDERING, Sender};
use super::types::{Ack, AckOutcome};
use super::window::Acked;
use crate::info::CongestionState;
use crate::tcp::seq::Seq;
use crate::{Counters, Ns};

/// An ACK after the scoreboard took it in.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) now: Ns,
    pub(super) ack: &'a Ack<'a>,
    pub(super) delivery: Delivery,
    pub(super) advanced: bool,
    pub(super) duplicate: bool,
    pub(super) has_dsack: bool,
}

impl Sender {
    pub(crate) fn acknowledged(
        &mut self,
        now: Ns,
        ack: &Ack<'_>,
        counters: &mut Counters,
    ) -> AckOutcome {
        if ack.ack.after(self.board.nxt()) {
            counters.optimistic_acks += 1;
            return AckOutcome::default();
        }
        let mut step = self.take_in(now, ack, counters);
        let rtt = self.sample_rtt(&step);
        self.note_delivery(&mut step, counters);
        self.end_probe(&step, counters);
        self.f_rto.only_new = false;
        let needless = self.recover(&mut step, counters);
        self.update_rack(&step, needless);
        let lost = self.detect_losses(now, step.advanced, counters);
        self.enter_recovery_if_lost(&step, counters);
        self.set_cwnd(&step, lost, rtt, counters);
        self.arm_after_ack(&step);
        self.last_acked = now;
        AckOutcome {
            acked_bytes: step.delivery.acked_bytes,
            delivered_bytes: step.delivery.delivered_bytes,
            duplicate: step.duplicate,
            rtt,
        }
    }

    fn take_in<'a>(&mut self, now: Ns, ack: &'a Ack<'a>, counters: &mut Counters) -> Step<'a> {
        let una: Seq = self.board.una();
        let tick = self.settings.timestamp_tick;
        let mut delivery = Delivery::new(now, ack.ts_echo, tick, self.min_rtt.get());
        let advanced = ack.ack.after(una);
        // RFC 5681, 2.
        let duplicate =
            ack.ack == una && !self.board.is_empty() && !ack.carries_data && !ack.changes_window;
        if advanced {
            self.board
                .advance(ack.ack, self.window.mss(), &mut delivery);
            self.undo.advanced(ack.ack);
            self.retransmits = 0;
            self.retransmitting_since = None;
        }
        let has_dsack = self.take_sacks(ack, &mut delivery, counters).is_some();
        Step {
            now,
            ack,
            delivery,
            advanced,
            duplicate,
            has_dsack,
        }
    }

    /// RFC 6298, 3 (Karn), 4; RFC 7323, 4.1: the time-out is made from the first segment that the ACK covers, so that it has the peer's delay in it;
    /// returned is that of the last.
    fn sample_rtt(&mut self, step: &Step<'_>) -> Option<Ns> {
        let delivery = &step.delivery;
        let since = |at: Option<Ns>| at.map(|at| step.now.since(at));
        let (first, last) = if delivery.acked.first.is_some() && !delivery.acked_retransmission {
            (since(delivery.acked.first), since(delivery.acked.last))
        } else {
            (since(delivery.sacked.first), since(delivery.sacked.last))
        };
        let (una, nxt) = (self.board.una(), self.board.nxt());
        if let Some(last) = last {
            self.min_rtt.add(step.now, last);
        }
        let by_timestamp = || since(step.ack.ts_echo.filter(|_| step.advanced));
        if let Some(sample) = first.or_else(by_timestamp) {
            self.rtt.add(sample, una, nxt);
        }
        last
    }

    /// RFC 8985, 6.2, step 2. Where retransmissions turned out to be needless it was not them that arrived: taken for the latest transmission,
    /// they would make all that is in flight lost.
    fn update_rack(&mut self, step: &Step<'_>, needless: bool) {
        let latest = match needless {
            true => step.delivery.latest_original,
            false => step.delivery.latest,
        };
        if let Some(latest) = latest {
            self.rack.update(step.now, &latest);
        }
    }

    /// RFC 8985, 6.2, step 3.
    fn note_delivery(&mut self, step: &mut Step<'_>, counters: &mut Counters) {
        if !self.settings.sack {
            self.count_duplicates(step);
        }
        let delivery = &step.delivery;
        if let Some(late) = delivery.reordered_bytes {
            self.rack.set_reordering_seen();
            self.totals.reorderings = self.totals.reorderings.wrapping_add(1);
            let segments = late.div_ceil(self.mss());
            self.reordering = self.reordering.max(segments.min(MAX_REORDERING));
            counters.sack_reorder += 1;
        }
        let totals = &mut self.totals;
        totals.bytes_acked += u64::from(delivery.acked_bytes);
        totals.segments_delivered = totals
            .segments_delivered
            .wrapping_add(delivery.delivered_segments);
        counters.delivered += u64::from(delivery.delivered_segments);
    }

    fn count_duplicates(&mut self, step: &mut Step<'_>) {
        let mss = self.mss();
        if step.advanced {
            let acked = step.delivery.acked_bytes;
            step.delivery.delivered_bytes = self.reno.advanced(acked, mss);
        } else if step.duplicate {
            let most = self.board.in_flight_bytes().saturating_sub(mss);
            step.delivery.delivered_bytes += self.reno.duplicate(mss, most);
        }
    }

    fn set_cwnd(&mut self, step: &Step<'_>, lost: u32, rtt: Option<Ns>, counters: &mut Counters) {
        let delivery = &step.delivery;
        // What was SACKed before counted then.
        let bytes = delivery.delivered_bytes;
        if self.state == CongestionState::Recovery {
            // RFC 9937, 3.: an ACK that delivers nothing lets out nothing; but each recovery begins with a retransmission.
            if bytes > 0 || self.prr.has_sent_nothing() {
                self.set_cwnd_by_prr(bytes, step.advanced && lost == 0);
            }
            return;
        }
        // Linux tcp_may_raise_cwnd: of a path that reorders, SACK alone is as good a sign.
        let news =
            step.advanced || self.reordering > DUPTHRESH || self.state == CongestionState::Loss;
        let (cwnd, slow_start) = (self.cwnd(), self.window.in_slow_start());
        if !self.usage.is_limited(cwnd, slow_start) {
            self.window.pause(step.now.since(self.last_acked));
        } else if bytes > 0 && news {
            let acked = Acked {
                bytes,
                una: self.board.una(),
                nxt: self.board.nxt(),
                rtt,
                srtt: self.rtt.srtt().unwrap_or(Ns(0)),
            };
            self.window.grow(step.now, &acked, counters);
        }
    }

    pub(super) fn set_cwnd_by_prr(&mut self, delivered_bytes: u32, safe: bool) {
        let in_flight_bytes = self.in_flight_bytes();
        let allowed = self.prr.acked(&PrrAck {
            delivered_bytes,
            safe,
            in_flight_bytes,
            ssthresh: self.window.ssthresh(),
            mss: self.window.mss(),
        });
        self.window
            .set_cwnd(in_flight_bytes.saturating_add(allowed));
    }
}
