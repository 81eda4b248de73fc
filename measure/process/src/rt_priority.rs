//! Not being preempted while a thread of a target is stopped: others would take our processor
//! meanwhile, and so would the first thread that is resumed, while the rest are still stopped.
use super::procfs;
use nix::libc;
use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Real-time scheduling of this thread until it is dropped, where that is permitted
/// (CAP_SYS_NICE), on a processor that the target's running threads do not use, and SIGCHLD
/// blocked, so that it can be waited for. Whoever waits for the target meanwhile must sleep, not
/// yield: the target may need our processor. Several may be alive in one thread.
pub struct RealTime {
    /// What is saved belongs to this thread.
    _here: PhantomData<*const ()>,
}

thread_local! {
    static SAVED: RefCell<Saved> = const { RefCell::new(Saved::NONE) };
}

/// How this thread was before the first of its [`RealTime`]s.
struct Saved {
    depth: u32,
    scheduling: Option<libc::sched_attr>,
    affinity: Option<libc::cpu_set_t>,
    unblock: bool,
}

impl Saved {
    const NONE: Saved = Saved {
        depth: 0,
        scheduling: None,
        affinity: None,
        unblock: false,
    };
}

/// The lowest real-time priority: above all ordinary threads, below whatever else is real-time.
const LOWEST: libc::sched_param = libc::sched_param { sched_priority: 1 };
/// linux/sched.h
const SCHED_DEADLINE: i32 = 6;
const SCHED_RESET_ON_FORK: i32 = 0x4000_0000;
/// Threads whose processor is looked up; of more there is hardly one that is free.
const THREADS_LOOKED_AT: usize = 64;

static REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether real-time scheduling was refused at any time: the recorder may have been preempted while
/// a thread was stopped.
pub fn was_refused() -> bool {
    REFUSED.load(Ordering::Relaxed)
}

impl RealTime {
    /// Before the first of `tids`, threads of `pid`, is stopped.
    pub fn begin(pid: i32, tids: &[i32]) -> RealTime {
        SAVED.with_borrow_mut(|saved| {
            saved.depth += 1;
            if saved.depth == 1 {
                saved.scheduling = to_real_time();
                saved.affinity = away_from(&processors(pid, tids));
                saved.unblock = block_child_signal();
            }
        });
        RealTime { _here: PhantomData }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        SAVED.with_borrow_mut(|saved| {
            saved.depth -= 1;
            if saved.depth > 0 {
                return;
            }
            let before = std::mem::replace(saved, Saved::NONE);
            if before.unblock {
                change_child_signal(libc::SIG_UNBLOCK);
            }
            if let Some(set) = before.affinity {
                // SAFETY: 0 is the calling thread; the set is live.
                unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
            }
            // Going back needs no permission: the nice value is what it was.
            if let Some(scheduling) = before.scheduling
                && let Err(e) = set_scheduling(&scheduling)
            {
                log::warn!("the recorder keeps its real-time priority: {e}");
            }
        });
    }
}

/// What this thread had before; `None` when nothing was changed. Whoever is real-time already stays
/// as it is.
fn to_real_time() -> Option<libc::sched_attr> {
    let before = scheduling().ok()?;
    let policy = before.sched_policy as i32;
    if [libc::SCHED_FIFO, libc::SCHED_RR, SCHED_DEADLINE].contains(&policy) {
        return None;
    }
    // Only a privileged thread may take SCHED_RESET_ON_FORK away, also from itself.
    let reset = before.sched_flags & libc::SCHED_FLAG_RESET_ON_FORK as u64 != 0;
    let flag = if reset { SCHED_RESET_ON_FORK } else { 0 };
    // SAFETY: 0 is the calling thread; the structure is live.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | flag, &LOWEST) } != 0 {
        REFUSED.store(true, Ordering::Relaxed);
        return None;
    }
    Some(before)
}

