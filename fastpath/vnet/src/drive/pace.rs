//! When packets of a source come: open loop, so that a slow back end delays none of those behind it.
use crate::Ns;
use hopscope_netio::random::SplitMix64;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As fast as they fit.
    Saturate,
    /// Packets a second, on average.
    At {
        pps: f64,
        arrivals: Arrivals,
        seed: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal gaps.
    Even,
    /// At exponentially distributed gaps.
    Poisson,
}

pub(super) struct Pace {
    /// When the next one comes; `None`: at once.
    next: Option<f64>,
    gap_ns: f64,
    random: Option<SplitMix64>,
    /// Until the source ends.
    left: u64,
}

impl Pace {
    pub(super) fn new(rate: Rate, count: Option<u64>) -> Pace {
        let left = count.unwrap_or(u64::MAX);
        match rate {
            Rate::Saturate => Pace {
                next: None,
                gap_ns: 0.0,
                random: None,
                left,
            },
            Rate::At {
                pps,
                arrivals,
                seed,
            } => Pace {
                next: Some(0.0),
                gap_ns: 1e9 / pps,
                random: (arrivals == Arrivals::Poisson).then(|| SplitMix64::new(seed)),
                left,
            },
        }
    }

    /// When the next one comes, or came; `None`: there is none.
    pub(super) fn next(&self, now: Ns) -> Option<Ns> {
        (self.left > 0).then(|| self.next.map_or(now, |at| Ns(at as u64)))
    }

    pub(super) fn is_due(&self, now: Ns) -> bool {
        self.next(now).is_some_and(|at| at <= now)
    }

    pub(super) fn take(&mut self) {
        self.left -= 1;
        let gaps = self.random.as_mut().map_or(1.0, |r| -r.next_unit().ln());
        self.next = self.next.map(|at| at + gaps * self.gap_ns);
    }

    /// The first one comes then.
    pub(super) fn start(&mut self, at: Ns) {
        self.next = self.next.map(|_| at.0 as f64);
    }

    pub(super) fn end(&mut self) {
        self.left = 0;
    }

    pub(super) fn ended(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, count: u64) -> Vec<u64> {
        let rate = Rate::At {
            pps: 1e6,
            arrivals,
            seed: 5,
        };
        let mut pace = Pace::new(rate, Some(count));
        pace.start(Ns(7));
        std::iter::from_fn(|| {
            let at = pace.next(Ns(0))?;
            pace.take();
            Some(at.0)
        })
        .collect()
    }

    #[test]
    fn the_rate_is_kept() {
        let even = times(Arrivals::Even, 1_000);
        assert_eq!((even[0], even[1], even[999]), (7, 1_007, 999_007));
        let poisson = times(Arrivals::Poisson, 100_001);
        let mean = (poisson[100_000] - 7) as f64 / 100_000.0;
        // Five standard errors.
        assert!(
            (mean / 1_000.0 - 1.0).abs() < 5.0 / 100_000f64.sqrt(),
            "{mean}"
        );
        assert_eq!(poisson, times(Arrivals::Poisson, 100_001), "seeded");
    }

    #[test]
    fn a_source_that_saturates_is_always_due() {
        let mut pace = Pace::new(Rate::Saturate, Some(2));
        assert!(pace.is_due(Ns(9)));
        pace.take();
        assert_eq!(pace.next(Ns(9)), Some(Ns(9)));
        pace.take();
        assert!(pace.ended() && pace.next(Ns(9)).is_none());
    }
}
