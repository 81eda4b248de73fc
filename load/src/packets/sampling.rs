//! Random numbers for the models of traffic.
use hopscope_openloop::SplitMix64;

/// Evenly in 0…`bound` − 1, by multiplication: off by less than `bound` / 2^64.
#[inline]
pub fn below(random: &mut SplitMix64, bound: u64) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// Draws of 0…n − 1 with given weights, each in constant time (Walker's alias method, in Vose's
/// order).
#[derive(Debug, Clone)]
pub struct Weighted {
    /// Of each cell: the share of draws that stay, as a fraction of 2^32, and where others go.
    cells: Box<[(u32, u32)]>,
}

impl Weighted {
    /// Weights are finite and not negative, at least one is above 0.
    pub fn new(weights: &[f64]) -> Weighted {
        let scale = weights.len() as f64 / weights.iter().sum::<f64>();
        let mut left: Vec<f64> = weights.iter().map(|w| w * scale).collect();
        let mut cells = vec![(u32::MAX, 0); weights.len()];
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|i| left[*i] < 1.0);
        while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
            cells[poor] = ((left[poor] * f64::from(u32::MAX)) as u32, rich as u32);
            left[rich] -= 1.0 - left[poor];
            if left[rich] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        // What is left is 1 but for rounding.
        Weighted {
            cells: cells.into(),
        }
    }

    #[inline]
    pub fn draw(&self, random: &mut SplitMix64) -> u32 {
        let word = random.next_u64();
        let cell = (((word >> 32) * self.cells.len() as u64) >> 32) as usize;
        let (stays, other) = self.cells[cell];
        if word as u32 <= stays {
            cell as u32
        } else {
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_openloop::random::seeded;

    #[test]
    fn weights_are_kept() {
        let weights = [7.0, 4.0, 0.0, 1.0];
        let weighted = Weighted::new(&weights);
        let mut random = seeded(3, "test");
        let mut counts = [0f64; 4];
        let draws = 120_000;
        (0..draws).for_each(|_| counts[weighted.draw(&mut random) as usize] += 1.0);
        assert_eq!(counts[2], 0.0);
        // Chi-square with two degrees of freedom, 99 %.
        let chi: f64 = [0, 1, 3]
            .iter()
            .map(|i| (counts[*i] - weights[*i] * 1e4).powi(2) / (weights[*i] * 1e4))
            .sum();
        assert!(chi < 9.21, "{chi} {counts:?}");
    }
}
