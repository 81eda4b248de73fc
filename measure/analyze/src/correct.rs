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
//!
//! A call whose entry has the stamp of the exit before it (fused) costs `f`, all of it between its stamps, which are that exit's and
//! its own: it is a bias and a pair at once, and nothing of it is in the caller's own time. With `m` fused callees of `n`, and `F`
//! fused descendants of `D`:
//!
//! ```text
//! T = raw − b − (D − F)·P − F·f       T_self = raw_self − b − (n − m)·(P − b)       of a fused call f in place of b
//! ```
//!
//! `b` and `P` are of a loop of calls. In place they are more where the stamps end what the processor
//! does at once: the lower end of a range takes what was measured where each call misses the caches.
//! Where a processor reads the clock before the body in front of it is done, that part of the body is not between the
//! call's stamps, but in what follows: the lowest bias is less than nothing by as much.
//! Where nothing says how much it may be, all of an interval may be the probes'. Where the cost was
//! measured in place, all calls together have added `P` each: one function at most all of that, and
//! one that encloses nearly all calls not much less.
use crate::measured::Measured;
use hopscope_event::ProbeCost;

/// Lowest, median and highest bias, and pair.
type Cost = ([i128; 3], [i128; 3]);

/// How often the bias and the pair are in a measured sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    pub(crate) biases: i128,
    pub(crate) pairs: i128,
}

impl Taken {
    pub(crate) fn out_of(self, raw: i128, bias: i128, pair: i128) -> i128 {
        raw - self.biases * bias - self.pairs * pair
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Correction {
    bias: [i128; 3],
    pair: [i128; 3],
    /// What a fused call reads beyond its time, and what it adds around it: the same, but for what of two bodies is done late.
    fused_bias: [i128; 3],
    fused_pair: [i128; 3],
    /// Of bias and pair; `None`: up to the measured time itself.
    most: Option<(i128, i128)>,
    /// Lowest and highest of the mean of all calls, measured in place.
    in_place: Option<[i128; 2]>,
    all_calls: i128,
    ahead: i128,
}

/// Corrected ticks: with the median cost, and the range that the lowest and highest cost span. No
/// time takes less than nothing: `low` is below zero only where `median` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Corrected {
    pub low: i128,
    pub median: i128,
    pub high: i128,
}

impl Correction {
    pub fn new(cost: ProbeCost) -> Correction {
        let (bias, pair) = cost.taken_out();
        let around = |[low, _, high]: [u64; 3], taken: u64| {
            [low.min(taken), taken, high.max(taken)].map(i128::from)
        };
        let in_place = cost.in_place.map(|c| c.call_ticks);
        let pairs = match in_place {
            Some([low, _, high]) => [cost.pair_ticks[0].min(low), pair, high],
            None => cost.pair_ticks,
        };
        let [low, taken, high] = around(cost.bias_ticks, bias);
        let ahead = i128::from(cost.ahead_ticks);
        let (bias, pair) = ([low - ahead, taken, high], around(pairs, pair));
        // In a file of another hopscope there are none, or what they cost is not known.
        let fused = match cost.fused {
            Some(fused) => fused.call_ticks.map(i128::from),
            None => [bias[0].clamp(0, pair[1]), pair[1], pair[2]],
        };
        let fused_bias = [fused[0] - ahead, fused[1], fused[2] + ahead];
        Correction {
            bias,
            pair,
            fused_bias,
            fused_pair: fused,
            in_place: in_place.map(|[low, _, high]| [low, high].map(i128::from)),
            all_calls: 0,
            ahead: i128::from(cost.ahead_ticks),
            most: cost.memory_bound.map(|most| {
                let most = [most.bias_ticks, most.pair_ticks].map(i128::from);
                let in_a_loop = [cost.bias_ticks[2], cost.pair_ticks[2]].map(i128::from);
                let mean = in_place.map_or([0; 2], |found| [taken, found[2].into()]);
                let of = |n: usize| most[n].max(in_a_loop[n]).max(mean[n]);
                (of(0), of(1))
            }),
        }
    }

