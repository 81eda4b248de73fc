//! How much of any span a thread did not run, and how much of that against its will.
use hopscope_event::{OffCpu, ThreadIx, Tsc};
use std::collections::HashMap;

/// Part of a span in which the thread had no processor, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffCpuShare {
    pub ticks: u64,
    /// Of these: another task was put in its place. Waits for a processor after a wake-up are not in it.
    pub preempted_ticks: u64,
    /// Switches are missing in this span: `ticks` may be too low.
    pub incomplete: bool,
}

/// All intervals of one thread. A span is looked up in O(log n), whatever lies in it: sums up to
/// each interval are kept.
#[derive(Debug, Default)]
pub struct OffCpuIndex {
    /// Ascending, none overlapping.
    intervals: Vec<Interval>,
    /// Spans of which nothing is known, ascending.
    holes: Vec<(u64, u64)>,
    /// A hole that ends with the next interval.
    open_hole: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    out: u64,
    back: u64,
    /// Of this one and all before.
    sum: u64,
    preempted_sum: u64,
    preempted: bool,
}

impl OffCpuIndex {
    /// The next intervals in order of time; `lost_before` as in the file.
    pub fn extend(&mut self, lost_before: u64, rows: &[OffCpu]) {
        if lost_before > 0 && self.open_hole.is_none() {
            self.open_hole = Some(self.intervals.last().map_or(0, |last| last.back));
        }
        if let (Some(from), Some(first)) = (self.open_hole, rows.first()) {
            self.holes.push((from, first.out.0));
            self.open_hole = None;
        }
        for row in rows {
            self.push(*row);
        }
    }

    /// A row that begins before the end of the last one is cut: by the clock error at most.
    fn push(&mut self, row: OffCpu) {
        let last = self.intervals.last();
        let floor = last.map_or(0, |last| last.back);
        let (sum, preempted_sum) = last.map_or((0, 0), |last| (last.sum, last.preempted_sum));
        let (out, back) = (row.out.0.max(floor), row.back.0.max(floor));
        let ticks = back.saturating_sub(out);
        self.intervals.push(Interval {
            out,
            back,
            sum: sum.saturating_add(ticks),
            preempted_sum: preempted_sum.saturating_add(if row.preempted { ticks } else { 0 }),
            preempted: row.preempted,
        });
    }

    /// No interval and no hole: the thread never left its processor.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty() && self.holes.is_empty() && self.open_hole.is_none()
    }

    /// What of `start..end` the thread did not run.
    pub fn within(&self, start: Tsc, end: Tsc) -> OffCpuShare {
        let (start, end) = (start.0, end.0);
        if end <= start {
            return OffCpuShare::default();
        }
        let (until_end, until_start) = (self.until(end), self.until(start));
        OffCpuShare {
            ticks: until_end.0 - until_start.0,
            preempted_ticks: until_end.1 - until_start.1,
            incomplete: self.has_hole(start, end),
        }
    }

    /// Off-CPU ticks, and preempted ones, before `at`.
    fn until(&self, at: u64) -> (u64, u64) {
        let begun = self.intervals.partition_point(|i| i.out < at);
        let Some(last) = begun.checked_sub(1).map(|last| &self.intervals[last]) else {
            return (0, 0);
        };
        // The last one that has begun may reach beyond.
        let beyond = last.back.saturating_sub(at);
        let preempted_beyond = if last.preempted { beyond } else { 0 };
        (last.sum - beyond, last.preempted_sum - preempted_beyond)
    }

    /// A span around `at` of which it is known that the thread ran through it; empty where that is
    /// not so. Most calls end in the span that the one before ended in: two comparisons then do.
    pub(crate) fn ran_around(&self, at: u64) -> (u64, u64) {
        let next = self.intervals.partition_point(|i| i.out <= at);
        let from = next
            .checked_sub(1)
            .map_or(0, |last| self.intervals[last].back);
        let to = self.intervals.get(next).map_or(u64::MAX, |next| next.out);
        match from > at || self.has_hole(from, to) {
            true => (at, at),
            false => (from, to),
        }
    }

    fn has_hole(&self, start: u64, end: u64) -> bool {
        let after = self.holes.partition_point(|(_, to)| *to <= start);
        let closed = self.holes.get(after).is_some_and(|(from, _)| *from < end);
        closed || self.open_hole.is_some_and(|from| from < end)
    }
}

