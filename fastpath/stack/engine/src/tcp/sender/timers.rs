//! The three timers: retransmission (RFC 6298, 5.), tail loss probe (RFC 8985, 7.) and reordering (RFC 8985, 6.2).
use super::acknowledged::Step;
use super::state::Sender;
use super::types::{SenderTimer, TimerAction};
use crate::info::CongestionState;
use crate::tcp::seq::SeqRange;
use crate::{Counters, Ns};

/// RFC 8985, 7.2: PTO before there is a round-trip time.
const FIRST_PTO: Ns = Ns::from_ms(1_000);
/// Added to two round trips: what a peer's timers and scheduling take. Linux has two jiffies.
const PTO_SLACK: Ns = Ns::from_ms(1);

impl Sender {
    /// The earliest timer, and when.
    pub(crate) fn timer(&self) -> Option<(SenderTimer, Ns)> {
        let timers = [
            (SenderTimer::Reordering, self.timers.reordering),
            (SenderTimer::TailProbe, self.timers.probe),
            (SenderTimer::Retransmission, self.timers.retransmission),
        ];
        let set = timers.into_iter().filter_map(|(t, at)| Some((t, at?)));
        set.min_by_key(|(_, at)| *at)
    }

    /// Runs the timer that is due; call again while [`Sender::timer`] still is.
    pub(crate) fn on_timer(&mut self, now: Ns, counters: &mut Counters) -> TimerAction {
        let Some((timer, _)) = self.timer().filter(|(_, at)| *at <= now) else {
            return TimerAction::Nothing;
        };
        match timer {
            SenderTimer::Reordering => self.reordering_over(now, counters),
            SenderTimer::TailProbe => self.probe_due(now, counters),
            SenderTimer::Retransmission => self.timed_out(now, counters),
        }
    }

    fn reordering_over(&mut self, now: Ns, counters: &mut Counters) -> TimerAction {
        if self.detect_losses(now, false, counters) == 0 {
            return TimerAction::Nothing;
        }
        // In a recovery cwnd stays what the last ACK made it: what is lost makes room in it.
        if matches!(
            self.state,
            CongestionState::Open | CongestionState::Disorder
        ) {
            let flight = self.board.flight_bytes() - self.board.sacked().bytes();
            self.enter_recovery(flight, counters);
            self.set_cwnd_by_prr(0, false);
        }
        if self.timers.probe.take().is_some() {
            self.arm_rto(now);
        }
        TimerAction::Retransmit
    }

    /// RFC 8985, 7.3.
    fn probe_due(&mut self, now: Ns, counters: &mut Counters) -> TimerAction {
        self.arm_rto(now);
        let Some(last) = self.board.last().filter(|_| self.probe.is_none()) else {
            return TimerAction::Nothing;
        };
        counters.loss_probes += 1;
        let before = (last.bytes - 1) / self.mss() * self.mss();
        TimerAction::Probe {
            last: SeqRange::new(last.start + before, last.end()),
        }
    }

    /// Neither new bytes nor the last segment could be sent (RFC 8985, 7.3: then RTO goes on).
    pub(crate) fn probe_not_sent(&mut self, now: Ns) {
        self.arm_rto(now);
    }

    /// RFC 6298, 5.4 to 5.6.
    fn timed_out(&mut self, now: Ns, counters: &mut Counters) -> TimerAction {
        if self.board.is_empty() {
            self.timers.retransmission = None;
            return TimerAction::Nothing;
        }
        counters.timeouts += 1;
        self.enter_loss(now, counters);
        self.retransmits = self.retransmits.saturating_add(1);
        self.rtt.back_off();
        self.arm_rto(now);
        TimerAction::TimedOut
    }

    /// RFC 8985, 7.4.2: what the answer to a probe says.
    pub(super) fn end_probe(&mut self, step: &Step<'_>, counters: &mut Counters) {
        let Some(probe) = self.probe.filter(|p| step.ack.ack.from(p.end)) else {
            return;
        };
        let repaired = step.ack.ack.after(probe.end);
        if !probe.is_retransmission || step.has_dsack {
            self.probe = None;
        } else if repaired {
            // The probe's copy filled a hole that nothing else would have told of.
            self.probe = None;
            counters.loss_probe_recovery += 1;
            self.window.congestion();
            self.window.set_cwnd(self.window.ssthresh());
        } else if step.duplicate && step.delivery.sacked_bytes == 0 {
            // The original and the copy both arrived.
            self.probe = None;
        }
    }

    /// RFC 6298, 5.1; RFC 8985, 7.2: after new bytes.
    pub(super) fn arm_after_send(&mut self, now: Ns) {
        if self.can_probe() {
            self.arm_probe(now, true);
        } else if self.timers.retransmission.is_none() {
            self.arm_rto(now);
        }
    }

    /// RFC 6298, 5.2 and 5.3.
    pub(super) fn arm_after_ack(&mut self, step: &Step<'_>) {
        let (now, advanced) = (step.now, step.advanced);
        if self.board.is_empty() {
            self.timers.retransmission = None;
            self.timers.probe = None;
            self.timers.reordering = None;
            self.log.clear();
            self.undo.rest();
        } else if self.can_probe() {
            if advanced {
                self.arm_probe(now, self.may_delay_last(step));
            }
        } else if advanced || self.timers.probe.is_some() {
            self.arm_rto(now);
        }
    }

    pub(super) fn arm_rto(&mut self, now: Ns) {
        self.timers.probe = None;
        self.timers.retransmission = Some(now + self.rtt.rto());
    }

    /// RFC 8985, 7.2: SACK, no loss in sight, and no probe on its way.
    fn can_probe(&self) -> bool {
        self.settings.tail_loss_probe
            && self.probe.is_none()
            && self.state == CongestionState::Open
            && self.board.sacked().is_empty()
    }

    /// An ACK of one segment, where the only other one left with it: the peer acknowledges each at once, or its delay ran out before the
    /// other one had come. In either case it does not wait with that one's ACK.
    fn may_delay_last(&self, step: &Step<'_>) -> bool {
        let delivery = &step.delivery;
        let (Some(last), Some(acked)) = (self.board.first(), delivery.acked.last) else {
            return true;
        };
        let together = last.sent_at.since(acked).0 <= self.min_rtt.get().unwrap_or(Ns(0)).0 / 4;
        delivery.acked_bytes > self.mss() || !together
    }

    /// `may_delay`: the peer may have all, and wait with its ACK.
    fn arm_probe(&mut self, now: Ns, may_delay: bool) {
        let mut pto = match self.rtt.srtt() {
            None => FIRST_PTO,
            Some(srtt) => srtt + srtt + PTO_SLACK,
        };
        if self.board.flight_bytes() <= self.mss() && may_delay {
            pto = pto + self.settings.max_ack_delay;
        }
        let at = now + pto;
        // Never later than the time-out of the oldest segment.
        let rto = self.rtt.rto();
        let latest = self.board.first().map_or(at, |first| first.sent_at + rto);
        self.timers.retransmission = None;
        self.timers.probe = Some(if latest > now { at.min(latest) } else { at });
    }
}
