//! getsockname, getpeername: the addresses of a socket's ends. Every SAFETY comment "as libc's" says: the program passes what libc's
//! call of that name takes.
use super::memory::{done, is_nowhere, put_address};
use super::wait::{call, has_become_the_instances};
use super::{instance, real};
use crate::step::Step;
use crate::table::{self, Entry};
use nix::libc::{self, c_int, sockaddr, socklen_t};

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn getsockname(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { address(fd, into, len, true) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn getpeername(
    fd: c_int,
    into: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: as libc's.
    unsafe { address(fd, into, len, false) }
}

/// # Safety
/// As of libc's getsockname and getpeername.
unsafe fn address(fd: c_int, into: *mut sockaddr, len: *mut socklen_t, own: bool) -> c_int {
    match table::get(fd) {
        // SAFETY: as libc's.
        Entry::Kernel => unsafe { kernels(fd, into, len, own) },
        Entry::Datagrams(name) => {
            // SAFETY: as libc's.
            unsafe { instance::datagram_options::address_of(name, own, into, len) }
        }
        // SAFETY: as libc's.
        Entry::Instance(name) => unsafe { instance::address(name, own, into, len) },
        // SAFETY: as libc's.
        _ => unsafe { engines(fd, into, len, own) },
    }
}

/// # Safety
/// As of libc's getsockname and getpeername.
unsafe fn kernels(fd: c_int, into: *mut sockaddr, len: *mut socklen_t, own: bool) -> c_int {
    let call = if own {
        real::getsockname
    } else {
        real::getpeername
    };
    // SAFETY: as libc's.
    unsafe { call(fd, into, len) }
}

/// # Safety
/// As of libc's getsockname and getpeername.
unsafe fn engines(fd: c_int, into: *mut sockaddr, len: *mut socklen_t, own: bool) -> c_int {
    let mut bytes = Vec::new();
    let ours = call(fd, |state, index| match state.address(index, own) {
        Some(Ok(found)) => {
            bytes = hopscope_stack_abi::address::to_bytes(found);
            Step::Done(0)
        }
        Some(Err(error)) => Step::Fail(error),
        None => Step::Pass,
    });
    match ours {
        Some(0) if is_nowhere(into) || is_nowhere(len) => done(Err(libc::EFAULT)) as c_int,
        Some(0) => {
            // SAFETY: as libc's.
            done(unsafe { put_address(&bytes, into, len) }.map(|()| 0)) as c_int
        }
        Some(failed) => failed as c_int,
        // SAFETY: as libc's.
        None if has_become_the_instances(fd) => unsafe { address(fd, into, len, own) },
        // SAFETY: as libc's.
        None => unsafe { kernels(fd, into, len, own) },
    }
}
