//! When requests are due. The schedule knows nothing of what happens to them: that is what keeps
//! a slow server from being asked less, and its slowness from being missed.
use crate::random::SplitMix64;

/// The time between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Always the same.
    Constant,
    /// Exponentially distributed: requests of many independent users.
    Poisson,
}

/// Intended times, in nanoseconds from the start, for ever. The n-th is computed from the sum in
/// floating point (53 bits: below a nanosecond of error for a hundred days), so errors do not add up.
#[derive(Debug, Clone)]
pub struct Schedule {
    gap_ns: f64,
    arrivals: Arrivals,
    random: SplitMix64,
    next_ns: f64,
}

/// What a rate must be to be kept at all.
pub const MAX_RATE_HZ: f64 = 1e9;

impl Schedule {
    /// `rate_hz` requests a second; the first is due `offset_ns` after the start, with Poisson
    /// arrivals a random gap later. `None` for a rate that is not above 0 and at most
    /// [`MAX_RATE_HZ`], one request in each nanosecond.
    pub fn new(rate_hz: f64, arrivals: Arrivals, seed: u64, offset_ns: f64) -> Option<Schedule> {
        if !(rate_hz > 0.0 && rate_hz <= MAX_RATE_HZ) {
            return None;
        }
        let mut schedule = Schedule {
            gap_ns: 1e9 / rate_hz,
            arrivals,
            random: SplitMix64::new(seed),
            next_ns: offset_ns,
        };
        if arrivals == Arrivals::Poisson {
            schedule.next_ns += schedule.gap();
        }
        Some(schedule)
    }

    /// The time of the next request; it stays until [`Schedule::advance`].
    pub fn due_ns(&self) -> u64 {
        self.next_ns as u64
    }

    pub fn advance(&mut self) {
        self.next_ns += self.gap();
    }

    fn gap(&mut self) -> f64 {
        match self.arrivals {
            Arrivals::Constant => self.gap_ns,
            Arrivals::Poisson => -self.random.next_unit().ln() * self.gap_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, seed: u64, n: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(10_000.0, arrivals, seed, 0.0).expect("a fair rate");
        let mut next = || {
            let due = schedule.due_ns();
            schedule.advance();
            due
        };
        (0..n).map(|_| next()).collect()
    }

    #[test]
    fn constant_gaps() {
        assert_eq!(
            times(Arrivals::Constant, 1, 4),
            [0, 100_000, 200_000, 300_000]
        );
    }

    /// Gaps of a Poisson process are exponential: mean = deviation = 1/rate, and 1 - 1/e of them
    /// are below the mean. Bounds are five standard errors of 100,000 gaps, for a fixed seed.
    #[test]
    fn poisson_gaps_are_exponential() {
        let times = times(Arrivals::Poisson, 42, 100_001);
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        let deviation = (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n).sqrt();
        let below = gaps.iter().filter(|g| **g < 1e5).count() as f64 / n;
        assert!((mean / 1e5 - 1.0).abs() < 5.0 / n.sqrt(), "{mean}");
        assert!(
            (deviation / 1e5 - 1.0).abs() < 10.0 / n.sqrt(),
            "{deviation}"
        );
        assert!(
            (below - 0.632_12).abs() < 5.0 * 0.4822 / n.sqrt(),
            "{below}"
        );
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| times(Arrivals::Poisson, seed, 10);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn impossible_rates() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
            assert!(
                Schedule::new(rate, Arrivals::Constant, 0, 0.0).is_none(),
                "{rate}"
            );
        }
    }
}
