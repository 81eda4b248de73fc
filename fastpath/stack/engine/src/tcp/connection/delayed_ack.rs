//! When to acknowledge: at once, or with the next data or timer (RFC 9293, 3.8.6.3; RFC 5681, 4.2). What adapts is Linux': quick
//! acknowledgements at the beginning and after a pause, delayed ones where the application answers ("ping-pong").
use crate::{Ns, TcpConfig};

/// Linux TCP_MAX_QUICKACKS: acknowledgements without delay, for a sender in slow start.
const MAX_QUICK: u32 = 16;

#[derive(Debug, Clone, Copy)]
pub(crate) struct DelayedAck {
    /// At once, with the next output.
    pub(crate) now: bool,
    /// Something came that is not acknowledged.
    pub(crate) scheduled: bool,
    /// A segment below the usual size came (the sender has no more), and a second one.
    pushed: bool,
    pushed_again: bool,
    /// The application answers what it reads: its data will carry the acknowledgement.
    pub(crate) ping_pong: bool,
    quick: u8,
    /// The present delay; 0 before the first data.
    pub(crate) ato: Ns,
    pub(crate) deadline: Option<Ns>,
    /// When data came last.
    pub(crate) last_data: Ns,
    /// Payload bytes of the segments that the peer sends, as far as seen (rcv_mss).
    pub(crate) rcv_mss: u32,
    last_size: u32,
}

impl DelayedAck {
    /// `rcv_mss`: what to expect before the first segment (Linux tcp_initialize_rcv_mss).
    pub(crate) fn new(rcv_mss: u32) -> DelayedAck {
        DelayedAck {
            now: false,
            scheduled: false,
            pushed: false,
            pushed_again: false,
            ping_pong: false,
            quick: 0,
            ato: Ns(0),
            deadline: None,
            last_data: Ns(0),
            rcv_mss,
            last_size: 0,
        }
    }

    /// In-order or new out-of-order data came (Linux tcp_event_data_recv).
    pub(crate) fn data_came(&mut self, now: Ns, rcv_wnd: u32, rto: Ns, config: &TcpConfig) {
        self.scheduled = true;
        let least = config.delayed_ack_min;
        let gap = now.since(self.last_data);
        if self.ato.0 == 0 {
            self.add_quick(MAX_QUICK, rcv_wnd);
            self.ato = least;
        } else if gap.0 <= least.0 / 2 {
            self.ato = Ns(self.ato.0 / 2 + least.0 / 2);
        } else if gap < self.ato {
            self.ato = Ns(self.ato.0 / 2 + gap.0).min(rto);
        } else if gap > rto {
            // So long a pause is a new beginning: the sender is in slow start again.
            self.add_quick(MAX_QUICK, rcv_wnd);
        }
        self.last_data = now;
    }

    /// A sender that always fills its segments tells its size; smaller ones say that it has no more for now.
    pub(crate) fn measure(&mut self, size: u32, segment_bytes: u32, advmss: u32) {
        let len = segment_bytes;
        if len >= self.rcv_mss {
            self.rcv_mss = len.min(advmss);
            self.pushed |= size > len && !size.is_multiple_of(len.max(1));
            return;
        }
        if len >= 536 && len == self.last_size {
            self.rcv_mss = len;
            return;
        }
        self.last_size = len;
        self.pushed_again |= self.pushed;
        self.pushed = true;
    }

    /// Linux tcp_incr_quickack: as many as half the window has segments.
    pub(crate) fn add_quick(&mut self, most: u32, rcv_wnd: u32) {
        let segments = (rcv_wnd / (2 * self.rcv_mss.max(1))).max(2).min(most);
        self.quick = self.quick.max(segments as u8);
    }

    /// What came was unexpected (a duplicate, out of window): the peer should hear soon (Linux tcp_enter_quickack_mode).
    pub(crate) fn enter_quick(&mut self, rcv_wnd: u32, config: &TcpConfig) {
        self.add_quick(MAX_QUICK, rcv_wnd);
        self.ping_pong = false;
        self.ato = config.delayed_ack_min;
    }

