//! Bytes in and out.
use super::opening::connected;
use super::told::{errno, is_nonblocking, is_shut, take_error};
use crate::hooks::memory::fail;
use crate::hooks::real;
use crate::instance::lost;
use crate::kernel;
use crate::rows;
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::Name;
use nix::libc::{self, c_int};

/// MSG_FASTOPEN; libc has it as i32 on Linux alone.
const FASTOPEN: c_int = 0x2000_0000;

/// Before bytes are received: errno, where TCP has none to receive.
pub fn before_receive(name: Name, flags: c_int) -> Result<(), c_int> {
    if flags & libc::MSG_OOB != 0 {
        return Err(libc::EINVAL);
    }
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Err(libc::EAGAIN);
    }
    let socket = rows::state(name);
    match socket.phase {
        Phase::Bound | Phase::Listening => Err(libc::ENOTCONN),
        Phase::Connecting if socket.errno != 0 => {
            Err(take_error(name, socket).unwrap_or(libc::ENOTCONN))
        }
        _ => Ok(()),
    }
}

/// MSG_TRUNC: TCP discards, and writes nothing.
///
/// # Safety
/// As libc's recv.
pub unsafe fn discard(fd: c_int, name: Name, len: usize, flags: c_int) -> isize {
    let mut bytes = vec![0_u8; len.min(1 << 20)];
    let (into, len) = (bytes.as_mut_ptr().cast(), bytes.len());
    // SAFETY: the buffer has room for as many.
    received(name, len, unsafe {
        real::recv(fd, into, len, flags & !libc::MSG_TRUNC)
    })
}

/// What the kernel's call has returned, of room for `len` bytes.
pub fn received(name: Name, len: usize, got: isize) -> isize {
    if got > 0 || got == 0 && len == 0 || got < 0 && errno() != libc::ECONNRESET {
        return got;
    }
    let socket = rows::state(name);
    // As Linux: a reset that follows the end is told to who sends.
    if socket.ended {
        return 0;
    }
    if let Some(error) = take_error(name, socket) {
        return fail(error);
    }
    if socket.errno != 0 || socket.phase == Phase::Free || is_shut(name) {
        return 0;
    }
    fail(lost())
}

/// Before bytes are sent: waits for a connection that is being made.
fn before_send(fd: c_int, name: Name, flags: c_int) -> Result<(), c_int> {
    if flags & (libc::MSG_OOB | FASTOPEN) != 0 {
        return Err(libc::EOPNOTSUPP);
    }
    let socket = rows::state(name);
    match socket.phase {
        Phase::Connecting if socket.errno == 0 => {
            if flags & libc::MSG_DONTWAIT != 0 || is_nonblocking(fd) {
                return Err(libc::EAGAIN);
            }
            connected(fd, name).map_err(|error| match error {
                libc::EINPROGRESS => libc::EAGAIN,
                error => error,
            })
        }
        Phase::Bound | Phase::Listening => Err(libc::EPIPE),
        // Before the kernel's call, which would send a signal.
        _ => take_error(name, socket).map_or(Ok(()), Err),
    }
}

/// What the kernel's call has returned, which sent SIGPIPE where it was to.
fn sent(name: Name, sent: isize) -> isize {
    if sent >= 0 || ![libc::EPIPE, libc::ECONNRESET].contains(&errno()) {
        return sent;
    }
    fail(take_error(name, rows::state(name)).unwrap_or(libc::EPIPE))
}

/// Sends by `call`, which is the kernel's, and the program's own: it may be allowed no other (seccomp).
pub fn sends(fd: c_int, name: Name, flags: c_int, call: impl FnOnce() -> isize) -> isize {
    match before_send(fd, name, flags) {
        Ok(()) => sent(name, call()),
        Err(libc::EPIPE) => broken(flags),
        Err(error) => fail(error),
    }
}

/// EPIPE, and the signal.
fn broken(flags: c_int) -> isize {
    if flags & libc::MSG_NOSIGNAL == 0 {
        kernel::raise_sigpipe();
    }
    fail(libc::EPIPE)
}

/// As a stream has it: without an address, and without what goes beside the bytes.
///
/// # Safety
/// As libc's sendmsg.
pub unsafe fn sendmsg(fd: c_int, name: Name, header: &libc::msghdr, flags: c_int) -> isize {
    let bytes = libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_control: std::ptr::null_mut(),
        msg_controllen: 0,
        ..*header
    };
    // SAFETY: as libc's.
    sends(fd, name, flags, || unsafe {
        real::sendmsg(fd, &raw const bytes, flags)
    })
}
