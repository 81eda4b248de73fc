//! How much the figures of one row vary over the time of a recording: the second pass.
use super::interval::Varying;
use super::spread::{Ranks, Spread};
use hopscope_event::Tsc;

/// Of equal time.
pub const BLOCKS: usize = 24;
/// Neighbours more alike than this are taken for this: the interval is 4.4 times as wide.
const CORRELATION_MAX: f64 = 0.9;

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    n: f64,
    sum: f64,
    up_to_p50: f64,
    up_to_p99: f64,
    placements: f64,
}

pub struct Blocks {
    blocks: [Block; BLOCKS],
    start: Tsc,
    span: u64,
    p50: u64,
    p99: u64,
    other: Ranks,
}

impl Blocks {
    /// `own` and `other`: the spreads of this row. `start` and `end`: of the recording's calls.
    pub fn new(own: &Spread, other: &Spread, start: Tsc, end: Tsc) -> Blocks {
        Blocks {
            blocks: [Block::default(); BLOCKS],
            start,
            span: (end - start).max(1) as u64,
            p50: own.quantile(500),
            p99: own.quantile(990),
            other: other.ranks(),
        }
    }

    /// A call that was added to the spread, by its entry.
    pub fn add(&mut self, entry: Tsc, tenths_ns: i64) {
        let value = tenths_ns.max(0) as u64;
        let at = u128::from((entry - self.start).max(0) as u64) * BLOCKS as u128;
        let at = (at / u128::from(self.span)).min(BLOCKS as u128 - 1) as usize;
        let share = |limit: u64| f64::from(u8::from(value <= limit));
        let block = &mut self.blocks[at];
        block.n += 1.0;
        block.sum += value as f64;
        block.up_to_p50 += share(self.p50);
        block.up_to_p99 += share(self.p99);
        block.placements += self.other.of(value);
    }

    /// Blocks with calls.
    pub fn filled(&self) -> usize {
        self.blocks.iter().filter(|b| b.n > 0.0).count()
    }

    pub(super) fn mean(&self) -> Varying {
        self.ratio(|b| b.sum)
    }

    /// Of calls up to the quantile of so many parts of 1,000.
    pub(super) fn share(&self, parts: u64) -> Varying {
        match parts {
            ..=500 => self.ratio(|b| b.up_to_p50),
            _ => self.ratio(|b| b.up_to_p99),
        }
    }

    /// Mean rank among the other side's calls.
    pub(super) fn placement(&self) -> Varying {
        self.ratio(|b| b.placements)
    }

    /// Ratio estimate over blocks of unequal size (Cochran 1977, ch. 6). Residuals of neighbours that
    /// are alike make the error larger, as for a first-order autoregressive series.
    fn ratio(&self, of: impl Fn(&Block) -> f64) -> Varying {
        let filled: Vec<&Block> = self.blocks.iter().filter(|b| b.n > 0.0).collect();
        let n: f64 = filled.iter().map(|b| b.n).sum();
        let value = filled.iter().map(|b| of(b)).sum::<f64>() / n;
        let residuals: Vec<f64> = filled.iter().map(|b| of(b) - value * b.n).collect();
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        let neighbours: f64 = residuals.windows(2).map(|w| w[0] * w[1]).sum();
        let correlation = match squares > 0.0 {
            true => (neighbours / squares).clamp(0.0, CORRELATION_MAX),
            false => 0.0,
        };
        let count = filled.len() as f64;
        let variance = squares * count / (count - 1.0).max(1.0) / (n * n);
        Varying {
            value,
            error: (variance * (1.0 + correlation) / (1.0 - correlation)).sqrt(),
            freedom: (count - 1.0).max(1.0),
        }
    }
}