    /// Knowing how many calls have added what was measured in place.
    #[must_use]
    pub fn of_all(self, calls: u64) -> Correction {
        Correction {
            all_calls: i128::from(calls),
            ..self
        }
    }

    /// One call's inclusive time, with the median cost.
    pub fn inclusive(&self, raw: i64, fused: bool, descendants: Measured) -> i64 {
        let pairs =
            descendants.plain() * self.pair[1] + i128::from(descendants.fused) * self.fused_pair[1];
        narrow(i128::from(raw) - self.bias_of(fused) - pairs)
    }

    fn bias_of(&self, fused: bool) -> i128 {
        if fused {
            self.fused_bias[1]
        } else {
            self.bias[1]
        }
    }

    /// One call's own time, with the median cost.
    pub fn own(&self, raw_self: i64, fused: bool, callees: Measured) -> i64 {
        let outside = callees.plain() * (self.pair[1] - self.bias[1]);
        narrow(i128::from(raw_self) - self.bias_of(fused) - outside)
    }

    pub fn inclusive_sum(&self, raw: i128, calls: Measured, descendants: Measured) -> Corrected {
        let corrected = self.sum(raw, of(calls), of(descendants));
        let (Some([least, _]), Some((_, most))) = (self.in_place, self.most) else {
            return corrected;
        };
        let elsewhere = (self.all_calls - i128::from(descendants.calls)).max(0) * most;
        let added = least * self.all_calls - elsewhere;
        let early = i128::from(calls.calls) * self.ahead;
        Corrected {
            high: (corrected.high)
                .min(raw - added + early)
                .max(corrected.median),
            ..corrected
        }
    }

    pub fn own_sum(&self, raw_self: i128, calls: Measured, callees: Measured) -> Corrected {
        let ([plain, fused], [of_plain, _]) = (of(calls), of(callees));
        self.sum(raw_self, [plain - of_plain, fused], [of_plain, 0])
    }

