//! How many ICMP errors are sent (RFC 1812, 4.3.2.8; RFC 4443, 2.4 (f)): token buckets, one for all and one for each of
//! the hosts that hash to it.
use crate::Ns;
use crate::wire::siphash::SipKey;
use std::net::IpAddr;

/// Linux: icmp_msgs_per_sec, icmp_msgs_burst.
const ALL: Limit = Limit {
    interval: Ns::from_ms(1),
    burst: 50,
};
/// Linux: icmp_ratelimit, XRLIM_BURST_FACTOR.
const ONE_HOST: Limit = Limit {
    interval: Ns::from_ms(1_000),
    burst: 6,
};
const HOSTS: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Of one token.
    interval: Ns,
    burst: u64,
}

/// When the bucket is full again: a bucket's only state.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    full_at: Ns,
}

impl Bucket {
    fn has_token(self, now: Ns, limit: Limit) -> bool {
        let missing = self.full_at.0.saturating_sub(now.0);
        missing + limit.interval.0 <= limit.interval.0 * limit.burst
    }

    fn take(&mut self, now: Ns, limit: Limit) {
        self.full_at = Ns(self.full_at.0.max(now.0) + limit.interval.0);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    /// One of Linux' counters OutRateLimitGlobal, OutRateLimitHost.
    OverAll,
    OverHost,
}

#[derive(Debug)]
pub(super) struct RateLimit {
    key: SipKey,
    all: Bucket,
    hosts: Box<[Bucket; HOSTS]>,
}

impl RateLimit {
    pub(super) fn new(key: SipKey) -> RateLimit {
        RateLimit {
            key,
            all: Bucket::default(),
            hosts: Box::new([Bucket::default(); HOSTS]),
        }
    }

    pub(super) fn take(&mut self, now: Ns, destination: IpAddr) -> Verdict {
        let hash = match destination {
            IpAddr::V4(v4) => self.key.hash(&v4.octets()),
            // By /64: one host has as many addresses of it as it wants.
            IpAddr::V6(v6) => self.key.hash(&v6.octets()[..8]),
        };
        let host = &mut self.hosts[hash as usize % HOSTS];
        if !host.has_token(now, ONE_HOST) {
            return Verdict::OverHost;
        }
        if !self.all.has_token(now, ALL) {
            return Verdict::OverAll;
        }
        host.take(now, ONE_HOST);
        self.all.take(now, ALL);
        Verdict::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(limit: &mut RateLimit, now: Ns, host: impl Fn(u32) -> u32) -> usize {
        let verdicts = (0..100_000).map(|i| limit.take(now, IpAddr::V4(host(i).into())));
        verdicts.filter(|v| *v == Verdict::Send).count()
    }

    #[test]
    fn rfc4443_2_4_f_bursts_and_rates() {
        let mut limit = RateLimit::new(SipKey { k0: 1, k1: 2 });
        assert_eq!(sent(&mut limit, Ns(0), |_| 7), 6, "one host");
        assert_eq!(sent(&mut limit, Ns(0), |i| i), 44, "all");
        assert_eq!(
            sent(&mut limit, Ns::from_ms(10), |i| i),
            10,
            "a token each ms"
        );
        assert_eq!(sent(&mut limit, Ns::from_ms(3_600_000), |_| 7), 6);
    }
}
