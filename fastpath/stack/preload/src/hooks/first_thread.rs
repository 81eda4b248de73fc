//! A program whose first thread has ended by pthread_exit(3) ends with its last one. libc counts the ticker's thread among them, so
//! that the ticker looks whether it is alone.
use super::{lock, real};
use crate::kernel;
use nix::libc::{self, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// How often the ticker looks, in programs that have lost their first thread.
const LOOK_EVERY_NS: i64 = 100_000_000;

static GONE: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    if lock::is_filled() && kernel::thread() == kernel::process() {
        GONE.store(true, Ordering::Relaxed);
        let _ = lock::with(|state| {
            state.ticker.wake();
            state.ticker.ring();
        });
    }
    // SAFETY: as libc's.
    unsafe { real::pthread_exit(value) };
    unreachable!("a thread that has ended goes on")
}

/// A child's first thread is another one.
pub fn forked() {
    GONE.store(false, Ordering::Relaxed);
}

/// How long the ticker may sleep. `None`: as long as it likes.
pub fn patience() -> Option<libc::timespec> {
    let gone = GONE.load(Ordering::Relaxed);
    gone.then_some(libc::timespec {
        tv_sec: 0,
        tv_nsec: LOOK_EVERY_NS,
    })
}

/// By the ticker's thread: as libc's last thread does.
pub fn end_with_the_last() {
    if GONE.load(Ordering::Relaxed) && is_alone() {
        // SAFETY: no other thread is left.
        unsafe { libc::exit(0) };
    }
}

/// Beside a first thread that has ended. False where there is no /proc: the process stays.
fn is_alone() -> bool {
    std::fs::read_to_string("/proc/self/stat").is_ok_and(|stat| is_alone_in(&stat))
}

/// proc(5): the state is the first word behind the name, the number of threads the 18th.
fn is_alone_in(stat: &str) -> bool {
    let mut words = stat
        .rsplit_once(')')
        .map_or("", |(_, words)| words)
        .split_whitespace();
    words.next() == Some("Z") && words.nth(16) == Some("2")
}

#[cfg(test)]
mod tests {
    use super::is_alone_in;

    fn stat(state: &str, threads: u32) -> String {
        format!("7 (a ) Z 2) {state} 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 {threads} 0 99 0 0")
    }

    #[test]
    fn only_the_ticker_is_left() {
        assert!(is_alone_in(&stat("Z", 2)));
        assert!(!is_alone_in(&stat("Z", 3)));
        assert!(!is_alone_in(&stat("S", 2)));
        assert!(!is_alone_in(""));
    }
}
