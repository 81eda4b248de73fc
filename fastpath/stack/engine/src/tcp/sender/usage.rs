//! Whether cwnd is what limits sending: else it must not grow (RFC 7661, 4.; Linux tcp_cwnd_validate).
use crate::Ns;
use crate::tcp::seq::Seq;

#[derive(Debug, Clone, Copy)]
pub(super) struct Usage {
    /// cwnd was full in this round trip or the one before.
    limited: bool,
    /// The most that was in flight in it, in bytes.
    most: u32,
    /// Ends when snd_una is here.
    round_end: Seq,
    /// When cwnd was last the limit, and the most in flight since.
    limited_at: Ns,
    used_since: u32,
}

impl Usage {
    pub(super) fn new(now: Ns, first: Seq) -> Usage {
        Usage {
            limited: false,
            most: 0,
            round_end: first,
            limited_at: now,
            used_since: 0,
        }
    }

    /// Something was sent. `full`: there is no room for a whole segment in cwnd any more.
    pub(super) fn sent(&mut self, now: Ns, in_flight: u32, full: bool, una: Seq, nxt: Seq) {
        if full || una.from(self.round_end) || !self.limited && in_flight > self.most {
            self.limited = full;
            self.most = in_flight;
            self.round_end = nxt;
        }
        self.used_since = self.used_since.max(in_flight);
        if full {
            self.restart(now);
        }
    }

    /// Whether cwnd may grow. In slow start also where half of it was used, because the ACKs double it.
    pub(super) fn is_limited(&self, cwnd: u32, slow_start: bool) -> bool {
        self.limited || slow_start && cwnd < self.most.saturating_mul(2)
    }

    /// The most in flight since cwnd was the limit, where that is longer ago than `rto` (RFC 2861, 3.): how much of cwnd is confirmed.
    pub(super) fn unused(&mut self, now: Ns, rto: Ns) -> Option<u32> {
        if now.since(self.limited_at) < rto {
            return None;
        }
        let used = self.used_since;
        self.restart(now);
        Some(used)
    }

    pub(super) fn restart(&mut self, now: Ns) {
        self.limited_at = now;
        self.used_since = 0;
    }
}