    /// `raw − biases·b − pairs·P` over the box of possible costs, of plain and of fused calls.
    fn sum(&self, raw: i128, biases: [i128; 2], pairs: [i128; 2]) -> Corrected {
        let costs = [(self.bias, self.pair), (self.fused_bias, self.fused_pair)];
        // Of both kinds: which of its costs its biases and pairs are taken out with.
        let at = |chosen: &dyn Fn(i128, Cost) -> (i128, i128)| {
            (0..2).fold(raw, |left, n| {
                let (biases, pairs) = (biases[n], pairs[n]);
                let (bias, pair) = chosen(biases, costs[n]);
                Taken { biases, pairs }.out_of(left, bias, pair)
            })
        };
        let median = at(&|_, (bias, pair)| (bias[1], pair[1]));
        let high = at(&|biases, (bias, pair)| {
            let highest = if biases > 0 { bias[0] } else { bias[2] };
            (highest, pair[0])
        });
        let by_call = self.most.map(|(b_most, p_most)| {
            at(&|biases, (bias, pair)| {
                let lowest = if biases > 0 {
                    b_most.max(bias[2])
                } else {
                    bias[0]
                };
                (lowest, p_most.max(pair[2]))
            })
        });
        let together = (self.in_place).filter(|_| self.all_calls > 0);
        let together = together.map(|[_, most]| raw - most * self.all_calls);
        let low = by_call.max(together).unwrap_or(i128::MIN);
        Corrected {
            low: low.max(median.min(0)).min(median),
            median,
            high,
        }
    }
}

/// Plain and fused ones.
fn of(calls: Measured) -> [i128; 2] {
    [calls.plain(), calls.fused.into()]
}

/// What a damaged file's absurd cost leaves is far below zero, and is flagged as negative.
fn narrow(ticks: i128) -> i64 {
    i64::try_from(ticks).unwrap_or(i64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::{InPlaceCost, MemoryBoundCost};

    /// A call of 1,000 ticks of own work and two callees of 100, the first with a callee of 10.
    #[test]
    fn undoes_what_probes_add() {
        let (b, p) = (20, 50);
        let c = Correction::new(ProbeCost::in_a_loop([b; 3], [p; 3]));
        let (b, p) = (b as i64, p as i64);
        let grandchild = 10 + b;
        let first = (100 + 10) + b + p;
        let second = 100 + b;
        let outer = (1000 + 110 + 100) + b + 3 * p;
        assert_eq!(c.inclusive(outer, false, 3.into()), 1210);
        assert_eq!(c.own(outer - first - second, false, 2.into()), 1000);
        assert_eq!(c.own(first - grandchild, false, 1.into()), 100);
        assert_eq!(c.inclusive(first, false, 1.into()), 110);
        assert_eq!(c.own(second, false, 0.into()), 100);
    }

    const MISSING: MemoryBoundCost = MemoryBoundCost {
        bias_ticks: 70,
        pair_ticks: 200,
    };

    fn with_misses() -> Correction {
        Correction::new(ProbeCost {
            memory_bound: Some(MISSING),
            ..ProbeCost::in_a_loop([10, 20, 40], [45, 50, 80])
        })
    }

    #[test]
    fn range_contains_the_median_whatever_the_sign_of_the_bias() {
        let c = with_misses();
        let leaf = c.own_sum(1_000, 10.into(), 0.into());
        assert_eq!((leaf.low, leaf.median, leaf.high), (300, 800, 900));
        let caller = c.own_sum(10_000, 10.into(), 30.into());
        assert_eq!(
            (caller.low, caller.median, caller.high),
            (
                10_000 + 20 * 10 - 30 * 200,
                10_000 + 20 * 20 - 30 * 50,
                10_000 + 20 * 40 - 30 * 45
            )
        );
    }

    /// A body of 95 ticks whose exit reads the clock 60 before it is done, and its caller, which has them.
    #[test]
    fn what_a_clock_read_early_leaves_out_is_in_the_range() {
        let c = Correction::new(ProbeCost {
            ahead_ticks: 70,
            ..ProbeCost::in_a_loop([10, 20, 40], [45, 50, 80])
        });
        let body = c.inclusive_sum(35, 1.into(), 0.into());
        assert_eq!((body.low, body.median, body.high), (0, 15, 95));
        let caller = c.own_sum(1_000 + 3 * 60, 1.into(), 3.into());
        assert!(caller.low <= 1_000 && 1_000 <= caller.high, "{caller:?}");
    }

    /// A lookup of 84 ticks among others: its stamps end their overlap, and it reads 500.
    #[test]
    fn no_range_is_tighter_than_what_a_stamp_may_wait_for() {
        let true_ticks = 84;
        let short = with_misses().inclusive_sum(500, 1.into(), 3.into());
        assert_eq!((short.low, short.high), (0, 500 - 10 - 3 * 45));
        assert!((short.low..=short.high).contains(&true_ticks));
        let long = with_misses().inclusive_sum(1_000_000, 1.into(), 3.into());
        assert_eq!(long.low, 1_000_000 - 70 - 3 * 200);
    }

    #[test]
    fn where_nothing_was_measured_all_may_be_the_probes() {
        let c = Correction::new(ProbeCost::in_a_loop([10, 20, 40], [45, 50, 80]));
        let call = c.inclusive_sum(1_000_000, 1.into(), 3.into());
        assert_eq!((call.low, call.high), (0, 1_000_000 - 10 - 3 * 45));
    }

    fn in_place(call_ticks: [u64; 3]) -> Correction {
        Correction::new(ProbeCost {
            memory_bound: Some(MISSING),
            in_place: Some(InPlaceCost {
                call_ticks,
                pairs: 40,
                not_switched_per_mille: 0,
            }),
            ..ProbeCost::in_a_loop([10, 20, 40], [45, 50, 80])
        })
    }

    /// 1,000 packets of 84 ticks that take 580 measured, with a root and three calls in each.
    #[test]
    fn what_was_measured_in_place_makes_a_root_s_range_tight() {
        let c = in_place([122, 124, 126]).of_all(4_000);
        let packet = c.inclusive_sum(560_000, 1_000.into(), 3_000.into());
        assert!((packet.low..=packet.high).contains(&84_000), "{packet:?}");
        assert!(packet.high - packet.low < 300_000, "{packet:?}");
        assert_eq!(packet.low, 560_000 - 4_000 * 126);
        // A rare call of a millisecond is not less because others cost much.
        let rare = c.inclusive_sum(1_000_000, 1.into(), 0.into());
        assert_eq!(rare.low, 1_000_000 - 70);
        assert_eq!(rare.median, 1_000_000 - 20 * 124 / 50);
    }

    /// 1,000 calls of a root, each with 200 callees that cost 120 ticks in place and 45 in a loop.
    #[test]
    fn what_was_added_together_does_not_hide_what_a_clock_read_early_leaves_out() {
        let root = |ahead_ticks| {
            let cost = ProbeCost {
                ahead_ticks,
                memory_bound: Some(MISSING),
                in_place: Some(InPlaceCost {
                    call_ticks: [118, 120, 122],
                    pairs: 40,
                    not_switched_per_mille: 0,
                }),
                ..ProbeCost::in_a_loop([10, 20, 40], [45, 50, 80])
            };
            let c = Correction::new(cost).of_all(201_000);
            c.inclusive_sum(30_000_000, 1_000.into(), 200_000.into())
        };
        assert_eq!(root(0).high, 30_000_000 - 201_000 * 118 + 1_000 * 200);
        assert_eq!(root(60).high, root(0).high + 60_000);
    }

    #[test]
    fn a_negative_result_stays_negative() {
        let c = Correction::new(ProbeCost::in_a_loop([30; 3], [60; 3]));
        assert_eq!(c.inclusive(10, false, 1.into()), -80);
    }

    /// A caller with three stages behind each other, the second and the third with the stamp of the exit before them.
    #[test]
    fn what_fused_calls_add_is_taken_out_by_what_they_cost() {
        let c = Correction::new(ProbeCost {
            fused: Some(hopscope_event::FusedCost {
                call_ticks: [30; 3],
            }),
            ..ProbeCost::in_a_loop([20; 3], [50; 3])
        });
        let callees = Measured { calls: 3, fused: 2 };
        let stages = (100 + 20) + 2 * (100 + 30);
        let raw = 1_000 + 300 + 20 + 50 + 2 * 30;
        assert_eq!(c.inclusive(raw, false, callees), 1_300);
        assert_eq!(c.own(raw - stages, false, callees), 1_000);
        assert_eq!(c.own(130, true, Measured::NONE), 100);
        assert_eq!(c.inclusive(130, true, Measured::NONE), 100);
        let two = Measured { calls: 2, fused: 2 };
        let sum = c.inclusive_sum(260, two, Measured::NONE);
        assert_eq!((sum.median, sum.high), (200, 200));
        let own = c.own_sum((raw - stages).into(), 1.into(), callees);
        assert_eq!((own.median, own.high), (1_000, 1_000));
    }

    /// Whatever fused calls cost, none of it is the caller's own.
    #[test]
    fn an_uncertain_cost_of_fused_calls_is_not_in_the_caller() {
        let cost = |call_ticks| ProbeCost {
            fused: Some(hopscope_event::FusedCost { call_ticks }),
            memory_bound: Some(MISSING),
            ..ProbeCost::in_a_loop([20; 3], [50; 3])
        };
        let callees = Measured {
            calls: 10,
            fused: 9,
        };
        let own = |call_ticks| Correction::new(cost(call_ticks)).own_sum(1_050, 1.into(), callees);
        assert_eq!(own([20, 22, 110]), own([90, 100, 110]));
        assert_eq!(
            (own([20, 22, 110]).median, own([20, 22, 110]).high),
            (1_000, 1_000)
        );
    }
}
