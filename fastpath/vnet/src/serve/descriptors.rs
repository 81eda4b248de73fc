//! Descriptors that come with a message (`SCM_RIGHTS`, unix(7)), owned from the moment they are here.
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// The most that one message can carry (`SCM_MAX_FD`): with room for fewer the kernel cuts, and those that
/// did fit would belong to nobody.
const DESCRIPTORS_MAX: usize = 253;

/// Reads without waiting, and keeps what came along. 0: the peer disconnected.
///
/// # Errors
/// As recvmsg(2); `WouldBlock` when nothing is there.
pub(super) fn receive(
    from: &UnixStream,
    bytes: &mut [u8],
    came: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = nix::cmsg_space!([RawFd; DESCRIPTORS_MAX]);
    let mut parts = [IoSliceMut::new(bytes)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(from.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = control {
            // SAFETY: the kernel has just made these descriptors in this process for this call, and nobody
            // else knows their numbers.
            came.extend(
                numbers
                    .into_iter()
                    .map(|n| unsafe { OwnedFd::from_raw_fd(n) }),
            );
        }
    }
    Ok(message.bytes)
}
