//! When packets or requests are due: a sequence of times that nothing on the way can change. The sender may
//! fall behind it; the times stay.
use crate::logarithm;
use crate::random::SplitMix64;

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// The same gap between any two.
    Constant,
    /// Independent, exponentially distributed gaps: requests of many independent users.
    Poisson,
    /// This many at the same time, bursts evenly apart.
    Burst(u32),
    /// Independent arrivals at exponentially distributed times, each `every`th of them a burst of
    /// `size` packets at once, the others a packet each.
    PoissonBursts { size: u32, every: u32 },
}

/// Times since a start, never falling, in units of the caller's clock (ns, or ticks).
///
/// The mean rate rises linearly from zero during the ramp; then it stays. That is a change of
/// clock: gaps are drawn for the full rate and stretched, so that a Poisson process stays one.
#[derive(Debug, Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    random: SplitMix64,
    /// Natural logarithm.
    ln: fn(f64) -> f64,
    /// Mean gap at the full rate.
    gap: f64,
    ramp: f64,
    /// Of the first time.
    offset: f64,
    /// Number of the next packet, and for Poisson the time so far at the full rate.
    next: u64,
    passed: f64,
    /// Packets of the present burst that are still to come.
    of_burst: u32,
    /// Arrivals since the last burst.
    single: u32,
}

impl Schedule {
    /// `rate` packets a second, of a clock with `second` units in a second. Constant arrivals begin at 0, Poisson ones a
    /// gap later. `None` for a rate that is not above 0 and at most one packet in each unit.
    pub fn new(arrivals: Arrivals, rate: f64, second: f64, random: SplitMix64) -> Option<Schedule> {
        (rate > 0.0 && rate <= second).then(|| Schedule {
            arrivals,
            random,
            ln: f64::ln,
            gap: second / rate,
            ramp: 0.0,
            offset: 0.0,
            next: 0,
            passed: 0.0,
            of_burst: 0,
            single: 0,
        })
    }

    /// The rate rises for this long.
    #[must_use]
    pub fn with_ramp(self, ramp: f64) -> Schedule {
        Schedule { ramp, ..self }
    }

    /// The same times on every machine, to the bit. Draws take longer.
    #[must_use]
    pub fn portable(self) -> Schedule {
        let ln = logarithm::ln;
        Schedule { ln, ..self }
    }

    /// All times that are still to come are this much later.
    pub fn shift(&mut self, by: f64) {
        self.offset += by;
    }

    /// Due time of the next packet.
    #[inline]
    pub fn next_due(&mut self) -> u64 {
        // From the number, not by adding up: no error builds up over a long run.
        let at_full_rate = match self.arrivals {
            Arrivals::Constant => self.next as f64 * self.gap,
            Arrivals::Burst(size) => {
                let burst = self.next / u64::from(size);
                (burst * u64::from(size)) as f64 * self.gap
            }
            Arrivals::Poisson => {
                self.passed += self.exponential() * self.gap;
                self.passed
            }
            Arrivals::PoissonBursts { size, every } => {
                self.burst_or_single(size, every);
                self.passed
            }
        };
        self.next += 1;
        (self.stretched(at_full_rate) + self.offset) as u64
    }

    /// With mean 1.
    fn exponential(&mut self) -> f64 {
        -(self.ln)(self.random.next_unit())
    }

    /// The mean rate is that of packets: arrivals come as much more seldom as bursts bring more.
    fn burst_or_single(&mut self, size: u32, every: u32) {
        if self.of_burst > 0 {
            self.of_burst -= 1;
            return;
        }
        let packets_per_arrival = (f64::from(every - 1) + f64::from(size)) / f64::from(every);
        self.passed += self.exponential() * self.gap * packets_per_arrival;
        self.single += 1;
        if self.single == every {
            (self.single, self.of_burst) = (0, size - 1);
        }
    }

    /// With a rate of t/ramp, t²/(2·ramp) of full-rate time has passed at t.
    fn stretched(&self, full: f64) -> f64 {
        if full * 2.0 < self.ramp {
            (2.0 * self.ramp * full).sqrt()
        } else {
            full + self.ramp / 2.0
        }
    }

    /// Packets that are due on average until `at`.
    pub fn expected_until(&self, at: u64) -> f64 {
        let t = at as f64;
        let full = if t < self.ramp {
            t * t / (2.0 * self.ramp)
        } else {
            t - self.ramp / 2.0
        };
        full / self.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::seeded;

    const TICKS: u64 = 2_600_000_000;

    fn schedule(arrivals: Arrivals, rate: f64, ramp_s: u64, seed: u64) -> Schedule {
        let random = seeded(seed, "arrivals");
        let schedule = Schedule::new(arrivals, rate, TICKS as f64, random).expect("a rate");
        schedule.with_ramp((ramp_s * TICKS) as f64)
    }

    fn times(arrivals: Arrivals, rate: f64, ramp_s: u64, seed: u64, count: usize) -> Vec<u64> {
        let mut schedule = schedule(arrivals, rate, ramp_s, seed);
        (0..count).map(|_| schedule.next_due()).collect()
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| times(Arrivals::Poisson, 1e5, 0, seed, 10);
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn impossible_rates() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e9] {
            let random = SplitMix64::new(1);
            let schedule = Schedule::new(Arrivals::Constant, rate, 1e9, random);
            assert!(schedule.is_none(), "{rate}");
        }
    }

