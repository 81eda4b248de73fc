//! SYN cookies (RFC 4987, 3.6): a SYN-ACK whose sequence number and timestamp hold what a request would, so that the ACK brings it back.
use super::seq::Seq;
use super::tuple::Tuple;
use crate::Ns;
use crate::wire::siphash::SipKey;
use crate::wire::tcp_options;

/// MSS that a cookie can hold: the largest one that is not above the peer's counts.
const MSS: [u16; 8] = [216, 536, 1_024, 1_220, 1_360, 1_440, 1_460, 8_960];
/// A cookie is from this minute or the one before.
const LIFETIME_MINUTES: u32 = 2;
const MINUTE_NS: u64 = 60_000_000_000;

/// In the lowest bits of TSval: the peer's window scale (15: none), and SACK.
const OPTION_BITS: u32 = 6;
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cookies {
    key: SipKey,
}

impl Cookies {
    pub(crate) fn new(seed: &[u8; 32]) -> Cookies {
        Cookies {
            key: SipKey::derived(seed, 19),
        }
    }

    /// The initial sequence number: 24 bits of keyed hash, 3 of the minute, 3 of the MSS, added to the peer's number so that it
    /// rises as RFC 9293, 3.4.1 wants.
    pub(crate) fn make(&self, now: Ns, tuple: &Tuple, irs: Seq, mss: u16) -> Seq {
        let index = MSS.iter().rposition(|m| *m <= mss).unwrap_or(0) as u32;
        Seq(self.value(minute(now), tuple, irs, index))
    }

    /// The MSS, if `iss` is a cookie of ours for this connection, and fresh.
    pub(crate) fn check(&self, now: Ns, tuple: &Tuple, irs: Seq, iss: Seq) -> Option<u16> {
        let now = minute(now);
        (0..LIFETIME_MINUTES).find_map(|age| {
            let minute = now.checked_sub(age)?;
            let mut sizes = MSS.iter().zip(0..);
            let found = sizes.find(|(_, index)| self.value(minute, tuple, irs, *index) == iss.0);
            found.map(|(mss, _)| *mss)
        })
    }

    fn value(&self, minute: u32, tuple: &Tuple, irs: Seq, index: u32) -> u32 {
        let [a, b, c, d, ports] = tuple.words();
        let told = u64::from(irs.0) << 32 | u64::from(minute) << 3 | u64::from(index);
        let hash = self.key.hash_words([a, b, c, d, ports, told]) as u32;
        hash.wrapping_add(irs.0)
    }
}

fn minute(now: Ns) -> u32 {
    (now.0 / MINUTE_NS) as u32
}

/// TSval at or before `stamp` that tells the peer's options when it is echoed.
pub(crate) fn stamp_with_options(stamp: u32, options: &tcp_options::TcpOptions) -> u32 {
    let scale = options.window_scale.map_or(NO_SCALE, u32::from);
    let told = scale | if options.sack_permitted { SACK } else { 0 };
    let low = (1 << OPTION_BITS) - 1;
    let value = stamp & !low | told;
    // Never in the future: the next real stamp must not be older.
    if value > stamp {
        value.wrapping_sub(1 << OPTION_BITS)
    } else {
        value
    }
}

/// Window scale and SACK, from the echo.
pub(crate) fn options_of_stamp(echo: u32) -> (Option<u8>, bool) {
    let scale = echo & 15;
    let scale = (scale != NO_SCALE).then_some(scale.min(14) as u8);
    (scale, echo & SACK != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple() -> Tuple {
        Tuple::new(
            "10.0.0.1:80".parse().unwrap(),
            "10.0.0.2:4000".parse().unwrap(),
        )
    }

    #[test]
    fn rfc4987_3_6_a_cookie_brings_back_the_mss_for_two_minutes() {
        let cookies = Cookies::new(&[7; 32]);
        let now = Ns(600 * 1_000_000_000);
        let iss = cookies.make(now, &tuple(), Seq(5), 1_450);
        let later = |s: u64| Ns(now.0 + s * 1_000_000_000);
        assert_eq!(cookies.check(later(60), &tuple(), Seq(5), iss), Some(1_440));
        assert_eq!(cookies.check(later(180), &tuple(), Seq(5), iss), None);
        assert_eq!(cookies.check(now, &tuple(), Seq(6), iss), None);
        assert_eq!(cookies.check(now, &tuple(), Seq(5), iss + 1), None);
    }

    #[test]
    fn rfc4987_3_6_options_come_back_in_the_timestamp() {
        let options = tcp_options::TcpOptions {
            window_scale: Some(7),
            sack_permitted: true,
            ..tcp_options::TcpOptions::default()
        };
        for stamp in [64, 100, 0x1234_5678, u32::MAX] {
            let value = stamp_with_options(stamp, &options);
            assert!(stamp - value < 128);
            assert_eq!(options_of_stamp(value), (Some(7), true));
        }
        let none = stamp_with_options(1_000, &tcp_options::TcpOptions::default());
        assert_eq!(options_of_stamp(none), (None, false));
    }
}
