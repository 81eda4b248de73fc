//! Which case is next: the first that may run beside those that do.
use super::Job;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct Places {
    left: Mutex<Left>,
    /// One of those that run in turn has ended.
    ended: Condvar,
}

struct Left {
    /// In the order in which they are to start.
    jobs: Vec<Job>,
    has_turn: bool,
}

impl Places {
    pub(super) fn new(jobs: Vec<Job>) -> Places {
        Places {
            left: Mutex::new(Left {
                jobs,
                has_turn: false,
            }),
            ended: Condvar::new(),
        }
    }

    /// Waits where all that is left has to run in turn, and one does. `None` when nothing is left.
    pub(super) fn take(&self) -> Option<Job> {
        let mut left = self.lock();
        loop {
            if left.jobs.is_empty() {
                return None;
            }
            let has_turn = left.has_turn;
            let next = left.jobs.iter().position(|job| !(job.in_turn && has_turn));
            if let Some(next) = next {
                let job = left.jobs.remove(next);
                left.has_turn |= job.in_turn;
                return Some(job);
            }
            left = self
                .ended
                .wait(left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn give_back(&self, job: &Job) {
        if job.in_turn {
            self.lock().has_turn = false;
            self.ended.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
