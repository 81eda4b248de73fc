//! One figure of both stacks, in turn.
use super::Bench;
use crate::error::{Error, Result};
use crate::ratio::ratio;
use hopscope_compare::median::Interval;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;

/// A is the kernel's, B the stack's.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Compared {
    pub(super) a: Spread,
    pub(super) b: Spread,
    /// B over A.
    pub(super) ratio: Interval,
}

/// Either first every other round. The inner result is of what is measured, the outer one of the bench itself.
pub(super) fn in_turn<'a, 'o>(
    bench: &mut Bench<'a, 'o>,
    what: &str,
    mut a: impl FnMut(&Bench<'a, 'o>) -> Result<f64>,
    mut b: impl FnMut(&Bench<'a, 'o>) -> Result<f64>,
) -> Result<Result<Compared>> {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for round in 0..bench.rounds {
        let (number, rounds) = (round + 1, bench.rounds);
        bench.settings.say(&format!("{what}, {number} of {rounds}"));
        for n in 0..2 {
            let is_a = (round + n).is_multiple_of(2);
            let value = if is_a { a(bench) } else { b(bench) };
            let value = match value {
                Ok(value) => value,
                Err(error) => return Ok(Err(error)),
            };
            let side = if is_a { "kernel" } else { "stack" };
            bench.sample(json!({ "what": what, "round": round, "side": side, "value": value }))?;
            if is_a { &mut of_a } else { &mut of_b }.push(value);
        }
    }
    let pairs = of_b.iter().copied().zip(of_a.iter().copied());
    let compared = || {
        Some(Compared {
            a: Spread::of(&of_a)?,
            b: Spread::of(&of_b)?,
            ratio: ratio(pairs)?,
        })
    };
    Ok(compared().ok_or(Error::Nothing {
        what: "the two stacks",
    }))
}
