//! All calls of one row of one recording: the first pass.
use super::interval::{Estimate, Varying};
use super::student;
use hdrhistogram::Histogram;

/// Tenths of a nanosecond, within 1 %; exact below 25.6 ns.
#[derive(Debug, Clone)]
pub struct Spread {
    bins: Histogram<u64>,
    negative: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Spread {
            bins: Histogram::new(2).expect("2 digits is in the allowed 0..=5"),
            negative: 0,
        }
    }
}

/// For each value, the share of calls below it plus half of those equal to it.
pub(super) struct Ranks {
    /// Highest value of each bin, and calls below the bin, and in it.
    bins: Vec<(u64, u64, u64)>,
    n: u64,
}

impl Spread {
    /// Below zero counts as 0.
    pub fn add(&mut self, tenths_ns: i64) {
        self.negative += u64::from(tenths_ns < 0);
        let done = self.bins.record(tenths_ns.max(0) as u64);
        debug_assert!(done.is_ok(), "an auto-resizing histogram takes any value");
    }

    pub fn n(&self) -> u64 {
        self.bins.len()
    }

    pub fn negative(&self) -> u64 {
        self.negative
    }

    /// The value that `parts` of 1,000 calls do not exceed.
    pub fn quantile(&self, parts: u64) -> u64 {
        self.bins.value_at_quantile(parts as f64 / 1000.0)
    }

    /// Ends of the interval by the shares at the ends of the share's own.
    pub(super) fn interval(&self, parts: u64, share: Varying, level: f64) -> Estimate {
        let half = student::two_sided(level, share.freedom) * share.error;
        let at = |share: f64| self.bins.value_at_quantile(share) as f64;
        let wanted = parts as f64 / 1000.0;
        // A share that no call can reach bounds nothing.
        let (low, high) = (wanted - half, wanted + half);
        let last = 1.0 - 0.5 / self.n().max(1) as f64;
        Estimate {
            value: at(wanted),
            low: if low > 0.0 { at(low) } else { 0.0 },
            high: if high < last { at(high) } else { f64::INFINITY },
        }
    }

    pub(super) fn ranks(&self) -> Ranks {
        let mut below = 0;
        let bins = self.bins.iter_recorded().map(|bin| {
            let count = bin.count_since_last_iteration();
            below += count;
            let highest = self.bins.highest_equivalent(bin.value_iterated_to());
            (highest, below - count, count)
        });
        Ranks {
            bins: bins.collect(),
            n: self.n(),
        }
    }
}

impl Ranks {
    pub(super) fn of(&self, value: u64) -> f64 {
        let at = self
            .bins
            .partition_point(|(highest, _, _)| *highest < value);
        let n = self.n.max(1) as f64;
        match self.bins.get(at) {
            None => 1.0,
            Some((highest, below, count)) => {
                let first = match at {
                    0 => 0,
                    _ => self.bins[at - 1].0 + 1,
                };
                // Between two bins that have calls lies nothing of this side.
                let within = value >= first && is_in_bin(value, *highest);
                let half = if within { *count as f64 / 2.0 } else { 0.0 };
                (*below as f64 + half) / n
            }
        }
    }
}

/// Bins are narrower than one part in 128, and one wide below 256.
fn is_in_bin(value: u64, highest: u64) -> bool {
    let width = match highest {
        0..256 => 1,
        large => 1 << (large.ilog2() - 7),
    };
    value / width == highest / width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_sorting() {
        let mut spread = Spread::default();
        let values = [3i64, 3, 7, 1_000, 1_001, 50_000];
        values.iter().for_each(|v| spread.add(*v));
        let ranks = spread.ranks();
        let by_sorting = |x: u64| {
            let side = |v: &i64| spread.bins.lowest_equivalent(*v as u64);
            let x = spread.bins.lowest_equivalent(x);
            let below = values.iter().filter(|v| side(v) < x).count() as f64;
            let equal = values.iter().filter(|v| side(v) == x).count() as f64;
            (below + equal / 2.0) / 6.0
        };
        for x in [
            0, 3, 5, 7, 8, 999, 1_000, 1_001, 1_500, 49_900, 50_000, 60_000,
        ] {
            assert_eq!(ranks.of(x), by_sorting(x), "{x}");
        }
    }
}
