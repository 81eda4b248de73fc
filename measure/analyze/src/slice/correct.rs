//! NetSlice's correction. With T' what two stamps read: a region without other hits inside is
//! T' − tau_o; with hits inside, T' − (what those cost) − tau_o, and no region's cost is taken for
//! that of another. A record begins before the clock is read for the stamp at which it is begun, and
//! the kernel programs count that to what probes cost before this stamp: where there are stamps of the
//! call before, it is in their sum, otherwise it lies outside. Handing it over costs time after the
//! last stamp.
//!
//! While a packet waits, probes that run on its processor for others prolong nothing: it goes on when its queue, its
//! window or its reader's program says so. There only what is its own is taken out, and a time with hits of others
//! in it is uncertain. A reader that was woken waits for its processor, which the probes keep busy.
use super::PieceFlags;
use hopscope_event::slice::{Inner, Point, SliceCalibration, SliceEntry, SliceEvent, StampWord};

/// The constants of a recording, in the unit of its stamps.
pub(super) struct Constants {
    tau_o: Option<u32>,
    /// By point; `None`: not measured. Only of time: what a hit counts of another event is not.
    hits: [Option<u32>; Point::MAX],
    begin: u32,
    hand_over: u32,
    is_time: bool,
}

/// Between these a packet may lie where nobody works on it.
const WAITS: [(Point, Point); 3] = [
    (Point::TxTransport, Point::TxIpOut),
    (Point::TxQdiscEnqueue, Point::TxQdiscDequeue),
    // Without stamps of waking between: nobody was woken by it, or no hook tells.
    (Point::RxSocket, Point::RxCopy),
];

fn waits(from: Point, to: Point) -> bool {
    let within = |wait: &(Point, Point)| from <= wait.0 && wait.1 <= to;
    WAITS.iter().any(within)
}

impl Constants {
    pub(super) fn of(entry: &SliceEntry) -> Constants {
        let SliceCalibration { tau_o, hits, .. } = &entry.calibration;
        let is_time = entry.event == SliceEvent::Time;
        let mut by_point = [None; Point::MAX];
        for cost in hits.iter().filter(|_| is_time) {
            by_point[cost.point as usize] = Some(cost.hit.mode);
        }
        Constants {
            tau_o: tau_o.map(|tau| tau.mode),
            hits: by_point,
            begin: entry.calibration.begin.map_or(0, |begin| begin.mode),
            hand_over: entry.calibration.hand_over.map_or(0, |cost| cost.mode),
            is_time,
        }
    }

    /// What is to be taken out of the time between the first and the last of `stamps`, which are in
    /// the order of time; `None` when tau_o was not measured.
    pub(super) fn correction(&self, stamps: &[(Point, StampWord)]) -> (Option<u64>, PieceFlags) {
        let mut flags = PieceFlags::NONE;
        let mut out = u64::from(self.tau_o.unwrap_or(0));
        let Some(between) = stamps.get(1..stamps.len().saturating_sub(1)) else {
            return (self.tau_o.map(u64::from), flags);
        };
        for pair in stamps.windows(2) {
            let [(from, _), (to, word)] = pair else {
                continue;
            };
            match word.inner() {
                Inner::Ns(0) => {}
                Inner::Ns(ns) if self.is_time => {
                    let inside = u32::from(ns);
                    let known = match waits(*from, *to) {
                        true => inside.min(self.own_in_wait(*to)),
                        false => inside,
                    };
                    if known < inside {
                        flags |= PieceFlags::OTHERS_IN_WAIT;
                    }
                    out += u64::from(known);
                }
                Inner::Ns(_) => flags |= PieceFlags::COST_UNKNOWN,
                Inner::Over => flags |= PieceFlags::INNER_OVER,
                Inner::OtherCpu => flags |= PieceFlags::OTHER_CPU,
            }
        }
        for (point, _) in between {
            match self.hits[*point as usize] {
                Some(ns) => out += u64::from(ns),
                None => flags |= PieceFlags::COST_UNKNOWN,
            }
        }
        (self.tau_o.map(|_| out), flags)
    }

    /// What probes cost for the packet itself where it has waited: its record's beginning; or the end of its sender's
    /// call and the beginning of its reader's, where one thread does both.
    fn own_in_wait(&self, to: Point) -> u32 {
        let hit = |point: Point| self.hits[point as usize].unwrap_or(0);
        match to.is_tx() {
            true => self.begin,
            false => hit(Point::TxSyscall) + hit(Point::RxReturn),
        }
    }

    /// What the probes of a packet's own way cost, from the beginning of its record to its end; `None`: not known.
    pub(super) fn of_own(&self, points: impl Iterator<Item = Point>) -> Option<u64> {
        let hits = points.map(|point| self.hits[point as usize].map(u64::from));
        let hits: Option<u64> = hits.sum();
        Some(hits? + u64::from(self.begin) + u64::from(self.hand_over))
    }
}
