//! Job control, and signals that arrive while a process is stopped.
use super::target::{Target, compile};
use hopscope_process::{stop_all, stop_one};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::sync::OnceLock;

fn waiting(name: &str) -> Target {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let mut target = Target::start(PROGRAM.get_or_init(|| compile("filtered")), name);
    assert_eq!(target.line(), "ready");
    assert_eq!(target.line(), "filtered");
    target
}

fn state(pid: i32) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(") ").next().unwrap().chars().next().unwrap()
}

/// A detached thread goes back into the job-control stop by itself, a moment later.
fn is_stopped_again(pid: i32) -> bool {
    (0..10_000_000).any(|_| {
        std::thread::yield_now();
        state(pid) == 'T'
    })
}

#[test]
fn a_stopped_process_stays_stopped() {
    let mut target = waiting("nothing");
    let pid = Pid::from_raw(target.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    for n in 0..10 {
        let mut stopped = if n % 2 == 0 {
            stop_all(target.pid())
        } else {
            stop_one(target.pid())
        }
        .unwrap();
        super::getpid(&mut stopped);
        stopped.resume().unwrap();
        assert!(is_stopped_again(target.pid()), "it runs, after {n} stops");
    }
    kill(pid, Signal::SIGCONT).unwrap();
    target.close_input();
    assert_eq!(target.line(), "OK");
}

#[test]
fn a_sigstop_during_our_stop_takes_effect_after_it() {
    let mut target = waiting("nothing");
    let pid = Pid::from_raw(target.pid());
    let mut stopped = stop_all(target.pid()).unwrap();
    kill(pid, Signal::SIGSTOP).unwrap();
    super::getpid(&mut stopped);
    super::getpid(&mut stopped);
    stopped.resume().unwrap();
    assert!(is_stopped_again(target.pid()));
    let seen = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert_eq!(seen, WaitStatus::Stopped(pid, Signal::SIGSTOP));
    kill(pid, Signal::SIGCONT).unwrap();
    target.close_input();
    assert_eq!(target.line(), "OK");
}

#[test]
fn a_fatal_signal_during_our_stop_is_not_lost() {
    let target = waiting("nothing");
    let pid = Pid::from_raw(target.pid());
    let mut stopped = stop_all(target.pid()).unwrap();
    kill(pid, Signal::SIGTERM).unwrap();
    super::getpid(&mut stopped);
    stopped.resume().unwrap();
    let seen = waitpid(pid, None).unwrap();
    assert_eq!(seen, WaitStatus::Signaled(pid, Signal::SIGTERM, false));
}

#[test]
fn a_process_killed_during_our_stop_is_told_as_gone() {
    let target = waiting("nothing");
    let mut stopped = stop_all(target.pid()).unwrap();
    kill(Pid::from_raw(target.pid()), Signal::SIGKILL).unwrap();
    assert!(stopped.remote_call(nix::libc::SYS_getpid, [0; 6]).is_err());
}
