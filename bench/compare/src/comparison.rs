//! The answer to "is B different from A?", with "no difference beyond noise" as one of them.
use crate::interleave::Runs;
use crate::median::{Interval, median};
use crate::stats::Spread;
use serde::Serialize;
use std::fmt;

/// Of the intervals; one in twenty comparisons of equals would be found different by the interval
/// alone, fewer since the difference must be outside of the control's as well.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest rounds that allow an interval of this confidence.
pub const ROUNDS_MIN: usize = 6;
/// What is done, for the results page.
pub const TEST: &str = "median of the ratios of paired runs with its exact interval (95 %, order \
     statistics); different when the interval excludes 1 and the median lies outside of the \
     interval of A against A";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// No difference beyond noise.
    NoDifference,
    /// B measures more than A.
    Higher,
    Lower,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    pub a: Spread,
    pub b: Spread,
    /// B over A.
    pub ratio: Interval,
    /// A over A, measured in the same rounds.
    pub control_ratio: Interval,
    pub verdict: Verdict,
    /// The interval of A against A excludes 1: it does so once in twenty times, or when something
    /// beyond the programs (their order, a drift) has its say.
    pub control_differs: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CompareError {
    #[error("{rounds} rounds allow no verdict; run at least {ROUNDS_MIN}")]
    TooFew { rounds: usize },
    #[error("{value} was measured: ratios take numbers above zero")]
    NotPositive { value: f64 },
}

impl Comparison {
    /// # Errors
    /// Too few rounds, or a measurement without a ratio.
    pub fn of(runs: &Runs) -> Result<Comparison, CompareError> {
        let all = [&runs.a, &runs.b, &runs.control];
        let unusable = |value: &&f64| !value.is_finite() || **value <= 0.0;
        if let Some(value) = all.into_iter().flatten().find(unusable) {
            return Err(CompareError::NotPositive { value: *value });
        }
        let rounds = all.iter().map(|side| side.len()).min().unwrap_or(0);
        let too_few = CompareError::TooFew { rounds };
        let ratio = ratio(&runs.a, &runs.b).ok_or(too_few)?;
        let control_ratio = self::ratio(&runs.a, &runs.control).ok_or(too_few)?;
        let differs = |r: &Interval| r.low > 1.0 || r.high < 1.0;
        // Equal programs have the ratio 1, whatever this control happened to show.
        let band = (control_ratio.low.min(1.0), control_ratio.high.max(1.0));
        let beyond = ratio.estimate < band.0 || ratio.estimate > band.1;
        let verdict = match (differs(&ratio) && beyond, ratio.estimate > 1.0) {
            (false, _) => Verdict::NoDifference,
            (true, true) => Verdict::Higher,
            (true, false) => Verdict::Lower,
        };
        Ok(Comparison {
            a: Spread::of(&runs.a).ok_or(too_few)?,
            b: Spread::of(&runs.b).ok_or(too_few)?,
            ratio,
            control_ratio,
            verdict,
            control_differs: differs(&control_ratio),
        })
    }

    /// The smallest change that this many runs on this machine would have shown, in percent.
    pub fn resolution_percent(&self) -> f64 {
        let r = self.ratio;
        100.0 * (r.high / r.estimate).max(r.estimate / r.low) - 100.0
    }
}

/// What B adds to A, and what A adds to itself, for quantities that add up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Added {
    pub added: Interval,
    pub control: Interval,
}

impl Added {
    /// # Errors
    /// Too few rounds.
    pub fn of(runs: &Runs) -> Result<Added, CompareError> {
        let rounds = runs.a.len().min(runs.b.len()).min(runs.control.len());
        let added = |over: &[f64]| {
            let differences: Vec<f64> = runs.a.iter().zip(over).map(|(a, b)| b - a).collect();
            median(&differences, CONFIDENCE).ok_or(CompareError::TooFew { rounds })
        };
        Ok(Added {
            added: added(&runs.b)?,
            control: added(&runs.control)?,
        })
    }

    /// The largest difference that A shows against itself: what is smaller says nothing.
    pub fn band(&self) -> f64 {
        self.control.low.abs().max(self.control.high.abs())
    }
}

/// In logarithms, so that twice and half are equally far from 1.
fn ratio(over: &[f64], of: &[f64]) -> Option<Interval> {
    let differences: Vec<f64> = over.iter().zip(of).map(|(a, b)| (b / a).ln()).collect();
    median(&differences, CONFIDENCE).map(Interval::exp)
}

/// The verdict in a sentence, with what it rests on.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = 100.0 * (self.ratio.estimate - 1.0);
        match self.verdict {
            Verdict::NoDifference => write!(
                f,
                "no difference beyond noise ({:.1} % or more would have shown)",
                self.resolution_percent()
            )?,
            Verdict::Higher if percent > 100.0 => {
                write!(f, "B is {:.2} times A", self.ratio.estimate)?
            }
            Verdict::Higher => write!(f, "B is {percent:.1} % higher than A")?,
            Verdict::Lower => write!(f, "B is {:.1} % lower than A", -percent)?,
        }
        write!(
            f,
            "\nB/A {}, A/A {} over {} rounds, 95 % intervals",
            self.ratio, self.control_ratio, self.a.n
        )?;
        if self.control_differs {
            f.write_str("\nA differs from itself here: once in twenty by chance, or the order of the runs or a drift matters")?;
        }
        Ok(())
    }
}
