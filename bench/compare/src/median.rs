//! The exact interval of a median (Hollander, Wolfe, Chicken: Nonparametric Statistical Methods,
//! 3.6). It asks nothing of the noise but that a difference is as likely to be above the true
//! median as below. On shared machines one run in ten may take several times as long: a mean, and
//! rank sums too, would drown in that.

use serde::Serialize;
use std::fmt;

/// A median with the interval that holds the true one in at least `confidence` of all repetitions
/// of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// `None` when so few values allow no interval of this confidence (95 % takes six).
pub fn median(values: &[f64], confidence: f64) -> Option<Interval> {
    let outside = outside(values.len(), (1.0 - confidence) / 2.0)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    Some(Interval {
        estimate: (sorted[last / 2] + sorted[last.div_ceil(2)]) / 2.0,
        low: sorted[outside],
        high: sorted[last - outside],
    })
}

impl Interval {
    /// Of values whose logarithms these are.
    pub fn exp(self) -> Interval {
        Interval {
            estimate: self.estimate.exp(),
            low: self.low.exp(),
            high: self.high.exp(),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval {
            estimate,
            low,
            high,
        } = self;
        write!(f, "{estimate:.3} ({low:.3} .. {high:.3})")
    }
}

/// How many of `n` sorted values lie outside of the interval on each side: the largest number that
/// a fair coin, thrown `n` times, falls short of or meets with a probability of at most `tail`.
fn outside(n: usize, tail: f64) -> Option<usize> {
    let mut exactly = 0.5f64.powi(i32::try_from(n).ok()?);
    let mut at_most = 0.0;
    for heads in 0..n {
        at_most += exactly;
        if at_most > tail {
            return heads.checked_sub(1);
        }
        exactly *= (n - heads) as f64 / (heads + 1) as f64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Order statistics of the published tables (two-sided 5 %).
    #[test]
    fn intervals_are_those_of_the_tables() {
        let published = [
            (6, 0),
            (8, 0),
            (9, 1),
            (11, 1),
            (12, 2),
            (15, 3),
            (21, 5),
            (30, 9),
        ];
        for (n, wanted) in published {
            assert_eq!(outside(n, 0.025), Some(wanted), "n = {n}");
        }
        assert_eq!(outside(5, 0.025), None);
        assert_eq!(outside(0, 0.025), None);
    }

    #[test]
    fn one_wild_value_moves_nothing() {
        let values = [9.0, 1.0, 5.0, 3.0, 1e9, 7.0, 4.0, 6.0, 8.0];
        let m = median(&values, 0.95).unwrap();
        assert_eq!((m.estimate, m.low, m.high), (6.0, 3.0, 9.0));
    }
}
