//! poll and ppoll. Every SAFETY comment "as libc's" says: the program passes what libc's call of that name takes.
use super::both::{is_ours, poll_both};
use super::limit::{Limit, end};
use super::memory::{check, get, is_nowhere, put};
use super::real;
use crate::sleeper::watch;
use crate::table;
use nix::libc::{c_int, nfds_t, pollfd, sigset_t, timespec};

/// `None`: all are the kernel's.
///
/// # Safety
/// As libc's.
unsafe fn poll_ours(
    fds: *mut pollfd,
    count: nfds_t,
    limit: impl FnOnce() -> Result<Limit, i32>,
    mask: *const sigset_t,
) -> Option<c_int> {
    if count == 0 || count > table::DESCRIPTORS_MAX as nfds_t || is_nowhere(fds) {
        return None;
    }
    let one = |at: usize| fds.wrapping_add(at);
    // SAFETY: as libc's.
    if !(0..count as usize).any(|at| is_ours(unsafe { get(one(at)) }.fd)) {
        return None;
    }
    let mut all: Vec<pollfd> = (0..count as usize)
        // SAFETY: as libc's.
        .map(|at| unsafe { get(one(at)) })
        .map(|poll| watch(poll.fd, poll.events))
        .collect();
    // SAFETY: the mask by the caller's promise.
    let done = limit().and_then(|limit| unsafe { poll_both(&mut all, limit, mask) });
    if done.is_ok() {
        for (at, poll) in all.iter().enumerate() {
            // SAFETY: as libc's.
            unsafe { put(one(at), *poll) };
        }
    }
    Some(end(done))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn poll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
) -> c_int {
    let limit = || Ok(Limit::ms(timeout));
    // SAFETY: as libc's.
    let ours = unsafe { poll_ours(fds, count, limit, std::ptr::null()) };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::poll(fds, count, timeout) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __poll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { poll(fds, count, timeout) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    room: usize,
) -> c_int {
    check(count as usize, room / size_of::<pollfd>());
    // SAFETY: as libc's.
    unsafe { poll(fds, count, timeout) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    span: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as libc's.
    let limit = || unsafe { Limit::span(span) };
    // SAFETY: as libc's.
    let ours = unsafe { poll_ours(fds, count, limit, mask) };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::ppoll(fds, count, span, mask) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    span: *const timespec,
    mask: *const sigset_t,
    room: usize,
) -> c_int {
    check(count as usize, room / size_of::<pollfd>());
    // SAFETY: as libc's.
    unsafe { ppoll(fds, count, span, mask) }
}
