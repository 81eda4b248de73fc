//! Durations, by how often they came: cells whose width is below a hundredth of their value, so that recording
//! is a few instructions and never allocates.
use crate::Ns;
use hdrhistogram::Histogram;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// 100 s: longer ones count as this in the cells; the longest is known exactly.
const LONGEST_NS: u64 = 100_000_000_000;
const DIGITS: u8 = 2;

#[derive(Debug, Clone)]
pub struct Times {
    cells: Histogram<u64>,
    sum: Ns,
    max: Ns,
}

impl Default for Times {
    fn default() -> Times {
        let cells = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS);
        Times {
            cells: cells.expect("bounds and digits that the crate documents as possible"),
            sum: Ns(0),
            max: Ns(0),
        }
    }
}

impl Times {
    pub fn record(&mut self, time: Ns) {
        self.cells.saturating_record(time.0);
        self.sum = self.sum + time;
        self.max = self.max.max(time);
    }

    pub fn add(&mut self, other: &Times) {
        // Of the same bounds, so that it fits.
        let _ = self.cells.add(&other.cells);
        self.sum = self.sum + other.sum;
        self.max = self.max.max(other.max);
    }

    pub fn clear(&mut self) {
        self.cells.clear();
        (self.sum, self.max) = (Ns(0), Ns(0));
    }

    pub fn count(&self) -> u64 {
        self.cells.len()
    }

    pub fn max(&self) -> Ns {
        self.max
    }

    /// The upper end of the cell that this part of all durations reaches; `None`: there are none.
    pub fn quantile(&self, part: f64) -> Option<Ns> {
        let found = self.cells.value_at_quantile(part);
        (self.count() > 0).then(|| Ns(found.min(self.max.0)))
    }
}

/// `cells`: each with its upper end in nanoseconds and its number; their numbers add up to `count`.
impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells = self.cells.iter_recorded();
        let cells = cells.map(|cell| {
            let value = cell.value_iterated_to();
            (self.cells.highest_equivalent(value), cell.count_at_value())
        });
        let cells: Vec<(u64, u64)> = cells.collect();
        let mut line = serializer.serialize_struct("Times", 8)?;
        line.serialize_field("count", &self.count())?;
        line.serialize_field("sum_ns", &self.sum)?;
        line.serialize_field("p50_ns", &self.quantile(0.5))?;
        line.serialize_field("p90_ns", &self.quantile(0.9))?;
        line.serialize_field("p99_ns", &self.quantile(0.99))?;
        line.serialize_field("p999_ns", &self.quantile(0.999))?;
        line.serialize_field("max_ns", &self.max)?;
        line.serialize_field("cells", &cells)?;
        line.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_in_a_cell_of_its_size() {
        let mut times = Times::default();
        assert_eq!(times.quantile(0.5), None);
        for us in 1..=1_000 {
            times.record(Ns::from_us(us));
        }
        times.record(Ns(u64::MAX / 4));
        assert_eq!((times.count(), times.max()), (1_001, Ns(u64::MAX / 4)));
        let p50 = times.quantile(0.5).expect("some").0;
        assert!((501_000..=506_000).contains(&p50), "{p50}");
        let mut twice = times.clone();
        twice.add(&times);
        assert_eq!(
            (twice.count(), twice.quantile(0.5)),
            (2_002, times.quantile(0.5))
        );
        twice.clear();
        assert_eq!((twice.count(), twice.max()), (0, Ns(0)));
    }
}
