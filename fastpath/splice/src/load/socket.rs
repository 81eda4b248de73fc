//! What a socket says of itself.
use std::io;
use std::os::fd::{AsFd, AsRawFd};

#[allow(unsafe_code)]
mod request {
    // ioctl_tty(2): FIONREAD stores an int.
    nix::ioctl_read_bad!(fionread, nix::libc::FIONREAD, nix::libc::c_int);
}

/// Bytes that can be read without waiting, as FIONREAD has them.
///
/// # Errors
/// Not a socket.
#[allow(unsafe_code)]
pub fn bytes_to_read(socket: impl AsFd) -> io::Result<usize> {
    let mut bytes = 0;
    // SAFETY: the descriptor is open for as long as it is borrowed, and `bytes` is where the kernel
    // stores its int.
    unsafe { request::fionread(socket.as_fd().as_raw_fd(), &raw mut bytes) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}
