//! From samples to a constant with its spread. Never by the mean: a thread that lost its processor
//! between two stamps adds microseconds to it.
use hopscope_event::slice::Constant;

/// 0 of nothing.
pub(super) fn median(samples: &mut [u32]) -> u32 {
    samples.sort_unstable();
    samples.get(samples.len() / 2).copied().unwrap_or(0)
}

/// The most frequent value; of equally frequent ones the least.
pub(super) fn constant(mut samples: Vec<u32>) -> Constant {
    samples.sort_unstable();
    let at = |percent: usize| samples.get(samples.len() * percent / 100).copied();
    let runs = samples.chunk_by(|a, b| a == b);
    let mode = runs.rev().max_by_key(|run| run.len());
    Constant {
        mode: mode.map_or(0, |run| run[0]),
        low: at(10).unwrap_or(0),
        high: at(90).unwrap_or(0),
        samples: samples.len() as u32,
    }
}

/// What one of `times` more costs, from medians with and without, taken in turn.
pub(super) fn slope(without: &[u32], with: &[u32], times: u32) -> Constant {
    let each = without.iter().zip(with);
    let mut each: Vec<u32> = each
        .map(|(without, with)| with.saturating_sub(*without) / times.max(1))
        .collect();
    spread(&mut each)
}

/// The median and the spread of a few values, each a median itself.
pub(super) fn spread(values: &mut [u32]) -> Constant {
    let mode = median(values);
    let at = |percent: usize| values.get(values.len() * percent / 100).copied();
    Constant {
        mode,
        low: at(10).unwrap_or(0),
        high: at(90).unwrap_or(0),
        samples: values.len() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_not_moved_by_what_is_rare() {
        let mut samples = vec![70; 50];
        samples.extend([60; 30]);
        samples.extend([9_000; 20]);
        let constant = constant(samples);
        assert_eq!(
            (constant.mode, constant.low, constant.high),
            (70, 60, 9_000)
        );
        assert_eq!(constant.samples, 100);
    }

    #[test]
    fn a_slope_is_per_program() {
        let slope = slope(&[100, 110, 90], &[500, 510, 890], 4);
        assert_eq!((slope.mode, slope.low, slope.high), (100, 100, 200));
    }

    #[test]
    fn nothing_is_zero() {
        assert_eq!(constant(Vec::new()).samples, 0);
    }
}
