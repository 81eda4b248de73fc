//! What may be sent, and what was.
use super::send_log::Transmission;
use super::state::{Sender, TailProbe};
use super::types::SentKind;
use crate::info::CongestionState;
use crate::tcp::seq::SeqRange;
use crate::{Counters, Ns};

impl Sender {
    /// A segment, or several in one frame for the device to cut, was handed to the device. `range` is in sequence numbers: FIN is one.
    pub(crate) fn sent(
        &mut self,
        now: Ns,
        range: SeqRange,
        kind: SentKind,
        counters: &mut Counters,
    ) {
        if range.is_empty() {
            return;
        }
        self.order = self.order.next();
        let fresh = range.start == self.board.nxt();
        if fresh {
            self.count_fresh(now, range, counters);
        } else {
            self.count_retransmission(now, range, kind, counters);
        }
        if self.settings.rack {
            let record = Transmission {
                range,
                at: now,
                order: self.order,
            };
            self.log.push(record, &self.board);
        }
        self.prr.sent(range.len());
        self.last_sent = now;
        self.idle_from = now;
        self.totals.bytes_sent += u64::from(range.len());
        self.note_usage(now);
        match kind {
            SentKind::TailProbe => self.probe_sent(now, fresh),
            SentKind::Fresh => self.arm_after_send(now),
            SentKind::Retransmission if range.start == self.board.una() => self.arm_rto(now),
            SentKind::Retransmission => {}
        }
    }

    /// Of `unsent_bytes` (already bounded by the peer's window) as many as congestion control lets out now: whole segments, or all of them.
    /// Begins a new slow start after idleness (RFC 5681, 4.1).
    pub(crate) fn sendable_new(&mut self, now: Ns, unsent_bytes: u32) -> u32 {
        if unsent_bytes > 0 && self.board.is_empty() {
            self.restart_after_idle(now);
        }
        self.fit(unsent_bytes)
    }

    /// What to retransmit next, at most `max_bytes` of it, if congestion control lets it out now. Changes nothing until it is [`Sender::sent`].
    pub(crate) fn next_retransmission(&self, max_bytes: u32) -> Option<SeqRange> {
        if self.f_rto.only_new {
            return None;
        }
        let lost = self.board.lost().first()?;
        let bytes = self.fit(lost.len().min(max_bytes));
        (bytes > 0).then(|| SeqRange::of(lost.start, bytes))
    }

    /// What of `bytes` fits in cwnd: all, or whole segments.
    fn fit(&self, bytes: u32) -> u32 {
        let room = self.cwnd().saturating_sub(self.in_flight_bytes());
        if room >= bytes {
            bytes
        } else {
            room - room % self.mss()
        }
    }

    fn count_fresh(&mut self, now: Ns, range: SeqRange, counters: &mut Counters) {
        let segments = self
            .board
            .push(now, range.len(), self.order, self.window.mss());
        self.totals.segments_sent = self.totals.segments_sent.wrapping_add(u32::from(segments));
        counters.orig_data_sent += u64::from(segments);
    }

    fn count_retransmission(
        &mut self,
        now: Ns,
        range: SeqRange,
        kind: SentKind,
        counters: &mut Counters,
    ) {
        let mss = self.window.mss();
        let segments = self.board.resend(now, range, self.order, mss);
        let totals = &mut self.totals;
        totals.bytes_retransmitted += u64::from(range.len());
        totals.segments_sent = totals.segments_sent.wrapping_add(segments);
        totals.segments_retransmitted = totals.segments_retransmitted.wrapping_add(segments);
        counters.tcp_retrans_segs += u64::from(segments);
        if kind == SentKind::TailProbe {
            return;
        }
        self.retransmitting_since.get_or_insert(now);
        self.undo.retransmitted(now, range);
        match self.state {
            CongestionState::Loss => counters.slow_start_retrans += u64::from(segments),
            _ => counters.fast_retrans += u64::from(segments),
        }
    }

    /// RFC 8985, 7.3.
    fn probe_sent(&mut self, now: Ns, fresh: bool) {
        self.probe = Some(TailProbe {
            end: self.board.nxt(),
            is_retransmission: !fresh,
        });
        self.arm_rto(now);
    }

    /// RFC 7661, 4.; RFC 2861, 3.2: a window that was not used for a time-out is halved towards what was used.
    fn note_usage(&mut self, now: Ns) {
        let in_flight = self.in_flight_bytes();
        let full = in_flight.saturating_add(self.mss()) > self.cwnd();
        let (una, nxt) = (self.board.una(), self.board.nxt());
        self.usage.sent(now, in_flight, full, una, nxt);
        let (cwnd, slow_start) = (self.cwnd(), self.window.in_slow_start());
        if self.state != CongestionState::Open || self.usage.is_limited(cwnd, slow_start) {
            return;
        }
        if let Some(used) = self.usage.unused(now, self.rtt.rto()) {
            self.remember_ssthresh();
            let used = used.max(self.window.initial());
            if used < cwnd {
                self.window.set_cwnd(cwnd.midpoint(used));
            }
        }
    }

    /// RFC 5681, 4.1, as RFC 2861 softens it: cwnd is halved for each time-out of idleness, down to the initial window.
    fn restart_after_idle(&mut self, now: Ns) {
        let idle = now.since(self.idle_from);
        let rto = self.rtt.rto();
        if idle <= rto {
            return;
        }
        let least = self.window.initial().min(self.cwnd());
        let halvings = (idle.0 / rto.0.max(1)).min(31) as u32;
        self.remember_ssthresh();
        self.window.set_cwnd((self.cwnd() >> halvings).max(least));
        self.usage.restart(now);
        self.idle_from = now;
    }

    /// Slow start goes back up to where the path was found good (RFC 2861, 3.2).
    fn remember_ssthresh(&mut self) {
        let confirmed = self.cwnd() / 4 * 3;
        let ssthresh = self.window.ssthresh();
        if ssthresh != u32::MAX {
            self.window.set_ssthresh(ssthresh.max(confirmed));
        }
    }
}
