//! Counts and distributions: of each interval, and of the whole run.
use hopscope_event::{Stamp, StampFlags, Tsc, TscFrequency};
use hopscope_openloop::latency::Latency;
use std::collections::VecDeque;

/// Of packets that were sent in one stretch of time. `sent` = `received` + `lost`.
#[derive(Debug, Clone, Default)]
pub struct PacketCounts {
    pub sent: u64,
    pub received: u64,
    pub lost: u64,
    /// Sent later than the bound after their intended time.
    pub late: u64,
    pub worst_late_ns: u64,
    pub duplicate: u64,
    pub reordered: u64,
    pub corrupted: u64,
    /// Arrived before they were sent, by the port's stamps: recorded as 0 ns.
    pub before_sent: u64,
    /// From the intended time, of all that arrived intact.
    pub latency: Latency,
    /// From the time of sending.
    pub transit: Latency,
}

impl PacketCounts {
    pub fn merge(&mut self, other: &PacketCounts) {
        self.sent += other.sent;
        self.received += other.received;
        self.lost += other.lost;
        self.late += other.late;
        self.worst_late_ns = self.worst_late_ns.max(other.worst_late_ns);
        self.duplicate += other.duplicate;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
        self.before_sent += other.before_sent;
        self.latency.merge(&other.latency);
        self.transit.merge(&other.transit);
    }

    fn add(&mut self, stamp: &Stamp, ns: impl Fn(i64) -> i64) {
        let has = |flag| u64::from(stamp.flags.contains(flag));
        self.corrupted += has(StampFlags::CORRUPTED);
        if stamp.flags.contains(StampFlags::DUPLICATE) {
            self.duplicate += 1;
            return;
        }
        self.sent += 1;
        self.late += has(StampFlags::LATE);
        self.reordered += has(StampFlags::REORDERED);
        let late_ns = ns(stamp.sent - stamp.intended).max(0) as u64;
        self.worst_late_ns = self.worst_late_ns.max(late_ns);
        let (Some(latency), Some(transit)) = (stamp.latency_ticks(), stamp.transit_ticks()) else {
            self.lost += 1;
            return;
        };
        self.received += 1;
        self.before_sent += u64::from(transit < 0);
        if !stamp.flags.contains(StampFlags::CORRUPTED) {
            self.latency.record(ns(latency).max(0) as u64);
            self.transit.record(ns(transit).max(0) as u64);
        }
    }
}

/// A stretch of the run, ended: every packet sent in it has its fate.
#[derive(Debug, Clone)]
pub struct Interval {
    pub start: Tsc,
    pub end: Tsc,
    /// Left out of the totals.
    pub warm_up: bool,
    pub counts: PacketCounts,
}

/// Sorts packets into the intervals they were sent in.
pub struct Tally {
    nanoseconds_per_tick: f64,
    length: u64,
    measure_from: Tsc,
    /// What is sent later, catching up, belongs to the last interval.
    run_end: Tsc,
    open: VecDeque<Interval>,
    /// Where the next interval begins.
    next: Tsc,
    pub warm_up: PacketCounts,
    pub total: PacketCounts,
}

impl Tally {
    /// Intervals of `length` ticks begin where the warm-up ends; what was due before is one
    /// interval of its own.
    pub fn new(
        start: Tsc,
        measure_from: Tsc,
        run_end: Tsc,
        length: u64,
        frequency: TscFrequency,
    ) -> Tally {
        let mut tally = Tally {
            nanoseconds_per_tick: 1e9 / frequency.0 as f64,
            length,
            measure_from,
            run_end,
            open: VecDeque::new(),
            next: measure_from,
            warm_up: PacketCounts::default(),
            total: PacketCounts::default(),
        };
        if measure_from > start {
            tally.open.push_back(Interval {
                start,
                end: measure_from,
                warm_up: true,
                counts: PacketCounts::default(),
            });
        }
        tally
    }

    #[inline]
    pub fn add(&mut self, stamp: &Stamp) {
        let scale = self.nanoseconds_per_tick;
        // Exact enough: 2^53 ticks are 40 days.
        let ns = move |ticks: i64| (ticks as f64 * scale).round() as i64;
        if stamp.intended < self.measure_from {
            match self.open.front_mut().filter(|interval| interval.warm_up) {
                Some(interval) => interval.counts.add(stamp, ns),
                // Sent after the warm-up's interval was closed, or a duplicate of such a one.
                None => self.warm_up.add(stamp, ns),
            }
            return;
        }
        while stamp.sent >= self.next && self.next < self.run_end {
            self.open_next();
        }
        let of_time = |i: &&mut Interval| stamp.sent >= i.start && !i.warm_up;
        match self.open.iter_mut().rev().find(of_time) {
            Some(interval) => interval.counts.add(stamp, ns),
            // A duplicate after its interval was closed: in the totals alone.
            None => self.total.add(stamp, ns),
        }
    }

    fn open_next(&mut self) {
        let end = (self.next + self.length).min(self.run_end);
        self.open.push_back(Interval {
            start: self.next,
            end,
            warm_up: false,
            counts: PacketCounts::default(),
        });
        self.next = end;
    }

    /// The oldest interval when it ended before `settled`: all packets sent until then have their
    /// fate. The last one stays for [`Tally::finish`].
    pub fn close(&mut self, settled: Tsc) -> Option<Interval> {
        while settled >= self.next && self.next < self.run_end {
            // A second in which nothing was sent has its line too.
            self.open_next();
        }
        let first = self.open.front()?;
        if first.end > settled || first.end >= self.run_end {
            return None;
        }
        self.take_first(None)
    }

    /// What is left, when every packet has its fate and the sender stopped at `ended`.
    pub fn finish(&mut self, ended: Tsc) -> Option<Interval> {
        self.take_first(Some(ended))
    }

    fn take_first(&mut self, ended: Option<Tsc>) -> Option<Interval> {
        let mut interval = self.open.pop_front()?;
        if let Some(ended) = ended {
            interval.end = interval.end.min(ended).max(interval.start);
        }
        if interval.warm_up {
            self.warm_up.merge(&interval.counts)
        } else {
            self.total.merge(&interval.counts)
        }
        Some(interval)
    }
}
