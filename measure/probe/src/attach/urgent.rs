//! Not being preempted while a process stands still: others would take our processor meanwhile, and
//! so would the first of its threads that is let go, while the rest still stand.
use nix::libc;

/// Real-time scheduling of this thread until it is dropped, where that is permitted
/// (CAP_SYS_NICE). Only for code that does not wait for the target, which might need our processor.
pub struct Urgent {
    before: Option<(i32, libc::sched_param)>,
}

/// The lowest real-time priority: above all ordinary threads, below whatever else is real-time.
const LOWEST: libc::sched_param = libc::sched_param { sched_priority: 1 };

impl Urgent {
    pub fn begin() -> Urgent {
        let mut before = libc::sched_param { sched_priority: 0 };
        // SAFETY: 0 is the calling thread; the structures are live.
        let before = unsafe {
            let policy = libc::sched_getscheduler(0);
            let ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH].contains(&policy);
            let urgent = ordinary
                && libc::sched_getparam(0, &raw mut before) == 0
                && libc::sched_setscheduler(0, libc::SCHED_FIFO, &LOWEST) == 0;
            urgent.then_some((policy, before))
        };
        Urgent { before }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if let Some((policy, parameters)) = self.before {
            // SAFETY: 0 is the calling thread; the structure is live. Going back to an ordinary
            // policy needs no permission, and the nice value was never changed.
            unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
        }
    }
}