    /// Mean of 100,000 exponential gaps between bursts: five standard errors.
    #[test]
    fn portable_bursts_keep_the_rate() {
        let bursts = Arrivals::PoissonBursts { size: 16, every: 1 };
        let mut portable = schedule(bursts, 1e5, 0, 7).portable();
        let all: Vec<u64> = (0..1_600_000).map(|_| portable.next_due()).collect();
        let mean = all[1_599_999] as f64 / 100_000.0;
        let expected = 16.0 * TICKS as f64 / 1e5;
        assert!(
            (mean / expected - 1.0).abs() < 5.0 / 100_000f64.sqrt(),
            "{mean}"
        );
        assert!(all.chunks(16).all(|burst| burst[0] == burst[15]));
    }

    #[test]
    fn constant_gaps_do_not_drift() {
        let times = times(Arrivals::Constant, 3.0, 0, 1, 3_000_001);
        assert_eq!(times[3_000_000], 1_000_000 * TICKS);
        let gap = TICKS / 3;
        assert!(times.windows(2).all(|w| (w[1] - w[0]).abs_diff(gap) <= 1));
    }

    #[test]
    fn bursts_leave_together_at_the_mean_rate() {
        let times = times(Arrivals::Burst(4), 1000.0, 0, 1, 4001);
        for burst in times.chunks_exact(4) {
            assert!(burst.iter().all(|at| *at == burst[0]));
        }
        assert_eq!(times[4000], 4 * TICKS);
    }

    #[test]
    fn bursts_among_poisson_arrivals_keep_the_mean_rate() {
        let bursty = Arrivals::PoissonBursts {
            size: 50,
            every: 100,
        };
        // 1,000 bursts and 99,000 single packets.
        let times = times(bursty, 1e5, 0, 3, 149_000);
        let bursts = times.chunk_by(|a, b| a == b).filter(|at| at.len() >= 50);
        assert_eq!(bursts.count(), 1000);
        let seconds = *times.last().expect("some") as f64 / TICKS as f64;
        assert!((seconds - 1.49).abs() < 0.02, "{seconds}");
    }

    /// Kolmogorov–Smirnov against the exponential distribution: 1.63/√n is passed by 99 % of true
    /// ones, and the seeds are fixed.
    #[test]
    fn poisson_gaps_are_exponential_and_independent() {
        for seed in 1..=3 {
            let times = times(Arrivals::Poisson, 1e5, 0, seed, 20_001);
            let mean = TICKS as f64 / 1e5;
            let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
            let mut sorted = gaps.clone();
            sorted.sort_by(f64::total_cmp);
            let n = sorted.len() as f64;
            let distance = sorted.iter().enumerate().map(|(i, gap)| {
                let expected = 1.0 - (-gap / mean).exp();
                (expected - i as f64 / n)
                    .abs()
                    .max(((i + 1) as f64 / n - expected).abs())
            });
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < 1.63 / n.sqrt(), "seed {seed}: {distance}");

            // Neighbours do not know of each other: |r| < 2.58/√n for 99 %.
            let pairs = gaps.windows(2).map(|w| (w[0] - mean) * (w[1] - mean));
            let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>();
            let correlation = pairs.sum::<f64>() / variance;
            assert!(
                correlation.abs() < 2.58 / n.sqrt(),
                "seed {seed}: {correlation}"
            );
        }
    }

    /// Chi-square of counts in windows of ten expected arrivals, against the Poisson distribution.
    #[test]
    fn poisson_counts_in_windows_are_poisson() {
        let times = times(Arrivals::Poisson, 1e5, 0, 7, 100_000);
        let window = 10.0 * TICKS as f64 / 1e5;
        let windows = (*times.last().expect("some") as f64 / window) as usize;
        let mut counts = vec![0usize; windows + 1];
        times
            .iter()
            .for_each(|at| counts[(*at as f64 / window) as usize] += 1);
        counts.truncate(windows);
        // 0–5, 6, … 14, 15 and more: eleven classes, each expected often.
        let class = |count: usize| count.clamp(5, 15) - 5;
        let mut observed = [0.0; 11];
        counts
            .iter()
            .for_each(|count| observed[class(*count)] += 1.0);
        let mut expected = [0.0; 11];
        let mut probability = (-10.0f64).exp();
        for count in 0..60 {
            expected[class(count)] += probability * windows as f64;
            probability *= 10.0 / (count + 1) as f64;
        }
        let chi: f64 = observed
            .iter()
            .zip(expected)
            .map(|(o, e): (&f64, f64)| (o - e).powi(2) / e)
            .sum();
        // 10 degrees of freedom, 99 %.
        assert!(chi < 23.2, "{chi}: {observed:?} {expected:?}");
    }

    #[test]
    fn ramp_rises_linearly_to_the_rate() {
        let times = times(Arrivals::Constant, 1000.0, 10, 1, 8000);
        let until = |s: u64| times.iter().filter(|at| **at < s * TICKS).count();
        // 1000 · t²/20 until 10 s, then 1000 a second.
        assert_eq!([until(2), until(4), until(10)], [200, 800, 5000]);
        assert_eq!(until(12) - until(11), 1000);
        let schedule = schedule(Arrivals::Constant, 1000.0, 10, 1);
        assert_eq!(schedule.expected_until(4 * TICKS).round(), 800.0);
        assert_eq!(schedule.expected_until(12 * TICKS).round(), 7000.0);
    }
}
