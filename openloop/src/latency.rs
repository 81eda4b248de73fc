//! A distribution of latencies in nanoseconds that merges without loss.
use hdrhistogram::Histogram;
use serde::Serialize;

mod output;
pub use output::{LogWriter, OutputError, percentile_table};

/// Counts per value, three significant digits (0.1 %), minimum and maximum exact. Any value fits:
/// the table grows. Two of them merge exactly, whatever they hold: the same values recorded into
/// one give the same counts.
#[derive(Debug, Clone)]
pub struct Latency {
    bins: Histogram<u64>,
    min_ns: u64,
    max_ns: u64,
}

/// What is said of a distribution; never a mean alone. All `None` where nothing was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    pub count: u64,
    pub min_ns: Option<u64>,
    pub mean_ns: Option<u64>,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p99_9_ns: Option<u64>,
    pub max_ns: Option<u64>,
}

impl Default for Latency {
    fn default() -> Self {
        // Up to a second without growing: growing copies the table in the middle of a measurement.
        let mut bins = Histogram::new_with_bounds(1, 1_000_000_000, 3)
            .expect("1 < 2 * 1 <= high, and 3 digits is in the allowed 0..=5");
        bins.auto(true);
        Latency {
            bins,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl Latency {
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// The same value `n` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        let done = self.bins.record_n(ns, n);
        debug_assert!(done.is_ok(), "a growing histogram takes any value");
    }

    /// Adds everything another distribution holds.
    pub fn merge(&mut self, other: &Latency) {
        let done = self.bins.add(&other.bins);
        debug_assert!(done.is_ok(), "a growing histogram takes any value");
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub fn count(&self) -> u64 {
        self.bins.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    /// The exact largest value; `None` where nothing was recorded.
    pub fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max_ns)
    }

    /// The value that `quantile` (0…1) of all values do not exceed, never above the exact maximum.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        let value = || self.bins.value_at_quantile(quantile);
        (!self.is_empty()).then(|| value().clamp(self.min_ns, self.max_ns))
    }

    pub fn percentiles(&self) -> Percentiles {
        Percentiles {
            count: self.count(),
            min_ns: (!self.is_empty()).then_some(self.min_ns),
            mean_ns: (!self.is_empty()).then(|| self.bins.mean() as u64),
            p50_ns: self.quantile_ns(0.5),
            p90_ns: self.quantile_ns(0.9),
            p99_ns: self.quantile_ns(0.99),
            p99_9_ns: self.quantile_ns(0.999),
            max_ns: self.max_ns(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(latency: &Latency) -> Vec<(u64, u64)> {
        let bins = latency.bins.iter_recorded();
        bins.map(|b| (b.value_iterated_to(), b.count_at_value()))
            .collect()
    }

    proptest! {
        #[test]
        fn merging_parts_equals_recording_all(
            values in proptest::collection::vec((0u64..1 << 40, 0usize..4), 0..400)
        ) {
            let mut whole = Latency::default();
            let mut parts = vec![Latency::default(); 4];
            for (value, part) in &values {
                whole.record(*value);
                parts[*part].record(*value);
            }
            let mut merged = Latency::default();
            for part in &parts {
                merged.merge(part);
            }
            prop_assert_eq!(counts(&whole), counts(&merged));
            prop_assert_eq!(whole.percentiles(), merged.percentiles());
        }

        #[test]
        fn quantiles_are_within_a_thousandth_of_the_sorted_values(
            mut values in proptest::collection::vec(1u64..1 << 36, 1..300)
        ) {
            let mut latency = Latency::default();
            values.iter().for_each(|value| latency.record(*value));
            values.sort_unstable();
            for quantile in [0.5, 0.9, 0.99, 0.999] {
                let rank = ((values.len() as f64 * quantile).ceil() as usize).max(1);
                let (exact, said) = (values[rank - 1], latency.quantile_ns(quantile));
                let said = said.expect("not empty");
                prop_assert!(said.abs_diff(exact) <= exact / 1000 + 1, "{said} for {exact}");
            }
        }
    }

    #[test]
    fn nothing_recorded_gives_no_figures() {
        let percentiles = Latency::default().percentiles();
        assert_eq!((percentiles.count, percentiles.p50_ns), (0, None));
        assert_eq!(percentiles.max_ns, None);
    }

    #[test]
    fn any_value_fits() {
        let mut latency = Latency::default();
        latency.record(0);
        latency.record(u64::MAX / 4);
        assert_eq!(latency.max_ns(), Some(u64::MAX / 4));
        assert_eq!(latency.percentiles().min_ns, Some(0));
        assert_eq!(latency.count(), 2);
    }
}
