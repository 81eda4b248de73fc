//! read, write, recv, send: bytes. Every SAFETY comment "as libc's" says: the program passes what libc's call of that name takes.
use super::memory::{
    address, bytes, bytes_mut, done, fail, is_nowhere, parts, parts_mut, put, put_address,
};
use super::real;
use super::wait::call;
use crate::kernel;
use crate::step::Step;
use crate::table::{self, Entry};
use nix::libc::{self, c_int, c_void, sockaddr, socklen_t};

/// The descriptor is the kernel's: the common case.
macro_rules! kernels {
    ($fd:expr, $call:expr) => {
        if table::get($fd) == Entry::Kernel {
            // SAFETY: as libc's.
            return unsafe { $call };
        }
    };
}

/// Of ours: `Some`, with what it returns.
pub fn receive(fd: c_int, into: &mut [&mut [u8]], flags: c_int) -> Option<isize> {
    let mut filled = 0;
    call(fd, |state, index| {
        state.receive(index, into, flags, &mut filled)
    })
}

pub fn send_parts(fd: c_int, from: &[&[u8]], flags: c_int) -> Option<isize> {
    let mut taken = 0;
    let sent = call(fd, |state, index| {
        state.send(index, from, flags, &mut taken)
    })?;
    // SAFETY: libc's address of this thread's errno.
    let broken = sent < 0 && unsafe { *libc::__errno_location() } == libc::EPIPE;
    if broken && flags & libc::MSG_NOSIGNAL == 0 {
        kernel::raise_sigpipe();
        fail(libc::EPIPE);
    }
    Some(sent)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn read(fd: c_int, into: *mut c_void, len: usize) -> isize {
    kernels!(fd, real::read(fd, into, len));
    // SAFETY: as libc's.
    let ours = match unsafe { bytes_mut(into, len) } {
        // As sock_read_iter().
        Ok([]) if matches!(table::get(fd), Entry::Ours(_)) => Some(0),
        Ok(into) => receive(fd, &mut [into], 0),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::read(fd, into, len) })
}

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

/// _FORTIFY_SOURCE: as __chk_fail() does.
fn check(len: usize, room: usize) {
    if len > room {
        crate::say::say("buffer overflow detected in the program");
        std::process::abort();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn readv(fd: c_int, vectors: *const libc::iovec, count: c_int) -> isize {
    kernels!(fd, real::readv(fd, vectors, count));
    // SAFETY: as libc's.
    let ours = match unsafe { parts_mut(vectors, count as usize) } {
        Ok(mut into) => receive(fd, &mut into, 0),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::readv(fd, vectors, count) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn recv(fd: c_int, into: *mut c_void, len: usize, flags: c_int) -> isize {
    kernels!(fd, real::recv(fd, into, len, flags));
    // SAFETY: as libc's.
    unsafe {
        recvfrom(
            fd,
            into,
            len,
            flags,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    }
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
unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    into: *mut c_void,
    len: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> isize {
    kernels!(fd, real::recvfrom(fd, into, len, flags, from, from_len));
    // With MSG_TRUNC TCP writes nothing, and the buffer may be nowhere.
    let nowhere = flags & libc::MSG_TRUNC != 0 && is_nowhere(into);
    let mut discarded = Vec::new();
    if nowhere {
        discarded.resize(len.min(1 << 20), 0);
    }
    let room = match nowhere {
        true => Ok(&mut discarded[..]),
        // SAFETY: as libc's.
        false => unsafe { bytes_mut(into, len) },
    };
    let ours = match room {
        Ok(into) => receive(fd, &mut [into], flags),
        Err(error) => Some(fail(error)),
    };
    match ours {
        Some(done) => {
            // TCP has no address to tell: one of no bytes.
            if done >= 0 && !is_nowhere(from) && !is_nowhere(from_len) {
                // SAFETY: as libc's.
                unsafe { put(from_len, 0) };
            }
            done
        }
        // SAFETY: as libc's.
        None => unsafe { real::recvfrom(fd, into, len, flags, from, from_len) },
    }
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
unsafe extern "C-unwind" fn write(fd: c_int, from: *const c_void, len: usize) -> isize {
    kernels!(fd, real::write(fd, from, len));
    // SAFETY: as libc's.
    let ours = match unsafe { bytes(from, len) } {
        Ok(from) => send_parts(fd, &[from], 0),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::write(fd, from, len) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __write(fd: c_int, from: *const c_void, len: usize) -> isize {
    // SAFETY: as libc's.
    unsafe { write(fd, from, len) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn writev(fd: c_int, vectors: *const libc::iovec, count: c_int) -> isize {
    kernels!(fd, real::writev(fd, vectors, count));
    // SAFETY: as libc's.
    let ours = match unsafe { parts(vectors, count as usize) } {
        Ok(from) => send_parts(fd, &from, 0),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::writev(fd, vectors, count) })
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn send(
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
) -> isize {
    kernels!(fd, real::send(fd, from, len, flags));
    // SAFETY: as libc's.
    unsafe { sendto(fd, from, len, flags, std::ptr::null(), 0) }
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
unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> isize {
    kernels!(fd, real::sendto(fd, from, len, flags, to, to_len));
    if !to.is_null() {
        // SAFETY: as libc's.
        let refused = unsafe { address(to, to_len) }.map(|to| refuses(fd, to));
        match refused {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return fail(error),
        }
    }
    // SAFETY: as libc's.
    let ours = match unsafe { bytes(from, len) } {
        Ok(from) => send_parts(fd, &[from], flags),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { real::sendto(fd, from, len, flags, to, to_len) })
}

/// A datagram that is sent to where the stack leads.
pub fn refuses(fd: c_int, to: &[u8]) -> Option<i32> {
    super::lock::with(|state| {
        let index = state.index_of(fd)?;
        state.refuses_datagram(index, to)
    })
    .unwrap_or_else(Some)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn getsockname(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    kernels!(fd, real::getsockname(fd, into, len));
    // SAFETY: as libc's.
    unsafe { name(fd, into, len, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    kernels!(fd, real::getpeername(fd, into, len));
    // SAFETY: as libc's.
    unsafe { name(fd, into, len, false) }
}

unsafe fn name(fd: c_int, into: *mut sockaddr, len: *mut socklen_t, own: bool) -> c_int {
    let mut address = Vec::new();
    let ours = call(fd, |state, index| match state.address(index, own) {
        Some(Ok(found)) => {
            address = hopscope_stack_abi::address::to_bytes(found);
            Step::Done(0)
        }
        Some(Err(error)) => Step::Fail(error),
        None => Step::Pass,
    });
    match ours {
        Some(0) if is_nowhere(into) || is_nowhere(len) => done(Err(libc::EFAULT)) as c_int,
        Some(0) => {
            // SAFETY: as libc's.
            unsafe { put_address(&address, into, len) };
            0
        }
        Some(failed) => failed as c_int,
        // SAFETY: as libc's.
        None if own => unsafe { real::getsockname(fd, into, len) },
        // SAFETY: as libc's.
        None => unsafe { real::getpeername(fd, into, len) },
    }
}
