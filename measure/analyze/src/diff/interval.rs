//! Figures with their intervals, and the ratio of two of them.
use super::student;

/// Ends may be infinite, or 0 where nothing bounds them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// A figure and what it varies by, from the blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Varying {
    pub(super) value: f64,
    /// Standard error.
    pub(super) error: f64,
    pub(super) freedom: f64,
}

impl Varying {
    pub(super) fn interval(&self, level: f64) -> Estimate {
        let half = student::two_sided(level, self.freedom) * self.error;
        Estimate {
            value: self.value,
            low: (self.value - half).max(0.0),
            high: self.value + half,
        }
    }
}

/// B against A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    pub a: Estimate,
    pub b: Estimate,
    /// B over A.
    pub ratio: Estimate,
}

impl Shift {
    pub(super) fn of(a: Estimate, b: Estimate) -> Shift {
        let d = (b.value / a.value).ln();
        let down = (b.value / b.low).ln().hypot((a.high / a.value).ln());
        let up = (b.high / b.value).ln().hypot((a.value / a.low).ln());
        let ratio = match d.is_finite() {
            true => Estimate {
                value: d.exp(),
                low: (d - down).exp(),
                high: (d + up).exp(),
            },
            // One of them is 0: no ratio says how much that is.
            false => Estimate {
                value: f64::NAN,
                low: 0.0,
                high: f64::INFINITY,
            },
        };
        Shift { a, b, ratio }
    }

    /// What B takes more than A, as a part of A; NaN when A or B is 0.
    pub fn part(&self) -> f64 {
        self.ratio.value - 1.0
    }

    pub fn is_beyond(&self, floor: f64) -> bool {
        self.ratio.low > 1.0 + floor || self.ratio.high < 1.0 / (1.0 + floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, low, high }
    }

    #[test]
    fn a_ratio_is_as_wide_as_both() {
        let exact = estimate(100.0, 100.0, 100.0);
        let wide = estimate(120.0, 110.0, 140.0);
        let s = Shift::of(exact, wide);
        assert!((s.ratio.low - 1.1).abs() < 1e-9 && (s.ratio.high - 1.4).abs() < 1e-9);
        assert!(s.is_beyond(0.05) && !s.is_beyond(0.1) && (s.part() - 0.2).abs() < 1e-9);
        let back = Shift::of(wide, exact);
        assert!(back.is_beyond(0.05) && back.part() < 0.0);
        assert!(Shift::of(wide, wide).ratio.low < 1.0);
    }

    #[test]
    fn what_is_not_bounded_never_differs() {
        let known = estimate(100.0, 99.0, 101.0);
        let open = estimate(200.0, 90.0, f64::INFINITY);
        let s = Shift::of(known, open);
        assert!(!s.is_beyond(0.0), "B may be anything above: {s:?}");
        let above = Shift::of(known, estimate(200.0, 150.0, f64::INFINITY));
        assert!(
            above.is_beyond(0.3) && above.part() > 0.0,
            "but no less than 150"
        );
        let zero = Shift::of(estimate(0.0, 0.0, 0.0), open);
        assert!(!zero.is_beyond(0.0) && zero.part().is_nan());
        let both = estimate(0.0, 0.0, 0.0);
        assert!(!Shift::of(both, both).is_beyond(0.0));
    }
}
