//! Time: retransmission, delayed acknowledgement, zero-window and keep-alive probes, FIN-WAIT-2, and when to give up.
use super::state::{Connection, NEVER};
use crate::info::TcpState;
use crate::tcp::context::Context;
use crate::tcp::sender::TimerAction;
use crate::{Ns, SocketError, TcpConfig};

impl Connection {
    /// When [`Connection::on_time`] has something to do.
    pub(crate) fn deadline(&self) -> Ns {
        let mut first = self.sender.timer().map_or(NEVER, |(_, at)| at);
        let others = [
            self.ack.deadline,
            self.probes.window_deadline,
            self.probes.keep_alive_deadline,
            self.fin_wait_deadline,
        ];
        for at in others.into_iter().flatten() {
            first = first.min(at);
        }
        if self.options.user_timeout.0 > 0
            && let Some(since) = self.sender.retransmitting_since()
        {
            first = first.min(since + self.options.user_timeout);
        }
        first
    }

    pub(crate) fn on_time(&mut self, cx: &mut Context) {
        if is_due(self.ack.deadline, cx.now) && self.ack.expired(self.sender.rto(), cx.config) {
            cx.counters.delayed_acks += 1;
        }
        if self.is_too_large(cx.pool) {
            // Its peer takes nothing, or too late (Linux tcp_out_of_resources).
            cx.counters.abort_on_memory += 1;
            return self.abort(cx);
        }
        self.retransmission_timers(cx);
        if self.state == TcpState::Closed {
            return;
        }
        if is_due(self.probes.window_deadline, cx.now) {
            self.window_probe_due(cx);
        }
        if is_due(self.probes.keep_alive_deadline, cx.now) {
            self.keep_alive_due(cx);
        }
        if is_due(self.fin_wait_deadline, cx.now) {
            // Nobody is left who would miss the rest (Linux: TIME-WAIT with the substate FIN-WAIT-2).
            self.finish();
        }
    }

    fn retransmission_timers(&mut self, cx: &mut Context) {
        if self.is_given_up(cx) {
            cx.counters.abort_on_timeout += 1;
            return self.time_out(cx);
        }
        while let Some((timer, at)) = self.sender.timer() {
            if at > cx.now {
                return;
            }
            match self.sender.on_timer(cx.now, cx.counters) {
                TimerAction::Nothing if self.sender.timer() == Some((timer, at)) => return,
                TimerAction::Nothing | TimerAction::Retransmit => {}
                TimerAction::Probe { last } => {
                    self.tail = Some(last);
                    return;
                }
                TimerAction::TimedOut => {
                    if self.is_given_up(cx) {
                        cx.counters.abort_on_timeout += 1;
                        return self.time_out(cx);
                    }
                    return;
                }
            }
        }
    }

    /// tcp_retries2 as Linux means it: not a count, but the time that so many retransmissions from the least RTO take.
    fn is_given_up(&self, cx: &Context) -> bool {
        let Some(since) = self.sender.retransmitting_since() else {
            return false;
        };
        let passed = cx.now.since(since);
        if self.options.user_timeout.0 > 0 {
            return passed >= self.options.user_timeout;
        }
        if self.sender.retransmits() == 0 {
            return false;
        }
        let retries = if self.is_nobodys() {
            self.orphan_retries(cx.config)
        } else {
            cx.config.retries
        };
        passed >= backed_off(retries, cx.config)
    }

    fn is_nobodys(&self) -> bool {
        self.orphan || self.abandoned
    }

    fn orphan_retries(&self, config: &TcpConfig) -> u8 {
        match self.soft_error {
            // The network told that the peer is gone.
            Some(_) if self.sender.rto() >= config.rto_max => 0,
            _ => config.orphan_retries,
        }
    }

    fn time_out(&mut self, cx: &mut Context) {
        let error = self.soft_error.take().unwrap_or(SocketError::TimedOut);
        self.fail(cx, error);
    }

    /// Data wait, and neither an ACK nor a timer of the sender will get them out: the window is closed, or CORK holds them back.
    pub(crate) fn arm_window_probe(&mut self, cx: &Context) {
        let waits = self.unsent() > 0 && self.sender.flight_bytes() == 0;
        if waits && self.probes.window_deadline.is_none() {
            self.probes.window_deadline = Some(cx.now + self.window_probe_interval(cx.config));
        }
    }

