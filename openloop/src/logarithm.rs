//! A logarithm that is the same on every machine.

/// The natural logarithm of a normal number above 0. The C library's differs between machines in the last
/// bit; this is additions, multiplications and divisions, which IEEE 754 fixes. With x = m 2^e and m near
/// 1, ln m = 2 artanh((m-1)/(m+1)).
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1_023;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1_023 << 52));
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1;
    }
    let t = (m - 1.0) / (m + 1.0);
    let square = t * t;
    // |t| is below 0.172: the 12th term is below 2^-60 of the first.
    let series = (0..12)
        .rev()
        .fold(0.0, |sum, n| sum * square + 1.0 / (2 * n + 1) as f64);
    2.0 * t * series + exponent as f64 * std::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix64;

    #[test]
    fn the_logarithm_is_one() {
        let mut random = SplitMix64::new(1);
        for _ in 0..100_000 {
            let x = random.next_unit();
            assert!(
                (ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs().max(1.0),
                "{x}"
            );
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
