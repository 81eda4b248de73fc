//! Whose a ring is, and whether that thread still runs.
//!
//! A thread that claims a ring knows itself by its id in the pid namespace it was made in, which is
//! what libc keeps; `/proc` lists it by its id in the namespace of hopscope. `NSpid` has both.
use hopscope_process::procfs::{self, Status};
use std::collections::HashMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Thread {
        /// As `/proc` lists them.
        pid: i32,
        tid: i32,
        /// Field 22 of its stat, in clock ticks after boot.
        started: Option<u64>,
    },
    /// Ended before anybody looked.
    Gone,
    /// The same, of a forked child, by the ids that both had for themselves.
    GoneChild { pid: i32, tid: i32 },
    /// Its libc does not show the id: such a ring is never given to another thread.
    Unknown,
}

impl Owner {
    /// A thread that `/proc` lists.
    pub(super) fn seen(pid: i32, tid: i32) -> Owner {
        Owner::Thread {
            pid,
            tid,
            started: started(pid, tid),
        }
    }

    /// The thread that knows itself as `inside`.
    pub(super) fn claimed(pid: i32, inside: i32) -> Owner {
        if inside == 0 {
            return Owner::Unknown;
        }
        if !is_nested(pid) {
            return Owner::seen(pid, inside);
        }
        let tids = procfs::threads(pid).unwrap_or_default();
        let is_it = |tid: &i32| procfs::tid_inside(pid, *tid).is_ok_and(|id| id == inside);
        match tids.into_iter().find(is_it) {
            Some(tid) => Owner::seen(pid, tid),
            None => Owner::Gone,
        }
    }

    pub(super) fn pid(self) -> Option<i32> {
        match self {
            Owner::Thread { pid, .. } => Some(pid),
            Owner::Gone | Owner::GoneChild { .. } | Owner::Unknown => None,
        }
    }

    pub(super) fn is_gone(self, tasks: &mut Tasks) -> bool {
        match self {
            Owner::Thread { pid, tid, started } => {
                let is_there = tasks.of(pid).is_some_and(|t| t.binary_search(&tid).is_ok());
                !is_there || tasks.is_later(pid, tid, started)
            }
            Owner::Gone | Owner::GoneChild { .. } => true,
            Owner::Unknown => false,
        }
    }
}

/// Whether it is in another pid namespace than hopscope. A process that cannot be read is going away.
fn is_nested(pid: i32) -> bool {
    let ids = |status: Status| {
        let ids = status.field("NSpid").unwrap_or_default();
        ids.split_whitespace().count()
    };
    Status::read(pid, pid).is_ok_and(|status| ids(status) > 1)
}

fn started(pid: i32, tid: i32) -> Option<u64> {
    let stat = procfs::text(&format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

/// The threads of processes at one moment.
pub(super) struct Tasks {
    /// Ascending; none where the process is gone.
    tids: HashMap<i32, Option<Vec<i32>>>,
    start_times: bool,
}

impl Tasks {
    /// With `start_times` a later thread of the same id is told from the earlier one, which takes
    /// one read for each ring.
    pub(super) fn new(start_times: bool) -> Tasks {
        Tasks {
            tids: HashMap::new(),
            start_times,
        }
    }

    pub(super) fn of(&mut self, pid: i32) -> Option<&[i32]> {
        let tids = self.tids.entry(pid);
        tids.or_insert_with(|| procfs::threads(pid).ok()).as_deref()
    }

    fn is_later(&self, pid: i32, tid: i32, since: Option<u64>) -> bool {
        self.start_times
            && match (since, started(pid, tid)) {
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
        let Owner::Thread { started, .. } = owner else {
            panic!("{owner:?}");
        };
        let earlier = Owner::Thread {
            pid,
            tid: pid,
            started: started.map(|s| s - 1),
        };
        let (mut quick, mut exact) = (Tasks::new(false), Tasks::new(true));
        assert!(!owner.is_gone(&mut quick) && !owner.is_gone(&mut exact));
        assert!(!earlier.is_gone(&mut quick) && earlier.is_gone(&mut exact));
    }

    #[test]
    fn a_thread_that_is_not_listed_is_gone() {
        let pid = std::process::id() as i32;
        let mut tasks = Tasks::new(false);
        // The first process of the machine is no thread of this one.
        assert!(Owner::claimed(pid, 1).is_gone(&mut tasks));
        assert!(!Owner::claimed(pid, 0).is_gone(&mut tasks));
    }
}
