//! Limits of ACKs that a stranger's segments could provoke (RFC 5961, 7).
use crate::Ns;

/// Of all connections together, each second. As in Linux, half of the limit is fixed and half chosen anew each second: who counts
/// challenge ACKs to learn of others' connections (CVE-2016-5696) does not know what to count to.
#[derive(Debug)]
pub(crate) struct ChallengeLimit {
    per_s: u32,
    second: u64,
    left: u32,
    random: u64,
}

impl ChallengeLimit {
    pub(crate) fn new(per_s: u32, seed: u64) -> ChallengeLimit {
        ChallengeLimit {
            per_s,
            second: u64::MAX,
            left: 0,
            random: seed,
        }
    }

    pub(crate) fn allows(&mut self, now: Ns) -> bool {
        let second = now.0 / 1_000_000_000;
        if second != self.second {
            self.second = second;
            let fixed = self.per_s.div_ceil(2);
            self.left = fixed + self.draw() % (self.per_s - fixed + 1);
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }

    /// SplitMix64: enough to be unknown to who does not see it.
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }
}

/// ACKs of one connection's invalid segments: one each interval (Linux tcp_invalid_ratelimit), so that two ends that find each
/// other's segments invalid do not answer each other for ever.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InvalidLimit {
    last: Option<Ns>,
}

impl InvalidLimit {
    pub(crate) fn allows(&mut self, now: Ns, interval: Ns) -> bool {
        if self.last.is_some_and(|last| now.since(last) < interval) {
            return false;
        }
        self.last = Some(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc5961_7_no_more_than_the_limit_in_a_second() {
        let mut limit = ChallengeLimit::new(1_000, 7);
        for second in 0..20 {
            let now = Ns(second * 1_000_000_000);
            let sent = (0..2_000).filter(|_| limit.allows(now)).count();
            assert!((500..=1_000).contains(&sent), "{sent}");
        }
    }
}
