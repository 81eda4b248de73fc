//! Leaves slow start when round trips become longer, before the queue overflows (RFC 9406).
use crate::tcp::seq::Seq;
use crate::{Counters, Ns};

/// RFC 9406, 4.3.
const MIN_RTT_THRESH: Ns = Ns::from_ms(4);
const MAX_RTT_THRESH: Ns = Ns::from_ms(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
pub(super) const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u8 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// Slow start.
    Full,
    /// Conservative slow start: a quarter.
    Conservative,
    /// Congestion avoidance from here on.
    Leave,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct HyStart {
    round_end: Seq,
    last_round_min: Ns,
    current_min: Ns,
    samples: u32,
    /// In conservative slow start: currentRoundMinRTT when it began, and the rounds of it.
    css: Option<(Ns, u8)>,
}

impl HyStart {
    pub(super) fn new(first: Seq) -> HyStart {
        HyStart {
            round_end: first,
            last_round_min: Ns(u64::MAX),
            current_min: Ns(u64::MAX),
            samples: 0,
            css: None,
        }
    }

    /// An ACK that advanced snd_una to `una`.
    pub(super) fn acked(
        &mut self,
        una: Seq,
        nxt: Seq,
        rtt: Option<Ns>,
        counters: &mut Counters,
    ) -> Growth {
        if let Some(rtt) = rtt {
            self.current_min = self.current_min.min(rtt);
            self.samples = self.samples.saturating_add(1);
            self.compare(counters);
        }
        if una.from(self.round_end) && self.next_round(nxt) {
            return Growth::Leave;
        }
        match self.css {
            None => Growth::Full,
            Some(_) => Growth::Conservative,
        }
    }

    fn compare(&mut self, counters: &mut Counters) {
        if self.samples < N_RTT_SAMPLE || self.current_min.0 == u64::MAX {
            return;
        }
        match self.css {
            None if self.last_round_min.0 != u64::MAX => {
                let step = Ns(self.last_round_min.0 / MIN_RTT_DIVISOR)
                    .clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.current_min >= self.last_round_min + step {
                    self.css = Some((self.current_min, 0));
                    counters.hystart_delay_detect += 1;
                }
            }
            // The rise was not the queue's: back to slow start.
            Some((baseline, _)) if self.current_min < baseline => self.css = None,
            _ => {}
        }
    }

    /// Whether conservative slow start is over.
    fn next_round(&mut self, nxt: Seq) -> bool {
        self.round_end = nxt;
        self.last_round_min = self.current_min;
        self.current_min = Ns(u64::MAX);
        self.samples = 0;
        match &mut self.css {
            Some((_, rounds)) => {
                *rounds += 1;
                *rounds >= CSS_ROUNDS
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of ten ACKs with this round-trip time.
    fn round(hystart: &mut HyStart, number: u32, rtt: Ns) -> Growth {
        let mut last = Growth::Full;
        let mut counters = Counters::default();
        for n in 1..=10 {
            let una = Seq(number * 1000 + n * 100);
            last = hystart.acked(una, Seq((number + 2) * 1000), Some(rtt), &mut counters);
        }
        last
    }

    #[test]
    fn rfc9406_4_2_longer_round_trips_lead_to_css_and_out_of_it() {
        let mut hystart = HyStart::new(Seq(0));
        assert_eq!(round(&mut hystart, 0, Ns::from_ms(40)), Growth::Full);
        assert_eq!(round(&mut hystart, 1, Ns::from_ms(44)), Growth::Full);
        assert_eq!(
            round(&mut hystart, 2, Ns::from_ms(50)),
            Growth::Conservative
        );
        let mut rounds = 3;
        while round(&mut hystart, rounds, Ns::from_ms(60)) != Growth::Leave {
            rounds += 1;
            assert!(rounds < 20);
        }
    }

    #[test]
    fn rfc9406_4_2_shorter_again_resumes_slow_start() {
        let mut hystart = HyStart::new(Seq(0));
        round(&mut hystart, 0, Ns::from_ms(40));
        round(&mut hystart, 1, Ns::from_ms(40));
        assert_eq!(
            round(&mut hystart, 2, Ns::from_ms(60)),
            Growth::Conservative
        );
        round(&mut hystart, 3, Ns::from_ms(40));
        assert_eq!(round(&mut hystart, 4, Ns::from_ms(40)), Growth::Full);
    }

    #[test]
    fn rfc9406_4_3_jitter_below_4_ms_is_none() {
        let mut hystart = HyStart::new(Seq(0));
        round(&mut hystart, 0, Ns::from_us(100));
        round(&mut hystart, 1, Ns::from_us(100));
        assert_eq!(round(&mut hystart, 2, Ns::from_us(3_900)), Growth::Full);
    }
}
