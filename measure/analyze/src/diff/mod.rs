//! Two recordings, row by row: by how much the times of calls differ, with an interval.
//!
//! Calls are many and anything but independent: what slows one call slows its neighbours. So no
//! test that counts calls is right. Instead each recording is cut into [`BLOCKS`] blocks of equal
//! time, and how much the blocks differ says how much a figure varies by itself (batch means;
//! Schmeiser 1982, "Batch size effects in the analysis of simulation output": 10 to 30 batches).
//! What correlation is left between neighbouring blocks widens the interval.
//!
//! - mean: a ratio estimate over the blocks.
//! - p50, p99: the share of calls below the quantile varies by so much over the blocks; the
//!   quantiles of the shares at the ends of that interval are the ends of the quantile's interval
//!   (Woodruff 1952).
//! - Two intervals become one of their ratio by MOVER on the logarithms (Zou and Donner 2008).
//! - superiority: how often, of one call of each, that of B is the longer one (Mann-Whitney), with the
//!   variance of the placements over the blocks (DeLong 1988; clusters: Obuchowski 1997).
//!
//! Intervals are simultaneous (Bonferroni over all rows and figures). A row differs only when an
//! interval lies beyond the noise floor too: two recordings of one program differ for reasons that no
//! block of either shows, such as where code and data happened to lie (Mytkowicz 2009; Kalibera and
//! Jones 2013).
//!
//! Two passes over each recording: [`Spread`] first, then [`Blocks`] with both spreads. Memory:
//! some 30 KiB a row, whatever the length.
mod blocks;
mod interval;
mod spread;
mod student;

pub use blocks::{BLOCKS, Blocks};
pub use interval::{Estimate, Shift};
pub use spread::Spread;

/// Fewest calls of each side, and blocks with calls, for a verdict.
pub const CALLS_MIN: u64 = 100;
pub const BLOCKS_MIN: usize = 8;
/// Figures of a row: p50, p99, mean.
pub const FIGURES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Of being wrong anywhere in the table, when nothing differs.
    pub alpha: f64,
    /// Shifts of less than this part are noise whatever the intervals say.
    pub floor: f64,
    /// Which figures make a verdict: p50, p99, mean.
    pub judged: [bool; FIGURES],
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            alpha: 0.05,
            floor: 0.05,
            judged: [true; FIGURES],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No difference beyond noise.
    Same,
    Slower,
    Faster,
    /// Some figures rose and others fell, each beyond noise.
    Both,
    TooFew,
}

/// One row of both recordings. Times in tenths of a nanosecond.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    pub n: [u64; 2],
    /// Below zero after correction; they count as 0.
    pub negative: [u64; 2],
    pub p50: Shift,
    pub p99: Shift,
    pub mean: Shift,
    /// Probability that a call of B takes longer than one of A; half of ties.
    pub superiority: Estimate,
    pub verdict: Verdict,
}

impl Compared {
    pub fn figures(&self) -> [(&'static str, &Shift); FIGURES] {
        [("p50", &self.p50), ("p99", &self.p99), ("mean", &self.mean)]
    }

    /// The judged figures whose interval lies beyond the floor.
    pub fn beyond(&self, settings: Settings) -> impl Iterator<Item = (&'static str, &Shift)> {
        let enough = self.verdict != Verdict::TooFew;
        let figures = self.figures().into_iter().zip(settings.judged);
        figures
            .filter(move |((_, s), judged)| enough && *judged && s.is_beyond(settings.floor))
            .map(|(figure, _)| figure)
    }
}

/// `tested`: rows of the whole table that have enough calls ([`is_enough`]).
pub fn compare(
    [a, b]: [&Spread; 2],
    [blocks_a, blocks_b]: [&Blocks; 2],
    tested: usize,
    settings: Settings,
) -> Compared {
    let judged = settings.judged.iter().filter(|j| **j).count();
    let level = settings.alpha / (tested * judged).max(1) as f64;
    let quantile = |parts: u64| {
        let side =
            |spread: &Spread, blocks: &Blocks| spread.interval(parts, blocks.share(parts), level);
        Shift::of(side(a, blocks_a), side(b, blocks_b))
    };
    let mut compared = Compared {
        n: [a.n(), b.n()],
        negative: [a.negative(), b.negative()],
        p50: quantile(500),
        p99: quantile(990),
        mean: Shift::of(
            blocks_a.mean().interval(level),
            blocks_b.mean().interval(level),
        ),
        superiority: superiority(blocks_a, blocks_b, level),
        verdict: Verdict::TooFew,
    };
    if !is_enough([a, b], [blocks_a, blocks_b]) {
        return compared;
    }
    compared.verdict = Verdict::Same;
    let beyond = |sign: f64| {
        let mut figures = compared.beyond(settings);
        figures.any(|(_, s)| s.part() * sign > 0.0)
    };
    compared.verdict = match (beyond(1.0), beyond(-1.0)) {
        (false, false) => Verdict::Same,
        (true, false) => Verdict::Slower,
        (false, true) => Verdict::Faster,
        (true, true) => Verdict::Both,
    };
    compared
}

pub fn is_enough(spreads: [&Spread; 2], blocks: [&Blocks; 2]) -> bool {
    spreads.iter().all(|s| s.n() >= CALLS_MIN) && blocks.iter().all(|b| b.filled() >= BLOCKS_MIN)
}

/// Both sides' placements vary on their own: variances add.
fn superiority(a: &Blocks, b: &Blocks, level: f64) -> Estimate {
    let (in_b, in_a) = (a.placement(), b.placement());
    let error = in_a.error.hypot(in_b.error);
    let freedom = in_a.freedom.min(in_b.freedom);
    let half = student::two_sided(level, freedom) * error;
    let value = in_a.value;
    Estimate {
        value,
        low: (value - half).max(0.0),
        high: (value + half).min(1.0),
    }
}
