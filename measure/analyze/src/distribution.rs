//! A bounded distribution of ticks.
use hdrhistogram::Histogram;

/// Values within 1 % (exact below 256 ticks), maximum exact. Negative values are counted, not
/// binned: they take their place below all others in every quantile.
#[derive(Debug, Clone)]
pub struct Distribution {
    bins: Histogram<u64>,
    negative: u64,
    max: i64,
}

/// A quantile, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// Nothing was recorded.
    Empty,
    Negative,
    Ticks(u64),
}

impl Default for Distribution {
    fn default() -> Self {
        Distribution {
            bins: Histogram::new(2).expect("2 digits is in the allowed 0..=5"),
            negative: 0,
            max: i64::MIN,
        }
    }
}

impl Distribution {
    #[inline]
    pub fn record(&mut self, ticks: i64) {
        self.max = self.max.max(ticks);
        match u64::try_from(ticks) {
            Ok(ticks) => {
                let done = self.bins.record(ticks);
                debug_assert!(done.is_ok(), "an auto-resizing histogram takes any value");
            }
            Err(_) => self.negative += 1,
        }
    }

    /// Adds all values of another distribution.
    pub fn add(&mut self, other: &Distribution) {
        let done = self.bins.add(&other.bins);
        debug_assert!(done.is_ok(), "an auto-resizing histogram takes any value");
        self.negative += other.negative;
        self.max = self.max.max(other.max);
    }

    /// Bins that hold something, smallest first: lowest and highest ticks, and how many. Negative
    /// values are in none.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.bins.iter_recorded().map(|bin| {
            let high = bin.value_iterated_to();
            let low = self.bins.lowest_equivalent(high);
            (low, high, bin.count_at_value())
        })
    }

    pub fn len(&self) -> u64 {
        self.bins.len() + self.negative
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values below zero.
    pub fn negative(&self) -> u64 {
        self.negative
    }

    pub fn max(&self) -> Quantile {
        match (self.is_empty(), u64::try_from(self.max)) {
            (true, _) => Quantile::Empty,
            (false, Ok(max)) => Quantile::Ticks(max),
            (false, Err(_)) => Quantile::Negative,
        }
    }

    /// The smallest recorded value that at least `parts` of 1,000 values do not exceed.
    pub fn quantile(&self, parts: u64) -> Quantile {
        if self.is_empty() {
            return Quantile::Empty;
        }
        let rank = (u128::from(self.len()) * u128::from(parts))
            .div_ceil(1000)
            .max(1) as u64;
        if rank <= self.negative {
            return Quantile::Negative;
        }
        let within = (rank - self.negative) as f64 / self.bins.len() as f64;
        let ticks = self.bins.value_at_quantile(within);
        Quantile::Ticks(ticks.min(self.max.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_negatives_below_everything() {
        let mut d = Distribution::default();
        assert_eq!(d.quantile(500), Quantile::Empty);
        for v in [-5, -1, 100, 200] {
            d.record(v);
        }
        assert_eq!(d.quantile(500), Quantile::Negative);
        assert_eq!(d.quantile(750), Quantile::Ticks(100));
        assert_eq!(d.quantile(999), Quantile::Ticks(200));
        assert_eq!((d.len(), d.negative()), (4, 2));
    }

    #[test]
    fn large_values_are_within_one_percent_and_max_is_exact() {
        let mut d = Distribution::default();
        for v in 1..=1_000_000i64 {
            d.record(v);
        }
        let Quantile::Ticks(p50) = d.quantile(500) else {
            panic!("a thousand thousand values have a median")
        };
        assert!((495_000..=505_000).contains(&p50), "{p50}");
        assert_eq!(d.max(), Quantile::Ticks(1_000_000));
        d.record(i64::MAX);
        assert_eq!(d.max(), Quantile::Ticks(i64::MAX as u64));
    }
}
