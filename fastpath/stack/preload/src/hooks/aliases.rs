//! Other names of the same calls, and variants that do nothing else on a socket. Every SAFETY comment "as libc's" says: the program
//! passes what libc's call of that name takes.
use super::files::{read, readv, recv, recvfrom, send, write, writev};
use super::memory::{check, fail};
use super::messages::{recvmsg, sendmsg};
use super::selecting::select;
use super::sockets::connect;
use super::{processes, real};
use crate::table::{self, Entry};
use nix::libc::{self, c_int, c_void, fd_set, iovec, off_t, sockaddr, socklen_t, timeval};

/// preadv2(2) and pwritev2(2) of them are readv and writev.
const CURRENT: off_t = -1;

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __read(fd: c_int, into: *mut c_void, len: usize) -> isize {
    // SAFETY: as libc's.
    unsafe { read(fd, into, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    into: *mut c_void,
    len: usize,
    room: usize,
) -> isize {
    check(len, room);
    // SAFETY: as libc's.
    unsafe { read(fd, into, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __recv_chk(
    fd: c_int,
    into: *mut c_void,
    len: usize,
    room: usize,
    flags: c_int,
) -> isize {
    check(len, room);
    // SAFETY: as libc's.
    unsafe { recv(fd, into, len, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __recvfrom_chk(
    fd: c_int,
    into: *mut c_void,
    len: usize,
    room: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> isize {
    check(len, room);
    // SAFETY: as libc's.
    unsafe { recvfrom(fd, into, len, flags, from, from_len) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __write(fd: c_int, from: *const c_void, len: usize) -> isize {
    // SAFETY: as libc's.
    unsafe { write(fd, from, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __send(
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
) -> isize {
    // SAFETY: as libc's.
    unsafe { send(fd, from, len, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __connect(fd: c_int, peer: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: as libc's.
    unsafe { connect(fd, peer, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __select(
    count: c_int,
    read: *mut fd_set,
    write: *mut fd_set,
    except: *mut fd_set,
    span: *mut timeval,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { select(count, read, write, except, span) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __vfork() -> c_int {
    // SAFETY: as libc's.
    unsafe { processes::vfork() }
}

/// Those of a socket's bytes: RWF_NOWAIT is MSG_DONTWAIT, what is of files alone means nothing. Others: EOPNOTSUPP (kiocb_set_rw_flags,
/// include/linux/fs.h).
fn message_flags(flags: c_int) -> Result<c_int, i32> {
    let of_files = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC;
    match flags & !of_files {
        0 => Ok(0),
        libc::RWF_NOWAIT => Ok(libc::MSG_DONTWAIT),
        _ => Err(libc::EOPNOTSUPP),
    }
}

fn message(vectors: *const iovec, count: c_int) -> libc::msghdr {
    // SAFETY: zero is a value of this structure of integers and pointers.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vectors.cast_mut();
    message.msg_iovlen = count as usize;
    message
}

/// At an offset that is not the current one no socket is read.
fn is_as_readv(fd: c_int, at: off_t) -> bool {
    at == CURRENT && table::get(fd) != Entry::Kernel
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn preadv2(
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> isize {
    if !is_as_readv(fd, at) {
        // SAFETY: as libc's.
        return unsafe { real::preadv2(fd, vectors, count, at, flags) };
    }
    match message_flags(flags) {
        // SAFETY: as libc's.
        Ok(0) => unsafe { readv(fd, vectors, count) },
        // SAFETY: as libc's.
        Ok(flags) => unsafe { recvmsg(fd, &mut message(vectors, count), flags) },
        Err(error) => fail(error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn preadv64v2(
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> isize {
    // SAFETY: as libc's.
    unsafe { preadv2(fd, vectors, count, at, flags) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn pwritev2(
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> isize {
    if !is_as_readv(fd, at) {
        // SAFETY: as libc's.
        return unsafe { real::pwritev2(fd, vectors, count, at, flags) };
    }
    match message_flags(flags) {
        // SAFETY: as libc's.
        Ok(0) => unsafe { writev(fd, vectors, count) },
        // SAFETY: as libc's.
        Ok(flags) => unsafe { sendmsg(fd, &message(vectors, count), flags) },
        Err(error) => fail(error),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pwritev64v2(
    fd: c_int,
    vectors: *const iovec,
    count: c_int,
    at: off_t,
    flags: c_int,
) -> isize {
    // SAFETY: as libc's.
    unsafe { pwritev2(fd, vectors, count, at, flags) }
}