    fn window_probe_interval(&self, config: &TcpConfig) -> Ns {
        let base = self.sender.rto().max(config.rto_min).0;
        Ns(base.saturating_mul(1 << self.probes.backoff.min(32))).min(config.rto_max)
    }

    /// The window opened: no more probes.
    pub(crate) fn window_probe_answered(&mut self, now: Ns) {
        let _ = now;
        if self.probes.window_deadline.is_some() && self.send_edge().after(self.sender.snd_nxt()) {
            self.probes.window_deadline = None;
            self.probes.backoff = 0;
            self.probes.since = None;
        }
    }

    fn window_probe_due(&mut self, cx: &mut Context) {
        self.probes.window_deadline = None;
        if self.unsent() == 0 || self.sender.flight_bytes() > 0 {
            return;
        }
        if self.send_edge().after(self.sender.snd_nxt()) {
            // Nagle, CORK or a small window: its time is over.
            self.send.force = true;
            self.send.more = false;
            return;
        }
        let since = *self.probes.since.get_or_insert(cx.now);
        let user = self.options.user_timeout;
        let (retries, is_over) = if self.is_nobodys() {
            // A peer that answers probes, and never opens its window, does not keep it for ever (tcp_probe_timer in
            // net/ipv4/tcp_timer.c).
            let is_over = self.window_probe_interval(cx.config) >= cx.config.rto_max;
            (self.orphan_retries(cx.config), is_over)
        } else {
            (cx.config.retries, false)
        };
        let is_late = user.0 > 0 && cx.now.since(since) >= user;
        if is_late || is_over || self.probes.out >= retries {
            cx.counters.abort_on_timeout += 1;
            return self.time_out(cx);
        }
        cx.counters.win_probe += 1;
        self.probes.pending = true;
        self.probes.out += 1;
        self.probes.backoff = (self.probes.backoff + 1).min(cx.config.retries);
        self.probes.window_deadline = Some(cx.now + self.window_probe_interval(cx.config));
    }

    /// SO_KEEPALIVE was set, or its times changed.
    pub(crate) fn restart_keep_alive(&mut self, now: Ns) {
        let lives = !matches!(self.state, TcpState::Closed | TcpState::TimeWait);
        self.probes.keep_alive_deadline =
            (self.options.keep_alive && lives).then(|| now + self.options.keep_idle);
    }

    /// RFC 9293, 3.8.4: when nothing came for long, and nothing is under way that would tell.
    fn keep_alive_due(&mut self, cx: &mut Context) {
        self.probes.keep_alive_deadline = None;
        if !self.options.keep_alive {
            return;
        }
        if self.sender.flight_bytes() > 0 || self.unsent() > 0 {
            self.probes.keep_alive_deadline = Some(cx.now + self.options.keep_idle);
            return;
        }
        let heard = self.last_ack_received.max(self.ack.last_data);
        let silent = cx.now.since(heard);
        if silent < self.options.keep_idle {
            self.probes.keep_alive_deadline = Some(heard + self.options.keep_idle);
            return;
        }
        let user = self.options.user_timeout;
        let dead = if user.0 > 0 {
            silent >= user && self.probes.out > 0
        } else {
            self.probes.out >= self.options.keep_count
        };
        if dead {
            self.send_reset(cx);
            cx.counters.abort_on_timeout += 1;
            return self.time_out(cx);
        }
        cx.counters.keep_alive += 1;
        self.probes.pending = true;
        self.probes.out += 1;
        self.probes.keep_alive_deadline = Some(cx.now + self.options.keep_interval);
    }
}

fn is_due(deadline: Option<Ns>, now: Ns) -> bool {
    deadline.is_some_and(|at| at <= now)
}

/// Linux tcp_model_timeout: exponential from the least RTO until the largest, then that each time.
pub(crate) fn backed_off(retries: u8, config: &TcpConfig) -> Ns {
    backed_off_from(config.rto_min, retries, config.rto_max)
}

pub(crate) fn backed_off_from(first: Ns, retries: u8, largest: Ns) -> Ns {
    let doublings = (largest.0 / first.0.max(1)).max(1).ilog2();
    let retries = u32::from(retries);
    let exponential = ((2u64 << retries.min(doublings)) - 1).saturating_mul(first.0);
    let linear = u64::from(retries.saturating_sub(doublings)).saturating_mul(largest.0);
    Ns(exponential.saturating_add(linear))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_retries_are_linux_924_6_s() {
        let config = TcpConfig::default();
        assert_eq!(backed_off(15, &config), Ns::from_ms(924_600));
    }
}
