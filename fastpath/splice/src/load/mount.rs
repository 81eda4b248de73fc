//! A cgroup2 file system that nobody else sees: fsopen(2), fsconfig(2), fsmount(2).
use nix::errno::Errno;
use nix::libc;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// include/uapi/linux/mount.h
const FSOPEN_CLOEXEC: libc::c_uint = 1;
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// The mount is nowhere: it is reached through the descriptor only, and goes with its last copy. Children inherit it.
///
/// # Errors
/// Not allowed, or a kernel without cgroup2.
pub fn cgroup2() -> Result<OwnedFd, Errno> {
    // SAFETY: the name is a string with its end; the kernel returns a new descriptor or -1.
    let context = unsafe { libc::syscall(libc::SYS_fsopen, c"cgroup2".as_ptr(), FSOPEN_CLOEXEC) };
    let context = owned(context)?;
    let none = std::ptr::null::<libc::c_char>();
    // SAFETY: this command takes neither a key nor a value.
    let made = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            none,
            none,
            0,
        )
    };
    Errno::result(made)?;
    // SAFETY: no pointers; the kernel returns a new descriptor or -1.
    let mount = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 0, 0) };
    owned(mount)
}

fn owned(returned: libc::c_long) -> Result<OwnedFd, Errno> {
    let fd = Errno::result(returned)?;
    let fd = libc::c_int::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A program that is executed does not get this descriptor.
///
/// # Errors
/// There is none of that number.
pub fn close_on_exec(fd: i32) -> Result<(), Errno> {
    // SAFETY: no pointers; the flag changes nothing for whoever uses the descriptor here.
    let set = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    Errno::result(set).map(drop)
}
