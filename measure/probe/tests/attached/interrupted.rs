//! Every interruptible system call: stopped and used for a remote call again and again, it must
//! return as if nobody had been there.
use super::target::{Target, compile};
use hopscope_process::{stop_all, stop_one};
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const STOPS: usize = 24;

/// Waits until the main thread sleeps.
/// False when the process has ended.
fn is_waiting(pid: i32) -> bool {
    loop {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return false;
        };
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        match state {
            Some('S') => return true,
            Some('Z' | 'X') | None => return false,
            _ => std::thread::yield_now(),
        }
    }
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("interrupted"))
}

fn undisturbed(name: &str) {
    let mut target = Target::start(program(), name);
    assert_eq!(target.line(), "ready", "{name} cannot be prepared here");
    let pid = target.pid();
    let mut inside = 0;
    for n in 0..STOPS {
        // Calls with a time-out of their own may be over.
        if !is_waiting(pid) {
            break;
        }
        let mut stopped = if n % 3 == 0 {
            stop_one(pid)
        } else {
            stop_all(pid)
        }
        .unwrap();
        let regs = *stopped.regs(pid);
        if (regs.orig_rax as i64) >= 0 && (regs.rax as i64) < 0 {
            inside += 1;
        }
        if n % 2 == 0 {
            super::getpid(&mut stopped);
            super::getpid(&mut stopped);
        }
        stopped.resume().unwrap();
    }
    assert!(inside > 0, "{name} was never stopped inside its call");
    // Back in its call: a signal that came before it would not interrupt it.
    is_waiting(pid);
    target.tell();
    assert_eq!(target.line(), "OK", "after {inside} stops inside {name}");
}

/// A tracer that ends lets go of everything at once, as a recorder that is killed does.
fn outlives_its_tracer(name: &str) {
    let mut target = Target::start(program(), name);
    assert_eq!(target.line(), "ready", "{name} cannot be prepared here");
    let pid = target.pid();
    let mut inside = 0;
    for n in 0..STOPS {
        if !is_waiting(pid) {
            break;
        }
        let was_inside = std::thread::spawn(move || {
            let mut stopped = stop_all(pid).unwrap();
            let regs = *stopped.regs(pid);
            // After a call in it the thread stands on the safety frame, which can make the
            // interrupted call again if it knows its number.
            if n % 2 == 0 && regs.orig_rax != libc::SYS_restart_syscall as u64 {
                super::getpid(&mut stopped);
            }
            std::mem::forget(stopped);
            (regs.orig_rax as i64) >= 0 && (regs.rax as i64) < 0
        });
        inside += usize::from(was_inside.join().unwrap());
    }
    assert!(inside > 0, "{name} was never stopped inside its call");
    // Back in its call: a signal that came before it would not interrupt it.
    is_waiting(pid);
    target.tell();
    assert_eq!(target.line(), "OK", "after {inside} stops inside {name}");
}

macro_rules! calls {
    ($($name:ident)*) => {
        $(#[test] fn $name() { undisturbed(stringify!($name)); })*
        mod tracer_ends { $(#[test] fn $name() { super::outlives_its_tracer(stringify!($name)); })* }
    };
}

calls! {
    nanosleep clock_nanosleep clock_nanosleep_absolute poll poll_time_out ppoll ppoll_signal select
    pselect epoll_wait epoll_wait_forever epoll_wait_signal epoll_pwait epoll_pwait_signal recv
    recv_time_out recvmsg_time_out recvmmsg accept accept_time_out connect read_pipe read_socket
    read_tty read_eventfd read_timerfd read_inotify write_pipe futex_wait futex_wait_time_out
    futex_wait_expires sem_timedwait pthread_cond_timedwait sigtimedwait sigwaitinfo sigsuspend
    pause semop semtimedop msgrcv mq_timedreceive io_getevents io_uring_enter wait4 waitid flock
    fcntl_setlkw
}

/// A tracer makes the kernel queue signals that the process ignores.
#[test]
fn a_signal_that_is_ignored_ends_no_call() {
    let mut target = Target::start(program(), "epoll_wait");
    assert_eq!(target.line(), "ready");
    let pid = target.pid();
    for signal in [Signal::SIGCHLD, Signal::SIGWINCH, Signal::SIGURG].repeat(8) {
        assert!(is_waiting(pid));
        let stopped = stop_all(pid).unwrap();
        kill(Pid::from_raw(pid), signal).unwrap();
        stopped.resume().unwrap();
    }
    target.tell();
    assert_eq!(target.line(), "OK");
}
