//! When packets come: bursts of one size at exponentially distributed gaps.
use super::BadSetup;
use crate::Ns;
use hopscope_netio::random::SplitMix64;

#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Load {
    /// Millions of packets a second, all bursts together.
    pub mpps: f64,
    /// Packets that come at the same instant.
    pub burst: u32,
}

impl Load {
    pub(super) fn check(self) -> Result<(), BadSetup> {
        if !(self.mpps > 0.0 && self.mpps <= 1_000.0) {
            return Err(BadSetup::Load(self.mpps));
        }
        match (1..=65_536).contains(&self.burst) {
            true => Ok(()),
            false => Err(BadSetup::Burst(self.burst)),
        }
    }
}

/// One instant for each of `packets` packets, in order; the last burst may be cut short.
pub(super) fn arrivals(load: Load, packets: u32, seed: u64) -> Vec<Ns> {
    let mut random = SplitMix64::new(seed);
    let gap_ns = f64::from(load.burst) * 1_000.0 / load.mpps;
    let mut at = 0.0;
    (0..packets)
        .map(|n| {
            if n % load.burst == 0 {
                at -= ln(random.next_unit()) * gap_ns;
            }
            Ns(at as u64)
        })
        .collect()
}

/// The natural logarithm of a normal number above 0. The C library's differs between machines in the last
/// bit; this is additions, multiplications and divisions, which IEEE 754 fixes. With x = m 2^e and m near
/// 1, ln m = 2 artanh((m-1)/(m+1)).
fn ln(x: f64) -> f64 {
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

    /// Mean of 100,000 exponential gaps: five standard errors.
    #[test]
    fn the_rate_is_kept() {
        let load = Load {
            mpps: 0.2,
            burst: 16,
        };
        let all = arrivals(load, 1_600_000, 7);
        let mean = all[1_599_999].0 as f64 / 100_000.0;
        assert!(
            (mean / 80_000.0 - 1.0).abs() < 5.0 / 100_000f64.sqrt(),
            "{mean}"
        );
        assert!(all.chunks(16).all(|burst| burst[0] == burst[15]));
    }
}
