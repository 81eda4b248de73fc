//! What a loop's calls read between their own stamps.
//!
//! A clock may have steps: on an EPYC of 2026 the time stamp counter counts 26 at a time, and a call of 17 ticks reads 0 or 26.
//! Which of the two the median is, a tick more or less decides. So the middle is of means of many calls in a row, in which all of their
//! time is; the lowest and the highest are of single calls, which is what a report has of one.
use crate::error::{Result, refuse};
use hopscope_event::{FunctionId, Record, RecordKind};

/// Calls, at least, to calibrate with.
const AT_LEAST: usize = 1000;
/// Calls of a mean: their begins lie anywhere in a step of the clock.
const AT_ONCE: usize = 100;
const AT_ONCE_FUSED: usize = 1000;

/// Of a loop, in thousandths of a tick a call.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// Without probes.
    pub(super) bare: i64,
    /// Between the call's own stamps.
    pub(super) read: [i64; 3],
    /// In ticks.
    pub(super) pair: [u64; 3],
}

impl Measured {
    /// What a call reads between its own stamps beyond what it takes, in ticks.
    pub(super) fn bias(&self) -> [u64; 3] {
        self.read.map(|read| ticks(read - self.bare))
    }
}

/// The nearest number; below zero it is noise.
pub(super) fn ticks(thousandths: i64) -> u64 {
    (thousandths.max(0) as u64 + 500) / 1000
}

/// How much of a body may not be done yet when its exit's clock is read, in ticks: `rdtsc` does not wait for what is before it
/// (Intel SDM vol. 2, RDTSC), and on many processors the exit's runs ahead of its body as far as their window reaches.
/// That is as long as a lookup's misses in turn. 0 where it waits: a body between two such stamps reads no less than it takes.
/// Stamps that are ordered wait by themselves, where `lfence` does what it says: that is checked with more room for noise.
pub(super) fn ahead(
    chain: Measured,
    lookups: Option<([i64; 3], Measured)>,
    ordered_stamps: bool,
) -> u64 {
    // By so much of it the machine's other guests may slow down one of two loops in turn.
    let noise = chain.bare / if ordered_stamps { 4 } else { 16 };
    if chain.read[1] >= chain.bare - noise {
        return 0;
    }
    let of_chain = chain.bare - chain.read[0];
    let of_lookup = lookups.map_or(0, |(in_turn, lookup)| in_turn[1] - lookup.read[0]);
    ticks(of_chain.max(of_lookup))
}

/// What calls read, in thousandths of a tick: lowest twentieth, mean, highest tenth.
///
/// # Errors
/// Of fewer than [`AT_LEAST`].
pub(super) fn read(records: &[Record]) -> Result<[i64; 3]> {
    let pairs = records.windows(2);
    let calls = pairs.filter(|w| {
        w[0].kind() == Some(RecordKind::Entry) && w[1].kind() == Some(RecordKind::Exit)
    });
    let mut read: Vec<u64> = calls.map(|w| w[1].tsc.saturating_sub(w[0].tsc)).collect();
    let mean = match mean(&sorted_means(&read, AT_ONCE)) {
        Some(mean) if read.len() >= AT_LEAST => mean,
        _ => refuse!("only {} measured calls to calibrate with", read.len()),
    };
    read.sort_unstable();
    let [low, high] = [5, 90].map(|percent| read[read.len() * percent / 100] as i64 * 1000);
    Ok([low.min(mean), mean, high.max(mean)])
}

/// What calls that have the stamp of the exit before them read, in thousandths of a tick: mean, and highest tenth of means. `None`:
/// there are not enough.
pub(super) fn read_fused(records: &[Record], id: FunctionId) -> Option<[i64; 2]> {
    let ended = records.windows(3).filter(|w| {
        let kinds = [w[0].kind(), w[1].kind(), w[2].kind()];
        let (entry, exit) = (RecordKind::Entry, RecordKind::Exit);
        kinds == [Some(exit), Some(entry), Some(exit)]
            && w[1].function() == id
            && w[1].tsc == w[0].tsc
    });
    let read: Vec<u64> = ended.map(|w| w[2].tsc.saturating_sub(w[1].tsc)).collect();
    let means = sorted_means(&read, AT_ONCE_FUSED);
    Some([mean(&means)?, means[means.len() * 9 / 10]])
}

