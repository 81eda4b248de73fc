//! Whose a ring is, and whether that thread still runs.
//!
//! A thread that claims a ring knows itself by its id in the pid namespace it was made in, which is
//! what libc keeps; `/proc` lists it by its id in the namespace of hopscope. `NSpid` has both.
use hopscope_process::procfs::{self, Status};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Thread {
        /// As `/proc` lists it.
        tid: i32,
        /// Field 22 of its stat, in clock ticks after boot.
        started: Option<u64>,
    },
    /// Ended before anybody looked.
    Gone,
    /// Its libc does not show the id: such a ring is never given to another thread.
    Unknown,
}

impl Owner {
    /// A thread that `/proc` lists.
    pub(super) fn seen(pid: i32, tid: i32) -> Owner {
        Owner::Thread {
            tid,
            started: started(pid, tid),
        }
    }

    /// The thread that knows itself as `inside`.
    pub(super) fn claimed(pid: i32, inside: i32) -> Owner {
        if inside == 0 {
            return Owner::Unknown;
        }
        let namespaces = Status::read(pid, pid).map(|s| ids(&s).len());
        // A process that cannot be read is going away.
        if namespaces.is_ok_and(|n| n <= 1) {
            return Owner::seen(pid, inside);
        }
        let tids = procfs::threads(pid).unwrap_or_default();
        let is_it =
            |tid: &i32| Status::read(pid, *tid).is_ok_and(|s| ids(&s).last() == Some(&inside));
        match tids.into_iter().find(is_it) {
            Some(tid) => Owner::seen(pid, tid),
            None => Owner::Gone,
        }
    }

    pub(super) fn is_gone(self, tasks: &Tasks) -> bool {
        match self {
            Owner::Thread { tid, started } => {
                tasks.tids.binary_search(&tid).is_err() || tasks.is_later(tid, started)
            }
            Owner::Gone => true,
            Owner::Unknown => false,
        }
    }
}

/// The ids of a thread, outermost pid namespace first.
fn ids(status: &Status) -> Vec<i32> {
    let ids = status.field("NSpid").unwrap_or_default();
    ids.split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect()
}

fn started(pid: i32, tid: i32) -> Option<u64> {
    let stat = procfs::text(&format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

/// The threads of a process at one moment.
pub(super) struct Tasks {
    pid: i32,
    tids: Vec<i32>,
    start_times: bool,
}

impl Tasks {
    /// With `start_times` a later thread of the same id is told from the earlier one, which takes
    /// one read for each ring.
    pub(super) fn of(pid: i32, start_times: bool) -> Option<Tasks> {
        let tids = procfs::threads(pid).ok()?;
        Some(Tasks {
            pid,
            tids,
            start_times,
        })
    }

    fn is_later(&self, tid: i32, since: Option<u64>) -> bool {
        self.start_times
            && match (since, started(self.pid, tid)) {
                (Some(since), Some(now)) => since != now,
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_thread_of_the_same_id_is_another() {
        let pid = std::process::id() as i32;
        let owner = Owner::seen(pid, pid);
        let Owner::Thread { tid, started } = owner else {
            panic!("{owner:?}");
        };
        let earlier = Owner::Thread {
            tid,
            started: started.map(|s| s - 1),
        };
        let (quick, exact) = (Tasks::of(pid, false), Tasks::of(pid, true));
        let (quick, exact) = (quick.expect("it is us"), exact.expect("it is us"));
        assert!(!owner.is_gone(&quick) && !owner.is_gone(&exact));
        assert!(!earlier.is_gone(&quick) && earlier.is_gone(&exact));
    }

    #[test]
    fn a_thread_that_is_not_listed_is_gone() {
        let pid = std::process::id() as i32;
        let tasks = Tasks::of(pid, false).expect("it is us");
        // The first process of the machine is no thread of this one.
        assert!(Owner::claimed(pid, 1).is_gone(&tasks));
        assert!(!Owner::claimed(pid, 0).is_gone(&tasks));
    }
}
