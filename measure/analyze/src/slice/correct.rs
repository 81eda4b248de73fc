//! NetSlice's correction. With T' what two stamps read: a region without other hits inside is
//! T' − tau_o; with hits inside, T' − (what those cost) − tau_o, and no region's cost is taken for
//! that of another. A record begins before the clock is read for the stamp at which it is begun, and
//! the kernel programs count that to what probes cost before this stamp: where there are stamps of the
//! call before, it is in their sum, otherwise it lies outside. Handing it over costs time after the
//! last stamp.
use super::PieceFlags;
use hopscope_event::slice::{Inner, Point, SliceCalibration, SliceEntry, SliceEvent, StampWord};

/// The constants of a recording, in the unit of its stamps.
pub(super) struct Constants {
    tau_o: Option<u32>,
    /// By point; `None`: not measured. Only of time: what a hit counts of another event is not.
    hits: [Option<u32>; Point::MAX],
    is_time: bool,
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
            is_time,
        }
    }

    /// What is to be taken out of the time between the first and the last of `stamps`, which are in
    /// the order of time; `None` when tau_o was not measured.
    pub(super) fn correction(&self, stamps: &[(Point, StampWord)]) -> (Option<u64>, PieceFlags) {
        let mut flags = PieceFlags::NONE;
        let mut out = u64::from(self.tau_o.unwrap_or(0));
        let (Some((_, after_first)), Some(between)) = (
            stamps.split_first(),
            stamps.get(1..stamps.len().saturating_sub(1)),
        ) else {
            return (self.tau_o.map(u64::from), flags);
        };
        for (_, word) in after_first {
            match word.inner() {
                Inner::Ns(0) => {}
                Inner::Ns(ns) if self.is_time => out += u64::from(ns),
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
}
