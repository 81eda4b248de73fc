//! When one thread's requests are due.
use super::drive::Worker;
use super::{LoadError, Pace, Plan};
use crate::pace::Schedule;

/// The intended times of one thread's requests.
pub(super) struct Due {
    schedule: Option<Schedule>,
    /// Measured requests that may still be asked.
    left: u64,
}

impl Due {
    /// Each thread has the share of the rate that it has of the connections. Constant schedules of
    /// several threads are shifted against each other; Poisson ones add up to a Poisson one.
    pub(super) fn new(
        plan: &Plan,
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
                let schedule = Schedule::new(share, arrivals, seed, offset_ns);
                Some(schedule.ok_or(LoadError::Rate { rate_hz })?)
            }
        };
        Ok(Due {
            schedule,
            left: worker.count,
        })
    }

    /// The next intended time that has come and may be asked.
    pub(super) fn take(&mut self, worker: &Worker<'_>, now_ns: u64) -> Option<u64> {
        let due_ns = self.schedule.as_ref().map_or(now_ns, Schedule::due_ns);
        if due_ns > now_ns || self.is_over(worker, due_ns) {
            return None;
        }
        if worker.is_measured(due_ns) {
            self.left -= 1;
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.advance();
        }
        Some(due_ns)
    }

    /// Nothing more is asked at this time or later.
    fn is_over(&self, worker: &Worker<'_>, now_ns: u64) -> bool {
        worker.is_over(now_ns) || (self.left == 0 && worker.is_measured(now_ns))
    }

    pub(super) fn ended(&self, worker: &Worker<'_>, now_ns: u64) -> bool {
        let next = self.schedule.as_ref().map_or(now_ns, Schedule::due_ns);
        worker.is_over(now_ns) || (self.left == 0 && worker.is_measured(next))
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.schedule.as_ref().map(Schedule::due_ns)
    }
}