/// Of all threads of a recording.
#[derive(Debug, Default)]
pub struct OffCpuTimes {
    threads: HashMap<ThreadIx, OffCpuIndex>,
}

impl OffCpuTimes {
    /// The next batch of the file.
    pub fn extend(&mut self, thread: ThreadIx, lost_before: u64, rows: &[OffCpu]) {
        self.threads
            .entry(thread)
            .or_default()
            .extend(lost_before, rows);
    }

    /// `None`: no switch of this thread; it was always on CPU, if switches were
    /// recorded at all.
    pub fn thread(&self, thread: ThreadIx) -> Option<&OffCpuIndex> {
        self.threads.get(&thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(out: u64, back: u64, preempted: bool) -> OffCpu {
        OffCpu {
            out: Tsc(out),
            back: Tsc(back),
            preempted,
        }
    }

    fn share(index: &OffCpuIndex, from: u64, to: u64) -> (u64, u64, bool) {
        let s = index.within(Tsc(from), Tsc(to));
        (s.ticks, s.preempted_ticks, s.incomplete)
    }

    #[test]
    fn only_what_lies_within_counts() {
        let mut index = OffCpuIndex::default();
        index.extend(0, &[row(10, 20, true)]);
        index.extend(0, &[row(40, 50, false)]);
        assert_eq!(share(&index, 0, 100), (20, 10, false));
        assert_eq!(share(&index, 15, 45), (10, 5, false));
        assert_eq!(share(&index, 12, 14), (2, 2, false));
        assert_eq!(share(&index, 20, 40), (0, 0, false));
        assert_eq!(share(&index, 50, 60), (0, 0, false));
        assert_eq!(share(&index, 45, 45), (0, 0, false));
        assert_eq!(share(&index, 46, 44), (0, 0, false));
    }

    #[test]
    fn a_loss_is_unknown_from_the_last_row_to_the_next() {
        let mut index = OffCpuIndex::default();
        index.extend(0, &[row(10, 20, true)]);
        index.extend(7, &[]);
        assert_eq!(share(&index, 0, 20), (10, 10, false));
        assert_eq!(share(&index, 0, 30), (10, 10, true));
        index.extend(2, &[row(100, 110, false)]);
        assert_eq!(share(&index, 25, 30), (0, 0, true));
        assert_eq!(share(&index, 100, 120), (10, 0, false));
        index.extend(1, &[]);
        assert_eq!(share(&index, 200, 201), (0, 0, true));
    }

    proptest! {
        /// Against counting every tick.
        #[test]
        fn any_span_agrees_with_counting(
            gaps in proptest::collection::vec((0u64..9, 0u64..9, any::<bool>()), 0..40),
            from in 0u64..400,
            length in 0u64..400,
            cut in 0usize..40,
        ) {
            let mut at = 0;
            let rows: Vec<OffCpu> = gaps
                .into_iter()
                .map(|(gap, ticks, preempted)| {
                    let out = at + gap;
                    at = out + ticks;
                    row(out, at, preempted)
                })
                .collect();
            let mut index = OffCpuIndex::default();
            let (first, second) = rows.split_at(cut.min(rows.len()));
            index.extend(0, first);
            index.extend(0, second);
            let off = |t: u64| rows.iter().find(|r| r.out.0 <= t && t < r.back.0);
            let (ran_from, ran_to) = index.ran_around(from);
            prop_assert!((ran_from..ran_to.min(500)).all(|t| off(t).is_none()));
            prop_assert_eq!(off(from).is_some(), ran_to <= from);
            let span = from..from + length;
            let ticks = span.clone().filter(|t| off(*t).is_some()).count() as u64;
            let preempted = span.filter(|t| off(*t).is_some_and(|r| r.preempted)).count() as u64;
            prop_assert_eq!(share(&index, from, from + length), (ticks, preempted, false));
        }
    }
}
