//! What a stop waits for where a thread is in uninterruptible sleep, or gets no processor.
use super::preflight;
use std::sync::atomic::{AtomicI32, Ordering};

/// The last process of which it was said: a detach tries several times.
static SAID: AtomicI32 = AtomicI32::new(0);

/// `None` if it was said before.
fn whose(pid: i32, tid: i32) -> Option<String> {
    if SAID.swap(pid, Ordering::Relaxed) == pid {
        return None;
    }
    Some(match tid == pid {
        true => "its main thread".to_owned(),
        false => format!("its thread {tid}"),
    })
}

pub(super) fn warn_once_of_no_processor(pid: i32, tid: i32) {
    if let Some(whose) = whose(pid, tid) {
        log::warn!(
            "waiting for process {pid}: {whose} is ready to run and gets no processor (its priority, or a limit of its control group)"
        );
    }
}

pub(super) fn warn_once(pid: i32, tid: i32) {
    let Some(whose) = whose(pid, tid) else {
        return;
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
