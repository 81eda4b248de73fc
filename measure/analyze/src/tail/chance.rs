//! How likely chance does it. Upper bounds (Chernoff), so that a doubt is never hidden; natural
//! logarithms, since the numbers get small.

/// ln of a bound on P(X ≥ count) for a Poisson number with this mean.
pub(super) fn poisson_at_least(count: u64, mean: f64) -> f64 {
    let k = count as f64;
    if k <= mean || mean <= 0.0 && count == 0 {
        return 0.0;
    }
    if mean <= 0.0 {
        return f64::NEG_INFINITY;
    }
    k - mean - k * (k / mean).ln()
}

/// ln of a bound on P(X ≥ hits) of so many tries that each hit with this probability.
pub(super) fn binomial_at_least(hits: u64, tries: u64, probability: f64) -> f64 {
    if tries == 0 || hits == 0 {
        return 0.0;
    }
    let (p, share) = (probability.clamp(0.0, 1.0), hits as f64 / tries as f64);
    if share <= p {
        return 0.0;
    }
    if p == 0.0 {
        return f64::NEG_INFINITY;
    }
    let miss = match share >= 1.0 {
        true => 0.0,
        false => (1.0 - share) * ((1.0 - share) / (1.0 - p)).ln(),
    };
    -(tries as f64) * (share * (share / p).ln() + miss)
}

/// ln of a bound on P(Z ≥ z) for a standard normal Z.
pub(super) fn normal_at_least(z: f64) -> f64 {
    match z > 0.0 {
        true => -z * z / 2.0 - std::f64::consts::LN_2,
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_lie_above_the_truth_and_not_far() {
        // P(Poisson(2) >= 10) = 4.65e-5; P(Bin(10, 0.1) >= 5) = 1.63e-3; P(Z >= 3) = 1.35e-3.
        for (bound, truth) in [
            (poisson_at_least(10, 2.0), 4.65e-5f64),
            (binomial_at_least(5, 10, 0.1), 1.63e-3),
            (normal_at_least(3.0), 1.35e-3),
        ] {
            assert!(bound >= truth.ln(), "{bound} {}", truth.ln());
            assert!(bound < truth.ln() + 3.0, "{bound} {}", truth.ln());
        }
    }

    #[test]
    fn what_is_expected_is_no_surprise() {
        assert_eq!(poisson_at_least(3, 3.0), 0.0);
        assert_eq!(binomial_at_least(1, 10, 0.1), 0.0);
        assert_eq!(binomial_at_least(0, 0, 0.5), 0.0);
        assert_eq!(normal_at_least(-1.0), 0.0);
        assert_eq!(poisson_at_least(1, 0.0), f64::NEG_INFINITY);
        assert_eq!(binomial_at_least(4, 4, 0.5), 4.0 * 0.5f64.ln());
    }
}
