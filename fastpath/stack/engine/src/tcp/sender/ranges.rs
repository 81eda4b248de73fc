//! A set of sequence numbers as ranges in order: what is SACKed, what is lost.
use crate::tcp::seq::{Seq, SeqRange};

/// Disjoint, not adjacent, ascending. All lie within less than 2³¹ of each other.
#[derive(Debug, Default)]
pub(super) struct RangeSet {
    ranges: Vec<SeqRange>,
    bytes: u32,
}

impl RangeSet {
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(super) fn first(&self) -> Option<SeqRange> {
        self.ranges.first().copied()
    }

    pub(super) fn descending(&self) -> impl Iterator<Item = SeqRange> + '_ {
        self.ranges.iter().rev().copied()
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = SeqRange> + '_ {
        self.ranges.iter().copied()
    }

    /// The first of `within` that is not in the set.
    pub(super) fn first_gap(&self, within: SeqRange) -> Option<SeqRange> {
        let mut start = within.start;
        for range in &self.ranges[self.ending_after(start)..] {
            if range.start.after(start) {
                return non_empty(SeqRange::new(start, range.start.earlier(within.end)));
            }
            start = range.end;
        }
        non_empty(SeqRange::new(start, within.end))
    }

    pub(super) fn insert(&mut self, new: SeqRange) {
        if !new.is_ordered() {
            return;
        }
        // Those that touch it, on either side, become one with it.
        let from = self.ranges.partition_point(|r| r.end.before(new.start));
        let to = from + self.ranges[from..].partition_point(|r| r.start.until(new.end));
        let Some(first) = self.ranges[from..to].first().copied() else {
            self.ranges.insert(from, new);
            self.bytes += new.len();
            return;
        };
        let end = self.ranges[to - 1].end.later(new.end);
        let merged = SeqRange::new(first.start.earlier(new.start), end);
        self.bytes += merged.len() - self.bytes_of(from, to);
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
    }

    pub(super) fn remove(&mut self, old: SeqRange) {
        let from = self.ending_after(old.start);
        let to = from + self.ranges[from..].partition_point(|r| r.start.before(old.end));
        if from == to || !old.is_ordered() {
            return;
        }
        let head = SeqRange::new(self.ranges[from].start, old.start);
        let tail = SeqRange::new(old.end, self.ranges[to - 1].end);
        self.bytes -= self.bytes_of(from, to);
        let rest = [head, tail].into_iter().filter(|r| r.is_ordered());
        self.bytes += rest.clone().map(SeqRange::len).sum::<u32>();
        match (head.is_ordered(), tail.is_ordered()) {
            // In place where no range is cut in two, which allocates nothing.
            (true, false) => {
                self.ranges[from] = head;
                self.ranges.drain(from + 1..to);
            }
            (false, true) => {
                self.ranges[from] = tail;
                self.ranges.drain(from + 1..to);
            }
            _ => drop(self.ranges.splice(from..to, rest)),
        }
    }

    /// All before `seq`.
    pub(super) fn remove_before(&mut self, seq: Seq) {
        if let Some(first) = self.first().filter(|r| r.start.before(seq)) {
            self.remove(SeqRange::new(first.start, seq));
        }
    }

    pub(super) fn clear(&mut self) {
        self.ranges.clear();
        self.bytes = 0;
    }

    /// Gives memory back that only a large window needed.
    pub(super) fn shrink(&mut self) {
        self.ranges.shrink_to(8);
    }

    /// Index of the first range that ends after `seq`.
    fn ending_after(&self, seq: Seq) -> usize {
        self.ranges.partition_point(|r| r.end.until(seq))
    }

    fn bytes_of(&self, from: usize, to: usize) -> u32 {
        self.ranges[from..to].iter().map(|r| r.len()).sum()
    }
}

fn non_empty(range: SeqRange) -> Option<SeqRange> {
    range.is_ordered().then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: Seq = Seq(u32::MAX - 50);

    fn range(start: u32, end: u32) -> SeqRange {
        SeqRange::new(BASE + start, BASE + end)
    }

    proptest! {
        /// Against a set of single numbers, over the wrap.
        #[test]
        fn same_as_a_set_of_numbers(ops in prop::collection::vec((0u8..3, 0u32..100, 0u32..30), 1..60)) {
            let mut set = RangeSet::default();
            let mut model = [false; 131];
            for (op, start, len) in ops {
                let end = start + len;
                match op {
                    0 => set.insert(range(start, end)),
                    1 => set.remove(range(start, end)),
                    _ => set.remove_before(BASE + start),
                }
                let touched = if op == 2 { 0..start } else { start..end };
                touched.for_each(|n| model[n as usize] = op == 0);
                let members = (0..131).filter(|n| set.iter().any(|r| r.holds(BASE + *n as u32)));
                prop_assert!(members.eq((0..131).filter(|n| model[*n])));
                prop_assert_eq!(set.bytes() as usize, model.iter().filter(|m| **m).count());
                let apart = set.ranges.windows(2).all(|w| w[0].end.before(w[1].start));
                prop_assert!(apart, "{:?}", set);
                let gap = set.first_gap(range(start, end)).map(|r| (r.start - BASE, r.end - BASE));
                let first = (start..end).find(|n| !model[*n as usize]);
                let until = first.map(|f| (f..end).find(|n| model[*n as usize]).unwrap_or(end));
                prop_assert_eq!(gap, first.zip(until));
            }
        }
    }
}
