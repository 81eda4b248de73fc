//! Proportional Rate Reduction: what each ACK lets out during fast recovery (RFC 6937, as revised by RFC 9937).

/// All in bytes, since the recovery began.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Prr {
    /// RecoverFS.
    flight_at_start: u32,
    delivered: u64,
    out: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PrrAck {
    pub(super) delivered_bytes: u32,
    /// snd_una advanced, and nothing more was found lost.
    pub(super) safe: bool,
    pub(super) in_flight_bytes: u32,
    pub(super) ssthresh: u32,
    pub(super) mss: u32,
}

impl Prr {
    pub(super) fn begin(flight_bytes: u32) -> Prr {
        Prr {
            flight_at_start: flight_bytes.max(1),
            delivered: 0,
            out: 0,
        }
    }

    pub(super) fn has_sent_nothing(&self) -> bool {
        self.out == 0
    }

    pub(super) fn sent(&mut self, bytes: u32) {
        self.out += u64::from(bytes);
    }

    /// How many bytes may be sent now, on top of what is in flight.
    pub(super) fn acked(&mut self, ack: &PrrAck) -> u32 {
        self.delivered += u64::from(ack.delivered_bytes);
        let unanswered = self.delivered.saturating_sub(self.out);
        let allowed = if ack.in_flight_bytes > ack.ssthresh {
            let share = self.delivered * u64::from(ack.ssthresh);
            share
                .div_ceil(u64::from(self.flight_at_start))
                .saturating_sub(self.out)
        } else {
            let grown = u64::from(if ack.safe { ack.mss } else { 0 });
            let room = u64::from(ack.ssthresh - ack.in_flight_bytes);
            (unanswered.max(u64::from(ack.delivered_bytes)) + grown).min(room)
        };
        // The first retransmission goes out whatever is in flight.
        let least = if self.out == 0 { ack.mss } else { 0 };
        allowed.clamp(u64::from(least), u64::from(u32::MAX)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    /// 20 segments, one lost, ssthresh 10: what each of 19 duplicate ACKs lets out.
    #[test]
    fn rfc6937_3_1_spreads_the_reduction_over_a_round_trip() {
        let mut prr = Prr::begin(20 * MSS);
        let (mut in_flight, mut sent) = (19 * MSS, 0);
        for _ in 0..19 {
            in_flight -= MSS;
            let allowed = prr.acked(&PrrAck {
                delivered_bytes: MSS,
                safe: false,
                in_flight_bytes: in_flight,
                ssthresh: 10 * MSS,
                mss: MSS,
            });
            let out = allowed / MSS * MSS;
            prr.sent(out);
            in_flight += out;
            sent += out;
            assert!(out <= MSS);
        }
        assert!((9 * MSS..=10 * MSS).contains(&sent), "{sent}");
        assert!(in_flight.abs_diff(10 * MSS) <= MSS, "{in_flight}");
    }

    #[test]
    fn rfc9937_the_first_retransmission_goes_out() {
        let mut prr = Prr::begin(100 * MSS);
        let allowed = prr.acked(&PrrAck {
            delivered_bytes: 0,
            safe: false,
            in_flight_bytes: 99 * MSS,
            ssthresh: 50 * MSS,
            mss: MSS,
        });
        assert_eq!(allowed, MSS);
    }

    #[test]
    fn rfc9937_grows_by_a_segment_only_where_that_is_safe() {
        for (safe, allowed) in [(false, MSS), (true, 2 * MSS)] {
            let mut prr = Prr::begin(20 * MSS);
            prr.sent(MSS);
            let ack = PrrAck {
                delivered_bytes: MSS,
                safe,
                in_flight_bytes: 2 * MSS,
                ssthresh: 10 * MSS,
                mss: MSS,
            };
            assert_eq!(prr.acked(&ack), allowed);
        }
    }
}