/// Of each so many in a row, in thousandths.
fn sorted_means(read: &[u64], at_once: usize) -> Vec<i64> {
    let chunks = read.chunks_exact(at_once);
    let mut means: Vec<i64> = chunks
        .map(|chunk| (chunk.iter().sum::<u64>() * 1000 / at_once as u64) as i64)
        .collect();
    means.sort_unstable();
    means
}

/// Of the half that lies around the middle: what interrupted the others is not the probes'.
fn mean(sorted: &[i64]) -> Option<i64> {
    let n = sorted.len();
    let middle = sorted.get(n / 4..(3 * n).div_ceil(4))?;
    let count = i64::try_from(middle.len()).ok().filter(|&n| n > 0)?;
    Some(middle.iter().sum::<i64>() / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 26;

    /// Calls that take so many tenths of a tick, one every 91 ticks, by a clock with steps; each thousandth is interrupted.
    fn calls(tenths: u64) -> Vec<Record> {
        let clock = |tenths: u64| tenths / 10 / STEP * STEP;
        let record = |tsc, kind| Record::new(tsc, FunctionId(1), kind, 0);
        (0..20_000u64)
            .flat_map(|n| {
                let begin = n * 913;
                let interrupted = if n % 1_000 == 999 { 200_000 } else { 0 };
                let end = begin + tenths + interrupted;
                [
                    record(clock(begin), RecordKind::Entry),
                    record(clock(end), RecordKind::Exit),
                ]
            })
            .collect()
    }

    #[test]
    fn a_clock_with_steps_moves_the_middle_by_less_than_a_tick() {
        for tenths in [60, 125, 129, 131, 135, 250, 385, 395] {
            let [low, mean, high] = read(&calls(tenths)).expect("20,000 calls");
            let off = mean - tenths as i64 * 100;
            assert!(off.abs() < 1_000, "{tenths}: {low}..{mean}..{high}");
            let steps = [low, high].map(|thousandths| thousandths / 1000 / STEP as i64);
            assert!(steps[1] <= steps[0] + 1, "{tenths}: {low}..{mean}..{high}");
            assert!((low..=high).contains(&mean));
        }
    }

    #[test]
    fn a_clock_that_is_read_before_the_body_is_done() {
        let measured = |bare, read| Measured {
            bare,
            read,
            pair: [0; 3],
        };
        let in_turn = [1_423_656, 1_510_808, 1_584_258];
        let lookups = Some((in_turn, measured(265_200, [26_000, 753_915, 1_586_000])));
        // As read on an EPYC and on a Xeon, and with stamps that wait.
        let epyc = measured(91_988, [52_000, 73_137, 78_000]);
        assert_eq!(ahead(epyc, lookups, false), 1_485);
        assert_eq!(ahead(epyc, None, false), 40);
        let xeon = measured(97_000, [38_000, 40_000, 44_000]);
        assert_eq!(ahead(xeon, None, false), 59);
        // No lfence that waits.
        assert_eq!(ahead(xeon, None, true), 59);
        let waits = measured(90_922, [104_000, 106_951, 130_000]);
        assert_eq!(ahead(waits, lookups, true), 0);
        let noise = measured(90_922, [78_000, 88_000, 104_000]);
        assert_eq!(ahead(noise, lookups, false), 0);
        let busy = measured(132_000, [104_000, 106_951, 130_000]);
        assert_eq!(ahead(busy, lookups, true), 0);
    }

    #[test]
    fn few_calls_are_refused() {
        assert!(read(&calls(100)[..1_998]).is_err());
        assert!(read(&[]).is_err());
        assert_eq!(read_fused(&[], FunctionId(1)), None);
    }
}
