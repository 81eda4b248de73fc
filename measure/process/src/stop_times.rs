//! How long each thread of each target was stopped: every stop ends in one place and is counted
//! there, whoever asked for it.
use hopscope_event::table::TargetStops;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The stops of one process's threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StopTimes {
    threads: BTreeMap<i32, ThreadStops>,
}

/// Each stop is from the request to stop until the thread was resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadStops {
    pub stops: u64,
    pub longest: Duration,
    pub sum: Duration,
}

static OPEN: Mutex<BTreeMap<i32, StopTimes>> = Mutex::new(BTreeMap::new());

fn open() -> std::sync::MutexGuard<'static, BTreeMap<i32, StopTimes>> {
    // Only sums: there is no state in between that a panic could leave.
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn add(pid: i32, stops: &[(i32, Duration)]) {
    if !stops.is_empty() {
        open().entry(pid).or_default().add(stops);
    }
}

/// All stops of the threads of `pid` since this was last called.
pub fn take(pid: i32) -> StopTimes {
    open().remove(&pid).unwrap_or_default()
}

/// The same of all processes: a target's forked children are stopped with it.
pub fn take_all() -> Vec<(i32, StopTimes)> {
    std::mem::take(&mut *open()).into_iter().collect()
}

impl StopTimes {
    /// Those of a later part, too.
    pub fn join(&mut self, later: &StopTimes) {
        for (tid, stops) in later.threads() {
            let thread = self.threads.entry(tid).or_default();
            thread.stops += stops.stops;
            thread.longest = thread.longest.max(stops.longest);
            thread.sum += stops.sum;
        }
    }

    fn add(&mut self, stops: &[(i32, Duration)]) {
        for &(tid, stopped_for) in stops {
            let thread = self.threads.entry(tid).or_default();
            thread.stops += 1;
            thread.longest = thread.longest.max(stopped_for);
            thread.sum += stopped_for;
        }
    }

    /// Threads that were stopped, ascending.
    pub fn threads(&self) -> impl Iterator<Item = (i32, ThreadStops)> {
        self.threads.iter().map(|(tid, stops)| (*tid, *stops))
    }

    /// What a summary says of the stops of process `pid`.
    pub fn totals(&self, pid: i32) -> TargetStops {
        let ns = |d: Duration| d.as_nanos() as u64;
        let largest = |of: fn(&ThreadStops) -> Duration| {
            let largest = self.threads.iter().max_by_key(|(_, t)| of(t));
            largest.map_or((0, 0), |(tid, t)| (*tid, ns(of(t))))
        };
        let (longest_tid, longest_ns) = largest(|t| t.longest);
        let (sum_tid, sum_ns) = largest(|t| t.sum);
        TargetStops {
            pid,
            threads: self.threads.len() as u64,
            stops: self.threads.values().map(|t| t.stops).max().unwrap_or(0),
            longest_ns,
            longest_tid,
            sum_ns,
            sum_tid,
        }
    }

    /// The longest stop of any thread.
    pub fn longest(&self) -> Duration {
        let longest = self.threads.values().map(|t| t.longest).max();
        longest.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_of_a_thread_add_up() {
        // No process has these numbers.
        let (pid, ms) = (-7, Duration::from_millis);
        add(pid, &[(1, ms(5)), (2, ms(1))]);
        add(pid, &[(1, ms(3))]);
        let ledger = take(pid);
        let first = ThreadStops {
            stops: 2,
            longest: ms(5),
            sum: ms(8),
        };
        assert_eq!(ledger.threads().next(), Some((1, first)));
        assert_eq!(ledger.threads().count(), 2);
        assert_eq!(ledger.longest(), ms(5));
        let totals = ledger.totals(pid);
        assert_eq!((totals.threads, totals.stops), (2, 2));
        assert_eq!((totals.sum_ns, totals.sum_tid), (8_000_000, 1));
        assert_eq!(take(pid), StopTimes::default());
    }
}
