//! Taking the probes' own cost out of what they measured.
//!
//! Let `b` be what an empty body reads between its own stamps (bias), `P` what one measured call
//! adds to its caller (pair), `T` the time that the unmeasured program would take. The stamps of
//! a call with `n` measured direct callees and `D` measured descendants enclose its own bias and
//! the whole pair of each descendant:
//!
//! ```text
//! raw      = T + b + D·P                                     so  T      = raw − b − D·P
//! raw_self = raw − Σ raw_c,  raw_c = T_c + b + D_c·P,  D = n + Σ D_c
//!          = (T − Σ T_c) + b − n·b + (D − Σ D_c)·P
//!          = T_self + b + n·(P − b)                          so  T_self = raw_self − b − n·(P − b)
//! ```
//!
//! Both are linear, so sums are corrected from sums of `b`'s and `P`'s coefficients. A callee that
//! never reached its exit probe (unwound, escaped) cost its caller an entry probe that this does
//! not take out: half a pair each, and the balance says how many there were.
use hopscope_event::ProbeCost;

#[derive(Debug, Clone, Copy)]
pub struct Correction {
    bias: [i128; 3],
    pair: [i128; 3],
}

/// Corrected ticks: with the median cost, and the range that the lowest and highest cost span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Corrected {
    pub low: i128,
    pub median: i128,
    pub high: i128,
}

impl Correction {
    pub fn new(cost: ProbeCost) -> Correction {
        Correction {
            bias: cost.bias_ticks.map(i128::from),
            pair: cost.pair_ticks.map(i128::from),
        }
    }

    /// One call's inclusive time, with the median cost.
    pub fn inclusive(&self, raw: i64, descendants: u64) -> i64 {
        narrow(i128::from(raw) - self.bias[1] - i128::from(descendants) * self.pair[1])
    }

    /// One call's own time, with the median cost.
    pub fn own(&self, raw_self: i64, callees: u64) -> i64 {
        let each = self.pair[1] - self.bias[1];
        narrow(i128::from(raw_self) - self.bias[1] - i128::from(callees) * each)
    }

    pub fn inclusive_sum(&self, raw: i128, calls: u64, descendants: u128) -> Corrected {
        self.sum(raw, -i128::from(calls), descendants)
    }

    pub fn own_sum(&self, raw_self: i128, calls: u64, callees: u64) -> Corrected {
        let bias_times = i128::from(callees) - i128::from(calls);
        self.sum(raw_self, bias_times, u128::from(callees))
    }

    /// `raw + bias_times·b − pairs·P` over the box of possible costs.
    fn sum(&self, raw: i128, bias_times: i128, pairs: u128) -> Corrected {
        let at = |bias: i128, pair: i128| raw + bias_times * bias - pairs as i128 * pair;
        let [b_low, b, b_high] = self.bias;
        let [p_low, p, p_high] = self.pair;
        let (b_for_low, b_for_high) = match bias_times < 0 {
            true => (b_high, b_low),
            false => (b_low, b_high),
        };
        Corrected {
            low: at(b_for_low, p_high),
            median: at(b, p),
            high: at(b_for_high, p_low),
        }
    }
}

/// What a damaged file's absurd cost leaves is far below zero, and is flagged as negative.
fn narrow(ticks: i128) -> i64 {
    i64::try_from(ticks).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of 1,000 ticks of own work and two callees of 100, the first with a callee of 10.
    #[test]
    fn undoes_what_probes_add() {
        let (b, p) = (20, 50);
        let c = Correction::new(ProbeCost {
            bias_ticks: [b; 3],
            pair_ticks: [p; 3],
        });
        let (b, p) = (b as i64, p as i64);
        let grandchild = 10 + b;
        let first = (100 + 10) + b + p;
        let second = 100 + b;
        let outer = (1000 + 110 + 100) + b + 3 * p;
        assert_eq!(c.inclusive(outer, 3), 1210);
        assert_eq!(c.own(outer - first - second, 2), 1000);
        assert_eq!(c.own(first - grandchild, 1), 100);
        assert_eq!(c.inclusive(first, 1), 110);
        assert_eq!(c.own(second, 0), 100);
    }

    #[test]
    fn range_contains_the_median_whatever_the_sign_of_the_bias() {
        let c = Correction::new(ProbeCost {
            bias_ticks: [10, 20, 40],
            pair_ticks: [45, 50, 80],
        });
        let leaf = c.own_sum(1_000, 10, 0);
        assert_eq!((leaf.low, leaf.median, leaf.high), (600, 800, 900));
        let caller = c.own_sum(10_000, 10, 30);
        assert_eq!(
            (caller.low, caller.median, caller.high),
            (
                10_000 + 20 * 10 - 30 * 80,
                10_000 + 20 * 20 - 30 * 50,
                10_000 + 20 * 40 - 30 * 45
            )
        );
    }

    #[test]
    fn a_negative_result_stays_negative() {
        let c = Correction::new(ProbeCost {
            bias_ticks: [30; 3],
            pair_ticks: [60; 3],
        });
        assert_eq!(c.inclusive(10, 1), -80);
    }
}
