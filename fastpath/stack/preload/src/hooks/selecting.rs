//! select and pselect, by poll.
use super::both::{is_ours, poll_both};
use super::limit::{Limit, end};
use super::memory::{get, put};
use super::real;
use crate::sleeper::watch;
use crate::stack::now;
use crate::table;
use nix::libc::{self, c_int, fd_set, sigset_t, timespec, timeval};

/// A set of select as words: programs have larger ones than FD_SETSIZE, too.
struct Bits(*mut u64);

impl Bits {
    fn has(&self, fd: c_int) -> bool {
        // SAFETY: select's caller has that many bits, or none.
        !self.0.is_null() && unsafe { get(self.0.add(fd as usize / 64)) } >> (fd % 64) & 1 == 1
    }

    fn put(&self, fd: c_int, on: bool) -> i32 {
        if self.0.is_null() {
            return 0;
        }
        // SAFETY: as above.
        unsafe {
            let word = self.0.add(fd as usize / 64);
            put(
                word,
                get(word) & !(1 << (fd % 64)) | u64::from(on) << (fd % 64),
            );
        }
        i32::from(on)
    }
}

/// `None`: all are the kernel's.
///
/// # Safety
/// As libc's.
unsafe fn select_both(
    count: c_int,
    sets: [*mut fd_set; 3],
    limit: impl FnOnce() -> Result<Limit, i32>,
    mask: *const sigset_t,
) -> Option<Result<i32, i32>> {
    let count = count.min(table::DESCRIPTORS_MAX as c_int);
    let [read, write, except] = sets.map(|set| Bits(set.cast()));
    let ours = |fd| is_ours(fd) && (read.has(fd) || write.has(fd) || except.has(fd));
    if !table::known(0, count.max(1) as usize - 1).any(ours) {
        return None;
    }
    let mut fds = Vec::new();
    for fd in 0..count {
        let pairs = [
            (read.has(fd), libc::POLLIN),
            (write.has(fd), libc::POLLOUT),
            (except.has(fd), libc::POLLPRI),
        ];
        let events = pairs
            .iter()
            .filter(|(is, _)| *is)
            .fold(0, |sum, (_, bit)| sum | bit);
        if events != 0 {
            fds.push(watch(fd, events));
        }
    }
    let limit = match limit() {
        Ok(limit) => limit,
        Err(error) => return Some(Err(error)),
    };
    // SAFETY: the mask by the caller's promise.
    let polled = unsafe { poll_both(&mut fds, limit, mask) };
    if let Err(error) = polled {
        return Some(Err(error));
    }
    if fds.iter().any(|poll| poll.revents & libc::POLLNVAL != 0) {
        return Some(Err(libc::EBADF));
    }
    // As the kernel's POLLIN_SET, POLLOUT_SET and POLLEX_SET (fs/select.c).
    let mut found = 0;
    for poll in &fds {
        let has = |bits| poll.revents & bits != 0;
        let fd = poll.fd;
        let readable = has(libc::POLLIN | libc::POLLHUP | libc::POLLERR);
        let writable = has(libc::POLLOUT | libc::POLLERR);
        found += read.put(fd, readable && read.has(fd));
        found += write.put(fd, writable && write.has(fd));
        found += except.put(fd, has(libc::POLLPRI) && except.has(fd));
    }
    Some(Ok(found))
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    span: *mut timeval,
) -> c_int {
    let limit = || {
        if span.is_null() {
            return Ok(Limit::Never);
        }
        // SAFETY: as libc's.
        let span = unsafe { get(span) };
        if span.tv_sec < 0 || span.tv_usec < 0 {
            return Err(libc::EINVAL);
        }
        let exact = timespec {
            tv_sec: span.tv_sec + span.tv_usec / 1_000_000,
            tv_nsec: span.tv_usec % 1_000_000 * 1_000,
        };
        // SAFETY: it lives over the call.
        unsafe { Limit::span(&exact) }
    };
    let mut at = None;
    let limit = || {
        let limit = limit()?;
        at = limit.at();
        Ok(limit)
    };
    // SAFETY: as libc's.
    let ours = unsafe { select_both(count, [read, write, except], limit, std::ptr::null()) };
    match ours {
        Some(result) => {
            // Linux tells what is left.
            if let Some(at) = at {
                let left = at.since(now()).0 / 1_000;
                // SAFETY: as libc's; it was read above.
                unsafe {
                    put(
                        span,
                        timeval {
                            tv_sec: (left / 1_000_000) as i64,
                            tv_usec: (left % 1_000_000) as i64,
                        },
                    );
                }
            }
            end(result)
        }
        // SAFETY: as libc's.
        None => unsafe { real::select(count, read, write, except, span) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pselect(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    span: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: as libc's.
    unsafe {
        let limit = || Limit::span(span);
        match select_both(count, [read, write, except], limit, mask) {
            Some(result) => end(result),
            None => real::pselect(count, read, write, except, span, mask),
        }
    }
}
