//! Sockets and their options.
use nix::libc;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// # Safety
/// Any bit pattern is a value, zero too, and there are no pointers or references in it that the
/// kernel would follow.
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: integers.
unsafe impl Plain for libc::c_int {}
// SAFETY: structures of integers.
unsafe impl Plain for libc::tpacket_req {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_stats {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: as above.
unsafe impl Plain for libc::xdp_statistics {}
// SAFETY: integers; the kernel pins the memory that `addr` names and faults when it is not there.
// Whoever passes it keeps the mapping until the socket is closed.
unsafe impl Plain for libc::xdp_umem_reg_v1 {}

pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Non-blocking and closed on exec.
pub(crate) fn open_socket(domain: libc::c_int, kind: libc::c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is passed; a descriptor that is returned is ours alone.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::socket(domain, kind, 0))?)) }
}

pub(crate) fn set_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives over the call and is `len` bytes long; `Plain` holds no pointers.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), len) })
        .map(drop)
}

pub(crate) fn get_option<T: Plain>(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `value`; what it leaves is zero, and every
    // bit pattern of a `Plain` is a value.
    unsafe {
        let at = value.as_mut_ptr().cast();
        check(libc::getsockopt(fd.as_raw_fd(), level, name, at, &mut len))?;
        Ok(value.assume_init())
    }
}

/// Protocol 0 receives nothing.
pub(crate) fn bind_packet(fd: BorrowedFd<'_>, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: zero is a value of this structure of integers.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` lives over the call and is `len` bytes long.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}
