//! Round-trip time and retransmission time-out (RFC 6298).
use crate::Ns;
use crate::tcp::seq::Seq;

/// Several samples a round trip, as from timestamps, would make RTTVAR forget too fast (RFC 7323, appendix G). As Linux does, the largest deviation of
/// a round trip counts, and RTTVAR falls only once in a round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rtt {
    /// 0: no sample yet.
    srtt: Ns,
    /// Smoothed deviation of single samples.
    mdev: Ns,
    /// The largest deviation in this round trip.
    mdev_max: Ns,
    rttvar: Ns,
    /// The round trip ends when snd_una is here.
    round_end: Seq,
    rto_initial: Ns,
    rto_min: Ns,
    rto_max: Ns,
    /// Doublings (RFC 6298, 5.5).
    backoff: u8,
}

impl Rtt {
    pub(super) fn new(rto_initial: Ns, rto_min: Ns, rto_max: Ns, first: Seq) -> Rtt {
        Rtt {
            srtt: Ns(0),
            mdev: Ns(0),
            mdev_max: Ns(0),
            rttvar: Ns(0),
            round_end: first,
            rto_initial,
            rto_min,
            rto_max,
            backoff: 0,
        }
    }

    /// RFC 6298, 2.2 and 2.3. `una`, `nxt`: after the ACK that gave the sample.
    pub(super) fn add(&mut self, sample: Ns, una: Seq, nxt: Seq) {
        let sample = Ns(sample.0.max(1));
        self.backoff = 0;
        if self.srtt.0 == 0 {
            self.srtt = sample;
            self.mdev = Ns(sample.0 / 2);
            self.mdev_max = self.mdev;
            self.rttvar = self.mdev;
            self.round_end = nxt;
            return;
        }
        let error = sample.0.abs_diff(self.srtt.0);
        // A sample far below SRTT is no reason for a longer time-out: such a deviation weighs an eighth.
        let weight = if sample < self.srtt && error > self.mdev.0 {
            32
        } else {
            4
        };
        self.mdev = Ns(step(self.mdev.0, error, weight));
        self.srtt = Ns(step(self.srtt.0, sample.0, 8).max(1));
        self.mdev_max = self.mdev_max.max(self.mdev);
        self.rttvar = self.rttvar.max(self.mdev_max);
        if una.after(self.round_end) {
            self.rttvar = Ns(step(self.rttvar.0, self.mdev_max.0, 4));
            self.round_end = nxt;
            self.mdev_max = Ns(0);
        }
    }

    pub(super) fn srtt(&self) -> Option<Ns> {
        (self.srtt.0 != 0).then_some(self.srtt)
    }

    pub(super) fn rttvar(&self) -> Ns {
        self.rttvar
    }

    /// SRTT + max(rto_min, 4·RTTVAR), doubled for each time-out. The lower bound is applied to the variation as in Linux, so that a time-out
    /// never comes less than rto_min after the ACK was due.
    pub(super) fn rto(&self) -> Ns {
        let base = match self.srtt() {
            None => self.rto_initial,
            Some(srtt) => srtt + Ns(self.rttvar.0.saturating_mul(4)).max(self.rto_min),
        };
        Ns(base.0.saturating_mul(1 << self.backoff.min(30))).min(self.rto_max)
    }

    pub(super) fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    pub(super) fn backoff(&self) -> u8 {
        self.backoff
    }
}

/// `old` moved by 1/`weight` of the way to `new`.
fn step(old: u64, new: u64, weight: u64) -> u64 {
    if new >= old {
        old + (new - old) / weight
    } else {
        old - (old - new) / weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt() -> Rtt {
        Rtt::new(
            Ns::from_ms(1000),
            Ns::from_ms(5),
            Ns::from_ms(120_000),
            Seq(0),
        )
    }

    #[test]
    fn rfc6298_2_1_before_a_sample() {
        assert_eq!(rtt().rto(), Ns::from_ms(1000));
    }

    #[test]
    fn rfc6298_2_2_first_sample() {
        let mut rtt = rtt();
        rtt.add(Ns::from_ms(100), Seq(1), Seq(2));
        assert_eq!(rtt.srtt(), Some(Ns::from_ms(100)));
        assert_eq!(rtt.rttvar(), Ns::from_ms(50));
        assert_eq!(rtt.rto(), Ns::from_ms(300));
    }

    #[test]
    fn rfc6298_2_3_next_sample() {
        let mut rtt = rtt();
        rtt.add(Ns::from_ms(100), Seq(1), Seq(2));
        rtt.add(Ns::from_ms(180), Seq(3), Seq(9));
        assert_eq!(rtt.srtt(), Some(Ns::from_ms(110)));
        // mdev: 50 + (80 - 50) / 4
        assert_eq!(rtt.rttvar(), Ns::from_us(57_500));
    }

    #[test]
    fn rfc6298_2_4_lower_and_2_5_upper_bound() {
        let mut rtt = rtt();
        for n in 1..200 {
            rtt.add(Ns::from_us(100), Seq(2 * n), Seq(2 * n + 1));
        }
        assert_eq!(rtt.rto(), Ns::from_us(5_100));
        for _ in 0..40 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Ns::from_ms(120_000));
    }

    #[test]
    fn rfc6298_5_5_back_off_until_a_sample() {
        let mut rtt = rtt();
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Ns::from_ms(4000));
        rtt.add(Ns::from_ms(100), Seq(1), Seq(2));
        assert_eq!(rtt.rto(), Ns::from_ms(300));
    }

    #[test]
    fn rfc7323_g_many_samples_do_not_shrink_the_variation_within_a_round_trip() {
        let mut rtt = rtt();
        rtt.add(Ns::from_ms(100), Seq(1), Seq(1000));
        let before = rtt.rttvar();
        for n in 2..500 {
            rtt.add(Ns::from_ms(100), Seq(n), Seq(2000));
        }
        assert_eq!(rtt.rttvar(), before);
    }
}
