//! Which runs were under way at a time.
use super::{Loss, RunSpan};
use hopscope_event::{ThreadIx, Tsc};
use std::collections::BTreeMap;
use std::ops::Range;

/// Runs of one thread, by end.
#[derive(Debug, Default)]
pub(super) struct OfThread {
    /// Numbers of runs.
    pub(super) runs: Vec<u32>,
    ends: Vec<Tsc>,
    /// Earliest start of this run and all after it: ascends, whatever overlaps.
    starts: Vec<Tsc>,
}

#[derive(Debug)]
pub(super) struct Spans {
    threads: Vec<OfThread>,
    /// Where losses begin, and where they end: both ascending.
    lost_from: Vec<Tsc>,
    lost_to: Vec<Tsc>,
    ends: Option<(Tsc, Tsc)>,
}

impl OfThread {
    /// Places of the runs that were under way between these two.
    pub(super) fn overlapping(&self, from: Tsc, to: Tsc) -> Range<usize> {
        let first = self.ends.partition_point(|end| *end < from);
        let end = self.starts.partition_point(|start| *start <= to);
        first..end.max(first)
    }
}

impl Spans {
    pub(super) fn new(runs: &[RunSpan], losses: &[Loss]) -> Spans {
        let mut threads: BTreeMap<ThreadIx, OfThread> = BTreeMap::new();
        for (ix, run) in runs.iter().enumerate() {
            let of = threads.entry(run.thread).or_default();
            of.runs.push(ix as u32);
        }
        for of in threads.values_mut() {
            // Some are given out late.
            of.runs.sort_by_key(|ix| runs[*ix as usize].end);
            of.ends = of.runs.iter().map(|ix| runs[*ix as usize].end).collect();
            let mut earliest = Tsc(u64::MAX);
            let starts = of.runs.iter().rev().map(|ix| {
                earliest = earliest.min(runs[*ix as usize].start);
                earliest
            });
            of.starts = starts.collect();
            of.starts.reverse();
        }
        let first = runs.iter().map(|r| r.start).min();
        Spans {
            threads: threads.into_values().collect(),
            lost_from: sorted(losses.iter().map(|l| l.from)),
            lost_to: sorted(losses.iter().map(|l| l.to)),
            ends: first.zip(runs.iter().map(|r| r.end).max()),
        }
    }

    pub(super) fn threads(&self) -> &[OfThread] {
        &self.threads
    }

    /// Begin of the first run and end of the last.
    pub(super) fn ends(&self) -> Option<(Tsc, Tsc)> {
        self.ends
    }

    /// Losses between these two, each of which may hide a run.
    pub(super) fn losses(&self, from: Tsc, to: Tsc) -> u32 {
        let begun = self.lost_from.partition_point(|begin| *begin <= to);
        let over = self.lost_to.partition_point(|end| *end < from);
        (begun - over.min(begun)) as u32
    }
}

fn sorted(times: impl Iterator<Item = Tsc>) -> Vec<Tsc> {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    times
}
