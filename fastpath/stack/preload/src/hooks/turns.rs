//! The ticker's thread.
use super::lock;
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
        loop {
            match lock::with(State::tick) {
                Ok(Next::Rest) => break,
                Ok(Next::Park) => {
                    park();
                    break;
                }
                Ok(Next::Watch(mut fds, until)) => {
                    let _ = kernel::poll_until(&mut fds, until);
                }
                // The stack is no more.
                Err(_) => return,
            }
        }
    }
}
