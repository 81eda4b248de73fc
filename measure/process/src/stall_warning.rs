//! What a stop waits for where a thread is in uninterruptible sleep.
use super::preflight;
use std::sync::atomic::{AtomicI32, Ordering};

/// The last process of which it was said: a detach tries several times.
static SAID: AtomicI32 = AtomicI32::new(0);

pub(super) fn warn_once(pid: i32, tid: i32) {
    if SAID.swap(pid, Ordering::Relaxed) == pid {
        return;
    }
    let whose = match tid == pid {
        true => "its main thread".to_owned(),
        false => format!("its thread {tid}"),
    };
    // Until it executes something else a vforked child shares its parent's memory, and nobody else does.
    match preflight::sharer(pid) {
        Some(child) => {
            log::warn!("waiting for process {pid}: {whose} waits for a vforked child ({child})")
        }
        None => log::warn!(
            "waiting for process {pid}: {whose} is in uninterruptible sleep, as in a file system that does not answer"
        ),
    }
}
