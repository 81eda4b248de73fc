//! Medians with their spread, and the answer "no difference beyond noise".
use serde::Serialize;

/// Of repeated measurements: the median, and how far apart they lie (10th to 90th percentile,
/// nearest rank).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub p10: f64,
    pub p90: f64,
    pub min: f64,
    pub max: f64,
    pub n: usize,
}

impl Spread {
    /// `None` of nothing.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let rank = |q: f64| {
            sorted
                .get(((n as f64 * q).ceil() as usize).clamp(1, n.max(1)) - 1)
                .copied()
        };
        let middle = match n % 2 {
            1 => sorted.get(n / 2).copied()?,
            _ => (sorted.get(n.checked_sub(2)? / 2)? + sorted.get(n / 2)?) / 2.0,
        };
        Some(Spread {
            median: middle,
            p10: rank(0.1)?,
            p90: rank(0.9)?,
            min: *sorted.first()?,
            max: *sorted.last()?,
            n,
        })
    }
}

/// A difference measured in pairs, beside what the same procedure says of the program against
/// itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Measured minus bare.
    pub net: Spread,
    /// Bare minus bare, same number of repetitions: 0 but for noise.
    pub control: Spread,
    /// True when `net` lies within what the control itself shows.
    pub within_noise: bool,
}

impl Difference {
    /// `pairs` are (bare before, measured, bare after).
    pub fn of(pairs: &[(f64, f64, f64)]) -> Option<Difference> {
        let net: Vec<f64> = pairs
            .iter()
            .map(|(before, measured, after)| measured - (before + after) / 2.0)
            .collect();
        let control: Vec<f64> = pairs
            .iter()
            .map(|(before, _, after)| after - before)
            .collect();
        let (net, control) = (Spread::of(&net)?, Spread::of(&control)?);
        let noise = control.p10.abs().max(control.p90.abs());
        Some(Difference {
            net,
            control,
            within_noise: net.median.abs() <= noise,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_even_and_odd_counts() {
        let s = Spread::of(&[5.0, 1.0, 3.0]).unwrap();
        assert_eq!((s.median, s.min, s.max, s.n), (3.0, 1.0, 5.0, 3));
        assert_eq!(Spread::of(&[1.0, 2.0, 3.0, 10.0]).unwrap().median, 2.5);
        let tens: Vec<f64> = (1..=10).map(f64::from).collect();
        let s = Spread::of(&tens).unwrap();
        assert_eq!((s.p10, s.p90), (1.0, 9.0));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn a_difference_smaller_than_the_control_is_noise() {
        let noisy = [(10.0, 11.0, 13.0), (13.0, 12.0, 10.0), (10.0, 13.0, 12.0)];
        assert!(Difference::of(&noisy).unwrap().within_noise);
        let clear = [(10.0, 60.0, 10.5), (10.5, 61.0, 10.0), (10.0, 60.5, 10.0)];
        let d = Difference::of(&clear).unwrap();
        assert!(!d.within_noise);
        assert_eq!(d.net.median, 50.5);
    }
}
