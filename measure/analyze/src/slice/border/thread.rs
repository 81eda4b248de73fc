//! One thread: its system calls, and the calls of functions between them.
use super::windows::Window;
use super::{BorderCounts, TimedCall};
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub windows: Vec<Window>,
    /// Interval `n` is the one before window `n`. Only those that were asked for.
    pub intervals: BTreeMap<usize, Interval>,
    /// Calls that hold window `n`.
    pub around: BTreeMap<usize, Vec<TimedCall>>,
}

/// Calls that begin between two system calls.
#[derive(Debug, Default)]
pub(super) struct Interval {
    /// To begin.
    pub first: Option<TimedCall>,
    /// To end, of those that end before the next system call.
    pub last: Option<TimedCall>,
    calls: Vec<TimedCall>,
}

impl Interval {
    fn put(&mut self, call: TimedCall, is_over: bool) {
        let both = self.first.into_iter().chain([call]);
        self.first = both.min_by_key(|c| (c.from_ns, c.depth));
        if is_over {
            let both = self.last.into_iter().chain([call]);
            self.last = both.max_by_key(|c| (c.to_ns, Reverse(c.depth)));
        }
    }

    pub fn in_order(&self) -> Vec<TimedCall> {
        in_order(self.calls.clone())
    }
}

impl Thread {
    /// Which window holds the packet's own part.
    pub fn place(&self, own: &Window) -> Option<usize> {
        let after = self.windows.partition_point(|w| w.from_ns <= own.from_ns);
        after.checked_sub(1)
    }

    pub fn call(&mut self, call: TimedCall, keep: Option<usize>, counts: &mut BorderCounts) {
        let first = self.windows.partition_point(|w| w.to_ns <= call.from_ns);
        let end = self.windows.partition_point(|w| w.from_ns < call.to_ns);
        let held = self.windows.get(first..end.max(first)).unwrap_or_default();
        let begins_within = held.first().is_some_and(|w| w.from_ns < call.from_ns);
        let ends_within = held.last().is_some_and(|w| w.to_ns > call.to_ns);
        if begins_within || ends_within {
            counts.crossing += 1;
            return;
        }
        let is_over = held.is_empty();
        let mut put = |calls: &mut Vec<TimedCall>, keep: usize| match calls.len() < keep {
            true => calls.push(call),
            false => counts.beyond += 1,
        };
        if let Some(interval) = self.intervals.get_mut(&first) {
            interval.put(call, is_over);
            if let Some(keep) = keep {
                put(&mut interval.calls, keep);
            }
        }
        if is_over {
            return;
        }
        for (_, calls) in self.around.range_mut(first..end) {
            match (keep, calls.first_mut()) {
                (Some(keep), _) => put(calls, keep),
                (None, None) => calls.push(call),
                // The innermost alone.
                (None, Some(kept)) if call.from_ns > kept.from_ns => *kept = call,
                (None, Some(_)) => {}
            }
        }
    }

    /// Outermost first.
    pub fn around(&self, at: usize) -> Vec<TimedCall> {
        in_order(self.around.get(&at).cloned().unwrap_or_default())
    }
}

fn in_order(mut calls: Vec<TimedCall>) -> Vec<TimedCall> {
    calls.sort_by_key(|call| (call.from_ns, call.depth));
    calls
}
