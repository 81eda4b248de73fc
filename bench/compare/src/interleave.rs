//! Runs of two programs in turn, and of the first one a second time as its own control: whatever
//! changes on the machine meanwhile meets all three alike.
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    A,
    B,
    /// A again: what is seen between the two is noise.
    Control,
}

use Side::{A, B, Control};

/// Every order of the three: over six rounds each side is as often first, second and last as the
/// others, and follows each of them as often. A warm cache or a hot processor favours nobody.
const ORDERS: [[Side; 3]; 6] = [
    [A, B, Control],
    [B, A, Control],
    [Control, B, A],
    [A, Control, B],
    [B, Control, A],
    [Control, A, B],
];

/// The sides of a round in the order in which they run.
pub fn order(round: usize) -> [Side; 3] {
    ORDERS[round % ORDERS.len()]
}

/// What was measured, by round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Runs {
    pub a: Vec<f64>,
    pub b: Vec<f64>,
    pub control: Vec<f64>,
}

impl Runs {
    pub fn push(&mut self, side: Side, value: f64) {
        match side {
            A => self.a.push(value),
            B => self.b.push(value),
            Control => self.control.push(value),
        }
    }
}

/// Runs every side once a round.
///
/// # Errors
/// The first failure of `run`: a side without one of its runs can't be paired.
pub fn interleave<E>(
    rounds: usize,
    mut run: impl FnMut(usize, Side) -> Result<f64, E>,
) -> Result<Runs, E> {
    let mut runs = Runs::default();
    for round in 0..rounds {
        for side in order(round) {
            runs.push(side, run(round, side)?);
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_has_every_place_and_every_predecessor_equally_often() {
        let mut ran = Vec::new();
        interleave(6, |_, side| {
            ran.push(side);
            Ok::<_, ()>(1.0)
        })
        .unwrap();
        for side in [A, B, Control] {
            for place in 0..3 {
                let there = ran.iter().skip(place).step_by(3);
                assert_eq!(there.filter(|s| **s == side).count(), 2);
            }
            for before in [A, B, Control] {
                let within = ran.chunks(3).flat_map(|round| round.windows(2));
                let pairs = within.filter(|w| **w == [before, side]).count();
                assert_eq!(pairs, if before == side { 0 } else { 2 });
            }
        }
    }

    #[test]
    fn values_go_to_their_side_in_the_order_of_rounds() {
        let mut n = 0.0;
        let runs = interleave(3, |round, side| {
            n += 1.0;
            Ok::<_, ()>(n + 100.0 * side as u8 as f64 + 1000.0 * round as f64)
        })
        .unwrap();
        assert_eq!(runs.a, [1.0, 1005.0, 2009.0]);
        assert_eq!(runs.b, [102.0, 1104.0, 2108.0]);
        assert_eq!(runs.control, [203.0, 1206.0, 2207.0]);
    }
}
