//! Open, Disorder, Recovery, Loss: how a connection gets into them and out (RFC 5681, 6582, 6675; undo as in Linux).
use super::acknowledged::Step;
use super::prr::Prr;
use super::state::Sender;
use super::window::SavedWindow;
use crate::info::CongestionState;
use crate::tcp::seq::SeqRange;
use crate::{Counters, Ns};

impl Sender {
    /// The part of an ACK before losses are looked for: ends recoveries, or finds that they were needless, which it returns.
    pub(super) fn recover(&mut self, step: &mut Step<'_>, counters: &mut Counters) -> bool {
        let saved = self.undo.saved().is_some();
        match self.state {
            CongestionState::Recovery => self.in_recovery(step, counters),
            CongestionState::Loss => self.in_loss(step, counters),
            // The DSACK of a needless retransmission comes a round trip after its recovery.
            _ => {
                if let Some(before) = self.undo.by_dsack().filter(|_| step.has_dsack) {
                    counters.dsack_undo += 1;
                    self.widen_reordering();
                    self.take_back(&before);
                }
            }
        }
        saved && self.undo.saved().is_none()
    }

    fn in_recovery(&mut self, step: &Step<'_>, counters: &mut Counters) {
        let by_timestamp = || {
            let tick = self.settings.timestamp_tick;
            let echo = step.ack.ts_echo.filter(|_| step.advanced);
            self.undo.by_timestamp(echo, tick)
        };
        let ended = self.board.una().from(self.recovery_point);
        if ended {
            let needless = by_timestamp()
                .or_else(|| self.undo.by_dsack())
                .or_else(|| self.undo.by_idleness());
            self.end_recovery();
            if let Some(before) = needless {
                counters.full_undo += 1;
                self.widen_reordering();
                self.take_back(&before);
            }
        } else if let Some(before) = by_timestamp() {
            self.widen_reordering();
            // As Linux: those that are out may be of losses.
            if self.board.retransmitted_in_flight_bytes() == 0 {
                counters.partial_undo += 1;
                self.take_back_marks(&before);
            }
        } else if let Some(before) = self.undo.by_dsack().filter(|_| step.has_dsack) {
            counters.dsack_undo += 1;
            self.widen_reordering();
            self.take_back_marks(&before);
        }
    }

    /// What was taken for lost was late. A retransmitted segment's late original is no sign of reordering by RFC 8985, 6.2, step 3, so that
    /// a path that reorders by more than the first window would never be known for it.
    fn widen_reordering(&mut self) {
        self.rack.set_reordering_seen();
        self.rack.needless(self.board.una(), self.board.nxt());
    }

    fn end_recovery(&mut self) {
        self.window.set_cwnd(self.window.ssthresh());
        self.open();
        self.rack.recovered();
    }

    fn open(&mut self) {
        self.state = CongestionState::Open;
        self.reno.duplicates = 0;
        self.reno.arrived_bytes = 0;
        self.f_rto.active = false;
    }

    /// cwnd is what it was before the recovery.
    fn take_back(&mut self, before: &SavedWindow) {
        self.window.restore(before);
        self.undo.forget();
    }

    /// And nothing of what was marked lost is.
    fn take_back_marks(&mut self, before: &SavedWindow) {
        self.board.unlose();
        self.marked_below = self.board.una();
        if self.settings.rack {
            self.log.rebuild(&self.board);
        }
        self.open();
        self.take_back(before);
    }

    /// After a time-out (RFC 5682, 3.1, with SACK; RFC 6298, 5.).
    fn in_loss(&mut self, step: &Step<'_>, counters: &mut Counters) {
        let tick = self.settings.timestamp_tick;
        let echo = step.ack.ts_echo.filter(|_| step.advanced);
        let needless = self
            .undo
            .by_timestamp(echo, tick)
            .or_else(|| self.undo.by_dsack().filter(|_| step.has_dsack));
        if let Some(before) = needless {
            counters.loss_undo += 1;
            self.take_back_marks(&before);
            return;
        }
        let ended = self.board.una().from(self.recovery_point);
        if self.f_rto.active && self.is_spurious(step, ended) {
            counters.spurious_rtos += 1;
            if let Some(before) = self.undo.saved() {
                counters.loss_undo += 1;
                self.take_back_marks(&before);
                return;
            }
        }
        if ended && !self.f_rto.only_new {
            self.open();
            self.rack.recovered();
        }
    }

