//! A schedule with its next time in sight.
use crate::Schedule;

#[derive(Debug, Clone)]
pub struct Pending {
    schedule: Schedule,
    due: u64,
}

impl Pending {
    pub fn new(mut schedule: Schedule) -> Pending {
        let due = schedule.next_due();
        Pending { schedule, due }
    }

    /// The next time; it stays until [`Pending::take`].
    pub fn due(&self) -> u64 {
        self.due
    }

    pub fn take(&mut self) -> u64 {
        std::mem::replace(&mut self.due, self.schedule.next_due())
    }

    /// Moves the whole schedule so that the next time is `at`.
    pub fn begin_at(&mut self, at: u64) {
        self.schedule.shift(at as f64 - self.due as f64);
        self.due = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Arrivals, SplitMix64};

    #[test]
    fn times_stay_until_they_are_taken_and_move_together() {
        let schedule = Schedule::new(Arrivals::Constant, 1e6, 1e9, SplitMix64::new(1));
        let mut pending = Pending::new(schedule.expect("a rate"));
        assert_eq!((pending.due(), pending.due()), (0, 0));
        pending.begin_at(7);
        assert_eq!(
            [pending.take(), pending.take(), pending.due()],
            [7, 1_007, 2_007]
        );
    }
}
