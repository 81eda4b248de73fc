//! Interrupts that a signal's stop took with it.
use super::*;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::process::Command;

/// Leaves a seized thread stopped at a signal that it ignores, which its tracer has yet to see. No interrupt is pending:
/// the same holds where one came so late that this stop took it with it.
pub(in super::super) fn stop_by_signal(tid: i32) {
    let pid = Pid::from_raw(tid);
    kill(pid, Signal::SIGURG).expect("it is there");
    let flags = WaitPidFlag::WSTOPPED | WaitPidFlag::WNOWAIT | WaitPidFlag::__WALL;
    waitid(Id::Pid(pid), flags).expect("it stops");
}

#[test]
fn an_interrupt_that_a_signal_took_with_it_is_asked_for_again() {
    let mut sleeps = Command::new("sleep").arg("1000").spawn().expect("started");
    let tid = sleeps.id() as i32;
    let seized = seize(tid, tid);
    stop_by_signal(tid);
    let mut stopped = StoppedProcess::new(tid);
    let (mut timeout, asked) = (StopTimeout::new(), Instant::now());
    let stands = loop {
        match stopped.look(tid, asked) {
            Ok(false) if timeout.wait(1) => {}
            looked => break looked,
        }
    };
    drop(stopped);
    // Before anything is asserted: it sleeps for long.
    let ended = sleeps.kill().and_then(|()| sleeps.wait());
    assert!(matches!(seized, Ok(Some(_))));
    assert!(stands.expect("it is there"), "it runs, and is traced");
    ended.expect("killed");
}
