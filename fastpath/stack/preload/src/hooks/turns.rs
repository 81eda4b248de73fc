//! The ticker's thread.
use super::{first_thread, lock};
use crate::kernel;
use crate::state::State;
use crate::ticker::{Next, park};
use nix::libc;
use std::sync::atomic::AtomicU32;

/// How long the stack may be left alone before the ticker does a turn.
const PATIENCE_NS: i64 = 2_000_000;

/// Nobody wakes it.
static NEVER: AtomicU32 = AtomicU32::new(0);

pub fn run() {
    loop {
        let rest = libc::timespec {
            tv_sec: 0,
            tv_nsec: PATIENCE_NS,
        };
        let _ = kernel::futex_wait(&NEVER, 0, Some(rest));
        first_thread::end_with_the_last();
        loop {
            match lock::with(State::tick) {
                Ok(Next::Rest) => break,
                Ok(Next::Park) => {
                    park(first_thread::patience);
                    break;
                }
                Ok(Next::Watch(mut fds, until)) => {
                    let _ = kernel::poll_until(&mut fds, shorter(until));
                    first_thread::end_with_the_last();
                }
                // The stack is no more.
                Err(_) => return,
            }
        }
    }
}

fn shorter(until: Option<libc::timespec>) -> Option<libc::timespec> {
    let most = first_thread::patience();
    let earlier = |a: libc::timespec, b: libc::timespec| match (a.tv_sec, a.tv_nsec)
        < (b.tv_sec, b.tv_nsec)
    {
        true => a,
        false => b,
    };
    match (until, most) {
        (Some(until), Some(most)) => Some(earlier(until, most)),
        (until, most) => until.or(most),
    }
}