    fn is_spurious(&mut self, step: &Step<'_>, ended: bool) -> bool {
        let delivery = &step.delivery;
        // Without SACK it is not known whether the retransmission filled the hole before what had arrived already.
        let originals = if self.settings.sack || !delivery.acked_retransmission {
            delivery.lowest_original_end
        } else {
            None
        };
        // Step 3b.
        if originals.is_some_and(|end| end.until(self.recovery_point)) {
            return true;
        }
        if self.board.nxt().after(self.recovery_point) {
            // Step 3a.
            if delivery.sacked_bytes > 0 || step.duplicate {
                self.f_rto.active = false;
            }
        } else if step.advanced && !ended {
            // Step 2b.
            self.recovery_point = self.board.nxt();
            self.f_rto.active = step.ack.unsent_bytes > 0;
            self.f_rto.only_new = self.f_rto.active;
        }
        false
    }

    /// After losses were looked for.
    pub(super) fn enter_recovery_if_lost(&mut self, step: &Step<'_>, counters: &mut Counters) {
        if !matches!(
            self.state,
            CongestionState::Open | CongestionState::Disorder
        ) {
            return;
        }
        if self.board.lost().is_empty() {
            let disorder = !self.board.sacked().is_empty() || self.reno.duplicates > 0;
            self.state = if disorder {
                CongestionState::Disorder
            } else {
                CongestionState::Open
            };
            return;
        }
        // RFC 9937: what may be delivered from here on, this ACK's own included.
        let sacked_before = self.board.sacked().bytes()
            - step.delivery.sacked_bytes.min(self.board.sacked().bytes());
        let flight = self.board.flight_bytes() + step.delivery.acked_bytes - sacked_before;
        self.enter_recovery(flight, counters);
    }

    /// `flight_bytes`: RFC 9937's RecoverFS.
    pub(super) fn enter_recovery(&mut self, flight_bytes: u32, counters: &mut Counters) {
        match self.settings.sack {
            true => counters.sack_recovery += 1,
            false => counters.reno_recovery += 1,
        }
        self.state = CongestionState::Recovery;
        self.recovery_point = self.board.nxt();
        self.probe = None;
        let before = self.window.congestion();
        self.undo.begin(self.board.una(), before);
        self.prr = Prr::begin(flight_bytes);
    }

    /// RFC 6298, 5.4 to 5.6; RFC 8985, 6.3; RFC 5681, 3.1.
    pub(super) fn enter_loss(&mut self, now: Ns, counters: &mut Counters) {
        let new_episode = match self.state {
            CongestionState::Recovery => self.board.una().from(self.recovery_point),
            CongestionState::Loss => self.retransmits == 0,
            _ => true,
        };
        match self.state {
            CongestionState::Recovery => counters.sack_failures += 1,
            CongestionState::Loss => counters.loss_failures += 1,
            _ => {}
        }
        let was_in_recovery = matches!(
            self.state,
            CongestionState::Recovery | CongestionState::Loss
        );
        self.f_rto.active = self.settings.f_rto && (!was_in_recovery || self.retransmits > 0);
        self.f_rto.only_new = false;
        if new_episode {
            let before = self.window.congestion();
            self.undo.begin(self.board.una(), before);
        }
        self.mark_timed_out(now, counters);
        self.state = CongestionState::Loss;
        self.recovery_point = self.board.nxt();
        self.probe = None;
        self.window
            .set_cwnd(self.in_flight_bytes() + self.window.mss());
    }

    fn mark_timed_out(&mut self, now: Ns, counters: &mut Counters) {
        self.reno.duplicates = 0;
        self.reno.arrived_bytes = 0;
        self.marked_below = self.board.una();
        // snd_una stopped at what was SACKed: the receiver dropped it (RFC 2018, 8).
        let una = self.board.una();
        if self.board.sacked().first().is_some_and(|r| r.start == una) {
            counters.sack_reneging += 1;
            self.board.forget_sacks();
        }
        let all = SeqRange::new(una, self.board.nxt());
        let (rack, reo_wnd) = (self.settings.rack, self.reo_wnd());
        let is_due = |at: Ns| !rack || self.rack.lost_at(at, reo_wnd) <= now;
        let (_, again) = self
            .board
            .lose(all, |e| e.start == una || is_due(e.sent_at));
        counters.lost_retransmit += u64::from(again);
    }

    /// Segments that are larger than `mss` are lost: without a reduction of cwnd.
    pub(super) fn lose_larger_than(&mut self, mss: u32) {
        let all = SeqRange::new(self.board.una(), self.board.nxt());
        let (bytes, _) = self.board.lose(all, |e| {
            e.bytes.div_ceil(u32::from(e.segments.max(1))) > mss
        });
        if bytes > 0 && self.state != CongestionState::Loss {
            self.state = CongestionState::Loss;
            self.recovery_point = self.board.nxt();
            self.f_rto.active = false;
            self.f_rto.only_new = false;
            self.undo.forget();
        }
    }
}
