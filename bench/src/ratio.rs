//! How many times as much, of what was measured in the same rounds.
use hopscope_compare::comparison::CONFIDENCE;
use hopscope_compare::median::{Interval, median};
use hopscope_compare::stats::Spread;
use serde_json::{Value, json};

/// In logarithms, so that twice and half are equally far from 1. Too few rounds have a median and no interval: its
/// ends are no numbers then. Pairs without a ratio, as of nothing, are left out.
pub(crate) fn ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Interval> {
    let logs: Vec<f64> = pairs
        .map(|(of, to)| (of / to).ln())
        .filter(|log| log.is_finite())
        .collect();
    let without = Interval {
        estimate: Spread::of(&logs)?.median,
        low: f64::NAN,
        high: f64::NAN,
    };
    Some(median(&logs, CONFIDENCE).unwrap_or(without).exp())
}

/// As far up as the interval reaches, where there is one.
pub(crate) fn reaches(ratio: Interval) -> f64 {
    if ratio.high.is_nan() {
        ratio.estimate
    } else {
        ratio.high
    }
}

pub(crate) fn estimate(ratio: Option<Interval>) -> Value {
    json!(ratio.map(|ratio| ratio.estimate))
}

pub(crate) fn interval(ratio: Option<Interval>) -> Value {
    let known = ratio.filter(|ratio| !ratio.low.is_nan());
    known.map_or(Value::Null, |ratio| json!([ratio.low, ratio.high]))
}

/// For people.
pub(crate) fn ratio_text(ratio: Option<Interval>) -> String {
    match ratio {
        Some(r) if r.low.is_nan() => format!("{:.2} (too few rounds for an interval)", r.estimate),
        Some(r) => format!("{:.2} ({:.2} .. {:.2})", r.estimate, r.low, r.high),
        None => "-".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_rounds_have_no_interval() {
        let few = ratio([(2.0, 1.0), (8.0, 1.0)].into_iter());
        assert!((few.unwrap().estimate - 4.0).abs() < 1e-9 && interval(few).is_null());
        assert_eq!(reaches(few.unwrap()), few.unwrap().estimate);
        assert!(ratio_text(few).contains("too few"));
        let many = ratio((0..7).map(|n| (f64::from(n + 1), 1.0)));
        assert_eq!(reaches(many.unwrap()).round(), 7.0);
        assert!(interval(many).is_array());
    }

    #[test]
    fn what_has_no_ratio_is_left_out() {
        let some = ratio([(2.0, 1.0), (1.0, 0.0), (0.0, 1.0)].into_iter());
        assert!((some.unwrap().estimate - 2.0).abs() < 1e-9);
        assert!(ratio([(1.0, 0.0)].into_iter()).is_none());
    }
}