    pub(crate) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.ping_pong
    }

    /// Whether the application's reading should acknowledge at once (Linux tcp_cleanup_rbuf).
    pub(crate) fn after_read(&self, unacknowledged: u32, emptied: bool) -> bool {
        let pushed = self.pushed_again || self.pushed && !self.ping_pong;
        self.scheduled && (unacknowledged > self.rcv_mss || pushed && emptied)
    }

    /// Sets or keeps the timer; `true`: it would expire so soon that the acknowledgement is sent at once (Linux
    /// tcp_send_delayed_ack).
    pub(crate) fn delay(&mut self, now: Ns, srtt: Option<Ns>, config: &TcpConfig) -> bool {
        let least = config.delayed_ack_min;
        let mut ato = self.ato.max(least);
        if ato > least {
            let mut most = Ns::from_ms(500);
            if self.ping_pong || self.pushed {
                most = config.delayed_ack_max;
            }
            if let Some(srtt) = srtt {
                most = most.min(srtt.max(least));
            }
            ato = ato.min(most);
        }
        ato = ato.min(config.delayed_ack_max);
        let at = now + ato;
        match self.deadline {
            Some(before) if before <= now + Ns(ato.0 / 4) => return true,
            Some(before) => self.deadline = Some(before.min(at)),
            None => self.deadline = Some(at),
        }
        false
    }

    /// The timer expired: the application did not answer in time (Linux tcp_delack_timer_handler). `true`: acknowledge.
    pub(crate) fn expired(&mut self, rto: Ns, config: &TcpConfig) -> bool {
        self.deadline = None;
        if !self.scheduled {
            return false;
        }
        if self.ping_pong {
            self.ping_pong = false;
            self.ato = config.delayed_ack_min;
        } else {
            self.ato = Ns(self.ato.0 * 2).min(rto);
        }
        self.now = true;
        true
    }

    /// A segment with ACK was sent.
    pub(crate) fn sent(&mut self, config: &TcpConfig) {
        if self.quick > 0 {
            self.quick -= u8::from(self.scheduled);
            if self.quick == 0 {
                // Leaving quick mode: as if just begun.
                self.ato = config.delayed_ack_min;
            }
        }
        self.now = false;
        self.scheduled = false;
        self.pushed = false;
        self.pushed_again = false;
        self.deadline = None;
    }

    /// Data were sent: when they answer something that came within the delay, delaying pays off.
    pub(crate) fn data_sent(&mut self, now: Ns) {
        if self.last_data.0 != 0 && now.since(self.last_data) < self.ato {
            self.ping_pong = true;
        }
    }

    /// TCP_QUICKACK.
    pub(crate) fn set_quick(&mut self, on: bool) {
        self.ping_pong = !on;
        if on && self.scheduled {
            self.pushed = true;
            self.now = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Ns = Ns::from_ms(200);

    fn come(ack: &mut DelayedAck, ms: u64, bytes: u32) {
        let config = TcpConfig::default();
        ack.measure(bytes, bytes, 1460);
        ack.data_came(Ns::from_ms(ms), 64_000, RTO, &config);
    }

    /// RFC 5681, 4.2 allows a delay; a sender in slow start needs each acknowledgement (Linux' quick mode).
    #[test]
    fn the_first_segments_are_acknowledged_at_once() {
        let mut ack = DelayedAck::new(536);
        for ms in 1..=16 {
            come(&mut ack, ms, 1_000);
            assert!(ack.is_quick(), "{ms}");
            ack.sent(&TcpConfig::default());
        }
        come(&mut ack, 17, 1_000);
        assert!(!ack.is_quick());
    }

    #[test]
    fn who_answers_gets_time_to_answer() {
        let mut ack = DelayedAck::new(536);
        come(&mut ack, 1_000, 100);
        ack.data_sent(Ns::from_ms(1_001));
        assert!(ack.ping_pong && !ack.is_quick());
        let config = TcpConfig::default();
        assert!(!ack.delay(Ns::from_ms(1_001), None, &config));
        assert_eq!(ack.deadline, Some(Ns::from_ms(1_041)));
        // Not answered in time: no ping-pong any more.
        assert!(ack.expired(RTO, &config) && ack.now && !ack.ping_pong);
    }

    #[test]
    fn the_sender_s_segment_size_is_learned() {
        let mut ack = DelayedAck::new(536);
        come(&mut ack, 1, 1_448);
        assert_eq!(ack.rcv_mss, 1_448);
        come(&mut ack, 2, 1_000);
        come(&mut ack, 3, 1_000);
        assert_eq!(ack.rcv_mss, 1_000);
    }

    /// Never beyond RFC 1122, 4.2.3.2's half second.
    #[test]
    fn rfc1122_4_2_3_2_no_delay_is_longer() {
        let mut ack = DelayedAck::new(536);
        let config = TcpConfig::default();
        for ms in (0..40_000).step_by(190) {
            come(&mut ack, 1_000 + ms, 100);
            ack.deadline = None;
            ack.delay(Ns::from_ms(1_000 + ms), None, &config);
            let delay = ack.deadline.unwrap().since(Ns::from_ms(1_000 + ms));
            assert!(delay <= config.delayed_ack_max, "{delay:?}");
        }
    }
}
