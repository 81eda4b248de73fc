//! When one thread's requests are due.
use super::drive::Worker;
use super::{LoadError, LoadPlan, Pace, SECOND_NS};
use hopscope_openloop::{Pending, Schedule, SplitMix64};

/// The intended times of one thread's requests.
pub(super) struct Due {
    schedule: Option<Pending>,
    /// Measured requests that may still be asked.
    left: u64,
}

impl Due {
    /// Each thread has the share of the rate that it has of the connections. Constant schedules of
    /// several threads are shifted against each other; Poisson ones add up to a Poisson one.
    pub(super) fn new(
        plan: &LoadPlan,
        worker: &Worker<'_>,
        thread: usize,
        connections: usize,
    ) -> Result<Due, LoadError> {
        let schedule = match plan.pace {
            Pace::Closed | Pace::Together => None,
            Pace::Open { rate_hz, arrivals } => {
                let share = rate_hz * connections as f64 / plan.connections as f64;
                let offset_ns = thread as f64 * 1e9 / rate_hz;
                let seed = plan.seed.wrapping_add(thread as u64);
                let random = SplitMix64::new(seed);
                let schedule = Schedule::new(arrivals, share, SECOND_NS, random);
                let mut schedule = schedule.ok_or(LoadError::Rate { rate_hz })?;
                schedule.shift(offset_ns);
                Some(Pending::new(schedule))
            }
        };
        Ok(Due {
            schedule,
            left: worker.count,
        })
    }

    /// The next intended time that has come and may be asked.
    pub(super) fn take(&mut self, worker: &Worker<'_>, now_ns: u64) -> Option<u64> {
        let due_ns = self.schedule.as_ref().map_or(now_ns, Pending::due);
        if due_ns > now_ns || self.is_over(worker, due_ns) {
            return None;
        }
        if worker.is_measured(due_ns) {
            self.left -= 1;
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.take();
        }
        Some(due_ns)
    }

    /// Nothing more is asked at this time or later.
    fn is_over(&self, worker: &Worker<'_>, now_ns: u64) -> bool {
        worker.is_over(now_ns) || (self.left == 0 && worker.is_measured(now_ns))
    }

    pub(super) fn ended(&self, worker: &Worker<'_>, now_ns: u64) -> bool {
        let next = self.schedule.as_ref().map_or(now_ns, Pending::due);
        worker.is_over(now_ns) || (self.left == 0 && worker.is_measured(next))
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.schedule.as_ref().map(Pending::due)
    }
}
