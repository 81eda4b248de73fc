//! Socket options that no safe interface has: socket(7), `SO_COOKIE`, `SO_NETNS_COOKIE`, `SO_RCVLOWAT` and
//! `SO_ATTACH_BPF`; tcp(7), `TCP_WINDOW_CLAMP`.
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsFd, AsRawFd};

/// include/uapi/asm-generic/socket.h
const SO_COOKIE: libc::c_int = 57;
const SO_NETNS_COOKIE: libc::c_int = 71;

/// The kernel's number of a socket, that no other one ever has.
///
/// # Errors
/// Those of getsockopt(2).
pub fn cookie(socket: impl AsFd) -> Result<u64, Errno> {
    number(socket, SO_COOKIE)
}

/// The same of its network namespace (Linux 5.14).
///
/// # Errors
/// Those of getsockopt(2).
pub fn netns_cookie(socket: impl AsFd) -> Result<u64, Errno> {
    number(socket, SO_NETNS_COOKIE)
}

fn number(socket: impl AsFd, option: libc::c_int) -> Result<u64, Errno> {
    let fd = socket.as_fd().as_raw_fd();
    let mut value = 0u64;
    let mut len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: `value` has room for the `len` bytes that the kernel is told of.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            option,
            (&raw mut value).cast(),
            &mut len,
        )
    };
    Errno::result(result).map(|_| value)
}

/// Has the kernel look at what a socket has received already. Bytes that came before a program could be
/// run on them, before `accept`, otherwise wait for the next ones, which may never come: a changed low
/// watermark makes TCP say again that there is something to read (`tcp_set_rcvlowat`). Reading would
/// do that too, but only since Linux 6.4.
///
/// # Errors
/// Those of setsockopt(2).
pub fn look_at_received(socket: impl AsFd) -> Result<(), Errno> {
    set(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, 1)
}

/// The largest window that the socket offers, bytes.
///
/// # Errors
/// Those of getsockopt(2).
pub fn window_clamp(socket: impl AsFd) -> Result<libc::c_int, Errno> {
    let fd = socket.as_fd().as_raw_fd();
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` has room for the `len` bytes that the kernel is told of.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw mut value).cast(),
            &mut len,
        )
    };
    Errno::result(result).map(|_| value)
}

/// Sets it; the kernel takes no less than a kilobyte, and keeps what it has offered.
///
/// # Errors
/// Those of setsockopt(2).
pub fn set_window_clamp(socket: impl AsFd, bytes: libc::c_int) -> Result<(), Errno> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// Has a program of the kind `socket` say how much of each segment TCP gets; it takes the place of the one
/// before (socket(7), `SO_ATTACH_BPF`).
///
/// # Errors
/// Those of setsockopt(2): EPERM where the socket's filter is locked.
pub fn attach_filter(socket: impl AsFd, program: impl AsFd) -> Result<(), Errno> {
    let program = program.as_fd().as_raw_fd();
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, program)
}

fn set(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads an int at `value`.
    let result = unsafe {
        libc::setsockopt(
            fd,
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Errno::result(result).map(drop)
}

mod request {
    // ioctl_tty(2): FIONREAD stores an int.
    nix::ioctl_read_bad!(fionread, nix::libc::FIONREAD, nix::libc::c_int);
}

/// Bytes that can be read without waiting, as FIONREAD has them.
///
/// # Errors
/// Not a socket.
pub fn bytes_to_read(socket: impl AsFd) -> Result<usize, Errno> {
    let mut bytes = 0;
    // SAFETY: the descriptor is open for as long as it is borrowed, and `bytes` is where the kernel
    // stores its int.
    unsafe { request::fionread(socket.as_fd().as_raw_fd(), &raw mut bytes) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}
