//! A stopped thread that makes calls for us must get a processor at once, or the target waits for all
//! programs that compete for it, some milliseconds at each of two dozen switches.
//!
//! Its priority goes back before its registers do. Should we be killed before that, the safety net
//! of the call (frame) makes the thread do it itself, which needs no permission.
use super::procfs::Status;
use nix::libc;
use std::io;

/// What a thread that may be raised goes back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    tid: i32,
    policy: i32,
    /// A thread that another one of its process leads astray in its stack must not hand real-time
    /// priority down to children. Who may not set it may not take it back either, so that a thread
    /// that has to go back by itself keeps the flag.
    flag: i32,
}

const CAP_SYS_NICE: u64 = 1 << 23;
/// Below ours, whatever else is real-time.
const LOWEST: libc::sched_param = libc::sched_param { sched_priority: 1 };
const ORDINARY: libc::sched_param = libc::sched_param { sched_priority: 0 };

impl Before {
    /// `None`: the thread stays as it is. It is none that competes with ordinary ones, or we have no
    /// real-time priority ourselves.
    pub(super) fn of(tid: i32, status: &Status) -> Option<Before> {
        let policy = |tid| {
            // SAFETY: takes a number only.
            unsafe { libc::sched_getscheduler(tid) }
        };
        let own = policy(tid);
        let ordinary = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
        let competes = ordinary.contains(&(own & !libc::SCHED_RESET_ON_FORK));
        (competes && policy(0) == libc::SCHED_FIFO).then_some(Before {
            tid,
            policy: own,
            flag: match may_raise_itself(status) {
                true => 0,
                false => libc::SCHED_RESET_ON_FORK,
            },
        })
    }

    /// Arguments of `sched_setscheduler`, made by the thread itself, with the parameter (zeros) at `at`.
    pub(super) fn own_call(self, at: u64) -> (i64, [u64; 6]) {
        let policy = (self.policy | self.flag) as u64;
        (libc::SYS_sched_setscheduler, [0, policy, at, 0, 0, 0])
    }

    /// Only while the thread is on its way through a frame that lowers it again.
    pub(super) fn raise(self) -> Option<Raised> {
        let kept = self.policy & libc::SCHED_RESET_ON_FORK;
        let raised = set(self.tid, libc::SCHED_FIFO | self.flag | kept, &LOWEST);
        match raised {
            Ok(()) => Some(Raised(self)),
            Err(e) => {
                log::debug!("thread {} competes for its processor: {e}", self.tid);
                None
            }
        }
    }
}

/// A thread with real-time priority, until this is dropped.
#[derive(Debug)]
pub(super) struct Raised(Before);

impl Drop for Raised {
    fn drop(&mut self) {
        match set(self.0.tid, self.0.policy, &ORDINARY) {
            Err(e) if e.raw_os_error() != Some(libc::ESRCH) => {
                log::warn!("thread {} keeps real-time priority: {e}", self.0.tid);
            }
            _ => {}
        }
    }
}

fn set(tid: i32, policy: i32, parameters: &libc::sched_param) -> io::Result<()> {
    // SAFETY: the structure is live and only read. Nice values are not touched.
    match unsafe { libc::sched_setscheduler(tid, policy, parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the thread could have that priority without us.
fn may_raise_itself(status: &Status) -> bool {
    let effective = status.field("CapEff");
    let effective = effective.and_then(|c| u64::from_str_radix(c, 16).ok());
    let user = status
        .field("Uid")
        .and_then(|ids| ids.split_whitespace().nth(1));
    // In a user namespace of its own a process has capabilities that do not count here.
    user == Some("0") && effective.is_some_and(|c| c & CAP_SYS_NICE != 0)
}
