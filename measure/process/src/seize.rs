//! Becoming a thread's tracer, and letting go of threads that did not stop in time.
use super::AttachError;
use super::procfs::Status;
use super::ptrace::{self, Waited};
use super::restart_syscall;
use super::stop_timeout::StopTimeout;
use nix::libc;
use nix::unistd::gettid;
use std::cell::RefCell;

thread_local! {
    /// Threads that this thread asked to stop, and that did not: only who stands still can be let go, and only by
    /// the thread that traces it.
    static LATE: RefCell<Vec<i32>> = const { RefCell::new(Vec::new()) };
}

/// Of another hopscope's stop the end is waited for, by who holds no thread itself.
pub(super) fn seize_in_turn(pid: i32, tid: i32) -> Result<Option<i32>, AttachError> {
    let mut timeout = StopTimeout::new();
    loop {
        match seize(pid, tid) {
            Err(AttachError::AnotherHopscope { .. }) if timeout.wait_running() => {}
            seized => return seized,
        }
    }
}

/// `None` when the thread is gone.
pub(super) fn seize(pid: i32, tid: i32) -> Result<Option<i32>, AttachError> {
    match ptrace::seize(tid) {
        Ok(()) => Ok(Some(tid)),
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            let Ok(status) = Status::read(pid, tid) else {
                return Ok(None);
            };
            let tracer = status.field("TracerPid").and_then(|t| t.parse().ok());
            let ours = tracer == Some(gettid().as_raw());
            match (status.state(), tracer.unwrap_or(0)) {
                // An exiting thread refuses too. Nobody is told of its end before its tracer was.
                ('Z' | 'X', _) => {
                    if ours {
                        let _ = ptrace::poll(tid);
                    }
                    Ok(None)
                }
                (_, 0) => Err(AttachError::NoPermission { pid, uid: 0 }),
                // It did not stop when it was asked the last time.
                _ if ours => Ok(Some(tid)),
                (_, tracer) => Err(AttachError::traced_by(pid, tracer)),
            }
        }
        Err(source) => Err(AttachError::ptrace(pid, tid, "seize")(source)),
    }
}

/// Lets seized threads go, those that have not stopped as soon as they do ([`detach_late_stoppers`]).
pub(super) fn let_go(pid: i32, tids: &[i32]) {
    for &tid in tids {
        if !goes_on(tid) {
            log::info!(
                "thread {tid} of process {pid} has not stopped; it is released when it does"
            );
            LATE.with_borrow_mut(|late| late.push(tid));
        }
    }
}

/// Somebody waits for this thread again.
pub(super) fn is_awaited(tid: i32) {
    LATE.with_borrow_mut(|late| late.retain(|t| *t != tid));
}

/// Threads that were let go, and have still to stop.
pub(super) fn late() -> Vec<i32> {
    LATE.with_borrow(Clone::clone)
}

/// Threads that stop after nobody waited for them any more would stand still for as long as this thread lives: it has to
/// look again and again. Costs nothing where there are none.
pub fn detach_late_stoppers() {
    LATE.with_borrow_mut(|late| late.retain(|tid| !goes_on(*tid)));
}

/// Whether nothing is to be done about it any more.
fn goes_on(tid: i32) -> bool {
    match ptrace::poll(tid) {
        Ok(Waited::NotYet) => false,
        Ok(Waited::Stopped) => {
            // Only while it stands still; what it cannot be told, it is not.
            let _ = ptrace::regs(tid).and_then(|mut regs| restart_syscall::ensure(tid, &mut regs));
            ptrace::detach(tid).is_ok()
        }
        // The stop that it was asked for is still to come.
        Ok(Waited::Signal(signal)) => ptrace::cont_to_interrupt(tid, signal).is_err(),
        Ok(Waited::SystemCall) => ptrace::cont_to_interrupt(tid, 0).is_err(),
        Ok(Waited::Gone) | Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::rt_priority::{self, RealTime};
    use super::super::stop::signalled;
    use super::*;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;
    use std::process::Command;

    /// A thread that the signal stopped after it had looked for an interrupt, and before it could stop for that.
    #[test]
    fn who_is_let_go_while_a_signal_stops_it_goes_on() {
        let mut sleeps = Command::new("sleep").arg("1000").spawn().expect("started");
        let tid = sleeps.id() as i32;
        let seized = seize(tid, tid);
        signalled::stop_by_signal(tid);
        let_go(tid, &[tid]);
        let mut timeout = StopTimeout::new();
        let is_late = || LATE.with_borrow(|late| late.contains(&tid));
        let late = is_late();
        while is_late() && timeout.wait(1) {
            detach_late_stoppers();
        }
        let status = Status::read(tid, tid);
        // Before anything is asserted: it sleeps for long.
        let ended = sleeps.kill().and_then(|()| sleeps.wait());
        assert!(matches!(seized, Ok(Some(_))) && late);
        assert_eq!(status.expect("it runs on").field("TracerPid"), Some("0"));
        ended.expect("killed");
    }

    /// Only one of the two can run: the target does not stop before we sleep.
    #[test]
    fn who_stops_late_is_let_go() {
        let mut spins = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("started");
        let tid = spins.id() as i32;
        let allowed = sched_getaffinity(Pid::from_raw(0)).expect("ours");
        let mut one = CpuSet::new();
        let first = (0..CpuSet::count()).find(|n| allowed.is_set(*n) == Ok(true));
        one.set(first.expect("we run")).expect("one of them");
        for pid in [tid, 0] {
            sched_setaffinity(Pid::from_raw(pid), &one).expect("pinned");
        }
        let is_late = {
            let _real_time = RealTime::begin(tid, &[]);
            let seized = seize(tid, tid);
            let asked = ptrace::interrupt(tid);
            let_go(tid, &[tid]);
            let late = LATE.with_borrow(|late| late.contains(&tid));
            matches!(seized, Ok(Some(_))) && asked.is_ok() && late
        };
        while LATE.with_borrow(|late| !late.is_empty()) {
            detach_late_stoppers();
            std::thread::yield_now();
        }
        let status = Status::read(tid, tid);
        // Before anything is asserted: it spins.
        let ended = spins.kill().and_then(|()| spins.wait());
        assert!(
            is_late || rt_priority::was_refused(),
            "it stopped on a processor that was taken"
        );
        let status = status.expect("it runs on");
        // Whatever it does, it is not stopped.
        assert!(!matches!(status.state(), 't' | 'T'), "{}", status.state());
        assert_eq!(status.field("TracerPid"), Some("0"));
        ended.expect("killed");
    }
}