/// Policy, flags, nice value and slice of this thread.
fn scheduling() -> io::Result<libc::sched_attr> {
    // SAFETY: 0 is the calling thread; the structure is plain integers, live, and of the size that
    // is given.
    unsafe {
        let mut now: libc::sched_attr = std::mem::zeroed();
        let size = size_of_val(&now);
        match libc::syscall(libc::SYS_sched_getattr, 0, &raw mut now, size, 0) {
            0 => Ok(now),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_scheduling(to: &libc::sched_attr) -> io::Result<()> {
    // SAFETY: 0 is the calling thread; the structure is live and says its own size.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, ptr::from_ref(to), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Where the running ones of `tids` run.
fn processors(pid: i32, tids: &[i32]) -> Vec<usize> {
    let tids = tids.iter().take(THREADS_LOOKED_AT);
    tids.filter_map(|tid| procfs::running_on(pid, *tid))
        .collect()
}

/// Leaves these processors to the target, if others are allowed to us. Gives what was allowed.
fn away_from(taken: &[usize]) -> Option<libc::cpu_set_t> {
    // SAFETY: 0 is the calling thread, the set is live and of the size that is given; CPU_CLR and
    // CPU_COUNT touch nothing but the set, in bounds.
    unsafe {
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed) != 0 {
            return None;
        }
        let mut rest = allowed;
        let highest = libc::CPU_SETSIZE as usize;
        for processor in taken.iter().filter(|p| **p < highest) {
            libc::CPU_CLR(*processor, &mut rest);
        }
        let some = libc::CPU_COUNT(&rest);
        let moved = some > 0
            && some < libc::CPU_COUNT(&allowed)
            && libc::sched_setaffinity(0, size_of_val(&rest), &raw const rest) == 0;
        moved.then_some(allowed)
    }
}

/// True when it was not blocked before.
fn block_child_signal() -> bool {
    change_child_signal(libc::SIG_BLOCK)
}

fn change_child_signal(how: i32) -> bool {
    // SAFETY: the sets are initialised and live; only this thread's mask changes.
    unsafe {
        let (mut set, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let changed = libc::pthread_sigmask(how, &raw const set, &raw mut before) == 0;
        changed && libc::sigismember(&raw const before, libc::SIGCHLD) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (i32, usize, bool) {
        // SAFETY: 0 is the calling thread; the sets are live.
        unsafe {
            let mut allowed: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&allowed), &raw mut allowed);
            let mut mask = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut mask);
            let blocked = libc::sigismember(&raw const mask, libc::SIGCHLD) == 1;
            let policy = libc::sched_getscheduler(0);
            (policy, libc::CPU_COUNT(&allowed) as usize, blocked)
        }
    }

    fn attributes() -> [i64; 6] {
        let now = scheduling().expect("our own");
        [
            now.sched_policy.into(),
            now.sched_flags as i64,
            now.sched_nice.into(),
            now.sched_priority.into(),
            now.sched_runtime as i64,
            now.sched_period as i64,
        ]
    }

    /// Run by careful people as `chrt --idle`, `chrt --batch`, `chrt --reset-on-fork`.
    #[test]
    fn every_policy_but_real_time_is_raised_and_restored() {
        let pid = std::process::id() as i32;
        let policies = [libc::SCHED_OTHER, libc::SCHED_BATCH, libc::SCHED_IDLE];
        for (policy, flag) in policies
            .into_iter()
            .flat_map(|policy| [(policy, 0), (policy, SCHED_RESET_ON_FORK)])
        {
            // A thread of its own: an unprivileged one does not get rid of the flag.
            let changed = std::thread::spawn(move || {
                let none = libc::sched_param { sched_priority: 0 };
                // SAFETY: 0 is the calling thread; the structure is live.
                let set = unsafe { libc::sched_setscheduler(0, policy | flag, &raw const none) };
                assert_eq!(set, 0, "{policy} {flag:x}");
                let before = attributes();
                let real_time = RealTime::begin(pid, &[]);
                let meanwhile = attributes();
                drop(real_time);
                assert_eq!(attributes(), before);
                meanwhile
            });
            let meanwhile = changed.join().expect("restored");
            assert!(
                meanwhile[0] == i64::from(libc::SCHED_FIFO) || was_refused(),
                "{policy} {flag:x}: neither raised nor told"
            );
            let kept = meanwhile[1] & libc::SCHED_FLAG_RESET_ON_FORK as i64 != 0;
            assert_eq!(kept, flag != 0, "{policy}");
        }
    }

    #[test]
    fn the_thread_is_as_before_when_the_last_is_dropped() {
        let before = state();
        let pid = std::process::id() as i32;
        let outer = RealTime::begin(pid, &[pid]);
        let inner = RealTime::begin(pid, &[pid]);
        assert!(state().2);
        // Not in the order of a stack: a child may be resumed after its parent.
        drop(outer);
        assert!(state().2);
        drop(inner);
        assert_eq!(state(), before);
    }
}
