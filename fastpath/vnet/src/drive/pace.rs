//! When packets of a source come: open loop, so that a slow back end delays none of those behind it.
use super::DriveError;
use crate::Ns;
use hopscope_openloop::{Arrivals, Pending, Schedule, SplitMix64};

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

pub(super) struct Pace {
    /// `None`: the next one comes at once.
    schedule: Option<Pending>,
    /// Until the source ends.
    left: u64,
}

impl Pace {
    /// # Errors
    /// A rate that no schedule keeps.
    pub(super) fn new(rate: Rate, count: Option<u64>) -> Result<Pace, DriveError> {
        let schedule = match rate {
            Rate::Saturate => None,
            Rate::At {
                pps,
                arrivals,
                seed,
            } => {
                let schedule = Schedule::new(arrivals, pps, 1e9, SplitMix64::new(seed));
                Some(Pending::new(schedule.ok_or(DriveError::Rate(pps))?))
            }
        };
        let left = count.unwrap_or(u64::MAX);
        Ok(Pace { schedule, left })
    }

    /// When the next one comes, or came; `None`: there is none.
    pub(super) fn next(&self, now: Ns) -> Option<Ns> {
        let due = self.schedule.as_ref().map_or(now, |s| Ns(s.due()));
        (self.left > 0).then_some(due)
    }

    pub(super) fn is_due(&self, now: Ns) -> bool {
        self.next(now).is_some_and(|at| at <= now)
    }

    pub(super) fn take(&mut self) {
        self.left -= 1;
        if let Some(schedule) = &mut self.schedule {
            schedule.take();
        }
    }

    /// The first one comes then.
    pub(super) fn start(&mut self, at: Ns) {
        if let Some(schedule) = &mut self.schedule {
            schedule.begin_at(at.0);
        }
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
        let mut pace = Pace::new(rate, Some(count)).unwrap();
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
        let even = times(Arrivals::Constant, 1_000);
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
        let mut pace = Pace::new(Rate::Saturate, Some(2)).unwrap();
        assert!(pace.is_due(Ns(9)));
        pace.take();
        assert_eq!(pace.next(Ns(9)), Some(Ns(9)));
        pace.take();
        assert!(pace.ended() && pace.next(Ns(9)).is_none());
    }
}
