//! read, write, recv, send: bytes. Every SAFETY comment "as libc's" says: the program passes what libc's call of that name takes.
use super::memory::{
    address, bytes, bytes_mut, fail, is_nowhere, parts, parts_mut, put_address, room,
};
use super::wait::call;
use super::{instance, real};
use crate::kernel;
use crate::table::{self, Entry};
use crate::told::{To, Told};
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

/// The kernel's call, unless the socket has become the instance's meanwhile, of UDP.
macro_rules! again {
    ($fd:expr, $again:expr, $call:expr) => {
        match instance::datagrams::name($fd) {
            Some(_) => $again,
            None => $call,
        }
    };
}
pub(super) use again;

/// Of ours: `Some`, with what it returns.
pub fn receive(fd: c_int, into: &mut [&mut [u8]], flags: c_int, told: &mut Told) -> Option<isize> {
    let mut filled = 0;
    call(fd, |state, index| {
        state.receive(index, into, flags, &mut filled, told)
    })
}

/// As sock_read_iter(): no bytes are wanted of a socket.
fn wants_nothing(fd: c_int, into: &[&mut [u8]]) -> bool {
    into.iter().all(|part| part.is_empty()) && matches!(table::get(fd), Entry::Ours(_))
}

pub fn send_parts(fd: c_int, from: &[&[u8]], flags: c_int, to: To<'_>) -> Option<isize> {
    let mut taken = 0;
    let mut stream = true;
    let sent = call(fd, |state, index| {
        stream = !state.is_datagram(index);
        state.send(index, from, flags, &mut taken, to)
    })?;
    // SAFETY: libc's address of this thread's errno.
    let broken = stream && sent < 0 && unsafe { *libc::__errno_location() } == libc::EPIPE;
    if broken && flags & libc::MSG_NOSIGNAL == 0 {
        kernel::raise_sigpipe();
        fail(libc::EPIPE);
    }
    Some(sent)
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn read(fd: c_int, into: *mut c_void, len: usize) -> isize {
    kernels!(fd, real::read(fd, into, len));
    if instance::datagrams::name(fd).is_some() {
        // As sock_read_iter(): no bytes are wanted of a socket.
        return match len {
            0 => 0,
            // SAFETY: as libc's.
            _ => unsafe { recv(fd, into, len, 0) },
        };
    }
    if let Entry::Instance(name) = table::get(fd) {
        return match instance::before_receive(name, 0) {
            // SAFETY: as libc's.
            Ok(()) => instance::received(name, len, unsafe { real::read(fd, into, len) }),
            Err(error) => fail(error),
        };
    }
    // SAFETY: as libc's.
    let ours = match unsafe { bytes_mut(into, len) } {
        Ok([]) if wants_nothing(fd, &[]) => Some(0),
        Ok(into) => receive(fd, &mut [into], 0, &mut Told::default()),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { again!(fd, read(fd, into, len), real::read(fd, into, len)) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn readv(
    fd: c_int,
    vectors: *const libc::iovec,
    count: c_int,
) -> isize {
    kernels!(fd, real::readv(fd, vectors, count));
    if let Some(name) = instance::datagrams::name(fd) {
        // SAFETY: as libc's.
        return match unsafe { parts_mut(vectors, count as usize) } {
            Ok(into) if into.iter().all(|part| part.is_empty()) => 0,
            Ok(mut into) => {
                instance::datagrams::receive(fd, name, &mut into, 0, &mut Told::default())
            }
            Err(error) => fail(error),
        };
    }
    if let Entry::Instance(name) = table::get(fd) {
        return match instance::before_receive(name, 0) {
            // SAFETY: as libc's.
            Ok(()) => unsafe {
                match real::readv(fd, vectors, count) {
                    0 => instance::received(name, room(vectors, count as usize), 0),
                    got => instance::received(name, 1, got),
                }
            },
            Err(error) => fail(error),
        };
    }
    // SAFETY: as libc's.
    let ours = match unsafe { parts_mut(vectors, count as usize) } {
        Ok(into) if wants_nothing(fd, &into) => Some(0),
        Ok(mut into) => receive(fd, &mut into, 0, &mut Told::default()),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe {
        again!(
            fd,
            readv(fd, vectors, count),
            real::readv(fd, vectors, count)
        )
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn recv(
    fd: c_int,
    into: *mut c_void,
    len: usize,
    flags: c_int,
) -> isize {
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
pub(super) unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    into: *mut c_void,
    len: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_len: *mut socklen_t,
) -> isize {
    kernels!(fd, real::recvfrom(fd, into, len, flags, from, from_len));
    if let Some(name) = instance::datagrams::name(fd) {
        let mut told = Told::default();
        // SAFETY: as libc's.
        let got = match unsafe { bytes_mut(into, len) } {
            Ok(into) => instance::datagrams::receive(fd, name, &mut [into], flags, &mut told),
            Err(error) => fail(error),
        };
        if got >= 0 {
            // SAFETY: as libc's.
            let _ = unsafe { put_address(&told.from, from, from_len) };
        }
        return got;
    }
    if let Entry::Instance(name) = table::get(fd) {
        return match instance::before_receive(name, flags) {
            Ok(()) if flags & (libc::MSG_TRUNC | libc::MSG_PEEK) == libc::MSG_TRUNC => {
                // SAFETY: as libc's.
                unsafe { instance::discard(fd, name, len, flags) }
            }
            // SAFETY: as libc's.
            Ok(()) => instance::received(name, len, unsafe {
                real::recvfrom(fd, into, len, flags, from, from_len)
            }),
            Err(error) => fail(error),
        };
    }
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
    let mut told = Told::default();
    let ours = match room {
        Ok(into) => receive(fd, &mut [into], flags, &mut told),
        Err(error) => Some(fail(error)),
    };
    match ours {
        Some(done) => {
            // TCP has no address to tell: one of no bytes.
            if done >= 0 {
                // SAFETY: as libc's.
                let _ = unsafe { put_address(&told.from, from, from_len) };
            }
            done
        }
        // SAFETY: as libc's.
        None => unsafe {
            again!(
                fd,
                recvfrom(fd, into, len, flags, from, from_len),
                real::recvfrom(fd, into, len, flags, from, from_len)
            )
        },
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn write(fd: c_int, from: *const c_void, len: usize) -> isize {
    kernels!(fd, real::write(fd, from, len));
    if instance::datagrams::name(fd).is_some() {
        // SAFETY: as libc's.
        return unsafe { send(fd, from, len, 0) };
    }
    if let Entry::Instance(name) = table::get(fd) {
        // SAFETY: as libc's.
        return instance::sends(fd, name, 0, || unsafe { real::write(fd, from, len) });
    }
    // SAFETY: as libc's.
    let ours = match unsafe { bytes(from, len) } {
        Ok(from) => send_parts(fd, &[from], 0, To::default()),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe { again!(fd, write(fd, from, len), real::write(fd, from, len)) })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn writev(
    fd: c_int,
    vectors: *const libc::iovec,
    count: c_int,
) -> isize {
    kernels!(fd, real::writev(fd, vectors, count));
    if let Some(name) = instance::datagrams::name(fd) {
        // SAFETY: as libc's.
        return match unsafe { parts(vectors, count as usize) } {
            Ok(from) if from.iter().all(|part| part.is_empty()) => 0,
            Ok(from) => instance::datagrams::send(fd, name, &from, 0, To::default()),
            Err(error) => fail(error),
        };
    }
    if let Entry::Instance(name) = table::get(fd) {
        // SAFETY: as libc's.
        return instance::sends(fd, name, 0, || unsafe { real::writev(fd, vectors, count) });
    }
    // SAFETY: as libc's.
    let ours = match unsafe { parts(vectors, count as usize) } {
        // As vfs_writev(): a write of no bytes is a datagram, one of empty vectors is nothing.
        Ok(from) if from.iter().all(|part| part.is_empty()) && is_datagram(fd) => Some(0),
        Ok(from) => send_parts(fd, &from, 0, To::default()),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe {
        again!(
            fd,
            writev(fd, vectors, count),
            real::writev(fd, vectors, count)
        )
    })
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn send(
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
pub(super) unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
    to: *const sockaddr,
    to_len: socklen_t,
) -> isize {
    kernels!(fd, real::sendto(fd, from, len, flags, to, to_len));
    if let Entry::Instance(name) = table::get(fd) {
        // SAFETY: as libc's.
        return instance::sends(fd, name, flags, || unsafe {
            real::send(fd, from, len, flags)
        });
    }
    let mut destination = To::default();
    if !to.is_null() {
        // SAFETY: as libc's.
        match unsafe { address(to, to_len) } {
            Ok(to) => destination.address = Some(to),
            Err(error) => return fail(error),
        }
    }
    if let Some(name) = instance::datagrams::name(fd) {
        // SAFETY: as libc's.
        return match unsafe { bytes(from, len) } {
            Ok(from) => instance::datagrams::send(fd, name, &[from], flags, destination),
            Err(error) => fail(error),
        };
    }
    // SAFETY: as libc's.
    let ours = match unsafe { bytes(from, len) } {
        Ok(from) => send_parts(fd, &[from], flags, destination),
        Err(error) => Some(fail(error)),
    };
    // SAFETY: as libc's.
    ours.unwrap_or_else(|| unsafe {
        again!(
            fd,
            sendto(fd, from, len, flags, to, to_len),
            real::sendto(fd, from, len, flags, to, to_len)
        )
    })
}

pub fn is_datagram(fd: c_int) -> bool {
    if instance::datagrams::name(fd).is_some() {
        return true;
    }
    let is = super::lock::with(|state| {
        let index = state.index_of(fd);
        index.is_some_and(|index| state.is_datagram(index))
    });
    is.unwrap_or(false)
}
