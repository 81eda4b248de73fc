//! close, the dup family, fcntl and ioctl.
use super::memory::{fail, get, is_nowhere, put};
use super::naming::{fresh, unname};
use super::{instance, lock, real};
use crate::kernel;
use crate::say::once;
use crate::table::{self, Entry};
use nix::libc::{self, c_int, c_uint, c_ulong};
use std::sync::atomic::AtomicBool;

static SIGNALS_SAID: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    match table::get(fd) {
        Entry::Kernel => {}
        Entry::Internal => return fail(libc::EBADF) as c_int,
        Entry::Ours(_) | Entry::KernelEpoll(_) | Entry::Instance(_) | Entry::Datagrams(_) => {
            unname(fd);
        }
    }
    // SAFETY: as libc's.
    unsafe { real::close(fd) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __close(fd: c_int) -> c_int {
    // SAFETY: as libc's.
    unsafe { close(fd) }
}

/// Around the library's own.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn close_range(
    first: c_uint,
    last: c_uint,
    flags: c_int,
) -> c_int {
    const CLOEXEC: c_int = 4;
    if last < first {
        return fail(libc::EINVAL) as c_int;
    }
    let mut from = first;
    for fd in table::known(first as usize, last as usize) {
        if table::get(fd) != Entry::Internal {
            if flags & CLOEXEC == 0 {
                unname(fd);
            }
            continue;
        }
        if from < fd as c_uint {
            // SAFETY: as libc's.
            let done = unsafe { real::close_range(from, fd as c_uint - 1, flags) };
            if done < 0 {
                return done;
            }
        }
        from = fd as c_uint + 1;
    }
    if from > last {
        return 0;
    }
    // SAFETY: as libc's.
    unsafe { real::close_range(from, last, flags) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn closefrom(first: c_int) {
    // SAFETY: as libc's.
    unsafe { close_range(first.max(0) as c_uint, c_uint::MAX, 0) };
}

/// `new` is `old` once more.
fn named(old: c_int, new: c_int) -> c_int {
    let entry = table::get(old);
    if new != old {
        fresh(new);
    }
    if new < 0 || entry == Entry::Kernel {
        return new;
    }
    if matches!(entry, Entry::Instance(_) | Entry::Datagrams(_)) {
        table::set(new, entry);
        return new;
    }
    let _ = lock::with(|state| {
        if let Some(index) = state.index_of(old) {
            state.name(new, index);
        }
    });
    new
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    if table::get(fd) == Entry::Internal {
        return fail(libc::EBADF) as c_int;
    }
    // SAFETY: as libc's.
    named(fd, unsafe { real::dup(fd) })
}

/// What `to` was is closed by it.
fn replaces(fd: c_int, to: c_int) -> bool {
    if table::get(fd) == Entry::Internal || table::get(to) == Entry::Internal {
        return false;
    }
    // It fails, and closes nothing, where `fd` is none.
    if fd != to && table::get(to) != Entry::Kernel && kernel::fcntl(fd, libc::F_GETFD, 0).is_ok() {
        unname(to);
    }
    true
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn dup2(fd: c_int, to: c_int) -> c_int {
    if !replaces(fd, to) {
        return fail(libc::EBADF) as c_int;
    }
    // SAFETY: as libc's.
    let new = unsafe { real::dup2(fd, to) };
    if fd == to { new } else { named(fd, new) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __dup2(fd: c_int, to: c_int) -> c_int {
    // SAFETY: as libc's.
    unsafe { dup2(fd, to) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    if fd == to {
        return fail(libc::EINVAL) as c_int;
    }
    if !replaces(fd, to) {
        return fail(libc::EBADF) as c_int;
    }
    // SAFETY: as libc's.
    named(fd, unsafe { real::dup3(fd, to, flags) })
}

/// Not an epoll descriptor.
fn is_inline(fd: c_int) -> bool {
    matches!(table::get(fd), Entry::Ours(_))
        && lock::with(|state| state.nonblocking(fd).is_some()) == Ok(true)
}

/// SIGIO would tell of the kernel's socket, where nothing comes.
fn no_signals() -> c_int {
    once(&SIGNALS_SAID, || {
        "O_ASYNC (SIGIO) is not supported: the call fails (EINVAL)".into()
    });
    fail(libc::EINVAL) as c_int
}

/// Variadic in C: on x86-64 a third argument of an integer or pointer is passed as a named one.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    match table::get(fd) {
        Entry::Kernel => {
            // SAFETY: as libc's.
            let done = unsafe { real::fcntl64(fd, command, argument) };
            return match command {
                libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => named(fd, done),
                _ => done,
            };
        }
        Entry::Internal => return fail(libc::EBADF) as c_int,
        Entry::Ours(_) | Entry::KernelEpoll(_) | Entry::Instance(_) | Entry::Datagrams(_) => {}
    }
    match command {
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
            // SAFETY: as libc's.
            named(fd, unsafe { real::fcntl64(fd, command, argument) })
        }
        libc::F_GETFL => {
            // SAFETY: as libc's.
            let flags = unsafe { real::fcntl64(fd, command, argument) };
            let nonblocking = lock::with(|state| state.nonblocking(fd)).ok().flatten();
            match nonblocking {
                Some(on) if flags >= 0 => {
                    flags & !libc::O_NONBLOCK | if on { libc::O_NONBLOCK } else { 0 }
                }
                _ => flags,
            }
        }
        libc::F_SETFL if argument as c_int & libc::O_ASYNC != 0 && is_inline(fd) => no_signals(),
        libc::F_SETFL => {
            let on = argument as c_int & libc::O_NONBLOCK != 0;
            let kernel_too = lock::with(|state| state.set_nonblocking(fd, on));
            // What listens in the kernel, too, never waits there.
            let more = if kernel_too == Ok(true) {
                libc::O_NONBLOCK as usize
            } else {
                0
            };
            // SAFETY: as libc's.
            unsafe { real::fcntl64(fd, command, argument | more) }
        }
        // SAFETY: as libc's.
        _ => unsafe { real::fcntl64(fd, command, argument) },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn fcntl64(
    fd: c_int,
    command: c_int,
    argument: usize,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { fcntl(fd, command, argument) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn __fcntl(
    fd: c_int,
    command: c_int,
    argument: usize,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { fcntl(fd, command, argument) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn ioctl(
    fd: c_int,
    request: c_ulong,
    argument: usize,
) -> c_int {
    if let Entry::Instance(name) = table::get(fd)
        // SAFETY: as libc's.
        && let Some(done) = unsafe { instance::ioctl(name, request, argument as *mut c_int) }
    {
        return done;
    }
    if let Some(name) = instance::datagrams::name(fd)
        // SAFETY: as libc's.
        && let Some(done) = unsafe { instance::datagrams::ioctl(fd, name, request, argument) }
    {
        return done;
    }
    if !matches!(table::get(fd), Entry::Ours(_)) {
        // SAFETY: as libc's.
        return unsafe { real::ioctl(fd, request, argument) };
    }
    let at = argument as *mut c_int;
    // SAFETY: as libc's.
    if request == libc::FIOASYNC && !is_nowhere(at) && unsafe { get(at) } != 0 {
        return no_signals();
    }
    if request == libc::FIONBIO {
        if is_nowhere(at) {
            return fail(libc::EFAULT) as c_int;
        }
        // SAFETY: as libc's.
        let on = unsafe { get(at) } != 0;
        if lock::with(|state| state.set_nonblocking(fd, on)) == Ok(true) {
            return 0;
        }
        // SAFETY: as libc's.
        return unsafe { real::ioctl(fd, request, argument) };
    }
    let queued = lock::with(|state| {
        let index = state.index_of(fd)?;
        state.queued(index, request)
    });
    match queued {
        Ok(Some(Ok(_))) if is_nowhere(at) => fail(libc::EFAULT) as c_int,
        Ok(Some(Ok(count))) => {
            // SAFETY: as libc's.
            unsafe { put(at, count) };
            0
        }
        Ok(Some(Err(error))) | Err(error) => fail(error) as c_int,
        // SAFETY: as libc's.
        Ok(None) => unsafe { real::ioctl(fd, request, argument) },
    }
}
