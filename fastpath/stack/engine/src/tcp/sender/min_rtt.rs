//! The least round-trip time of the last minutes (RFC 8985, 6.2, step 1; Linux tcp_min_rtt_wlen: 300 s).
use crate::Ns;

const HALF_WINDOW: Ns = Ns::from_ms(150_000);

/// The minimum over the last 150 to 300 s, as that of two halves of the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct MinRtt {
    previous: Ns,
    current: Ns,
    /// Of the current half.
    began: Ns,
}

impl MinRtt {
    pub(super) fn new(now: Ns) -> MinRtt {
        MinRtt {
            previous: Ns(u64::MAX),
            current: Ns(u64::MAX),
            began: now,
        }
    }

    pub(super) fn add(&mut self, now: Ns, rtt: Ns) {
        let age = now.since(self.began);
        if age > HALF_WINDOW {
            let both = HALF_WINDOW + HALF_WINDOW;
            self.previous = if age > both {
                Ns(u64::MAX)
            } else {
                self.current
            };
            self.current = rtt;
            self.began = now;
        }
        self.current = self.current.min(rtt);
    }

    pub(super) fn get(&self) -> Option<Ns> {
        let least = self.current.min(self.previous);
        (least.0 != u64::MAX).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc8985_6_2_old_minimum_expires() {
        let mut min = MinRtt::new(Ns(0));
        assert_eq!(min.get(), None);
        min.add(Ns(0), Ns::from_ms(1));
        min.add(Ns::from_ms(140_000), Ns::from_ms(5));
        assert_eq!(min.get(), Some(Ns::from_ms(1)));
        min.add(Ns::from_ms(160_000), Ns::from_ms(7));
        assert_eq!(min.get(), Some(Ns::from_ms(1)));
        min.add(Ns::from_ms(320_000), Ns::from_ms(6));
        assert_eq!(min.get(), Some(Ns::from_ms(6)));
    }
}
