//! Messages of unix(7) sockets that carry descriptors. Calls of the kernel without the C library's functions: a program whose calls
//! are taken uses them, too.
use rustix::io::Result;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, recvmsg, sendmsg,
};
pub use rustix::net::{RecvFlags, SendFlags};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Descriptors that come with a message at most; what is more is closed.
const MOST: usize = 4;

/// Without a signal where the other end is gone.
///
/// # Errors
/// As sendmsg(2).
pub fn send(
    to: impl AsFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(rustix::io::Errno::TOOMANYREFS);
    }
    let flags = flags | SendFlags::NOSIGNAL;
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, flags)
}

/// What came.
#[derive(Debug)]
pub struct Passed {
    pub len: usize,
    /// Closed by exec, and owned from here on.
    pub fds: Vec<OwnedFd>,
    /// Descriptors were lost on the way: this process has no room for them.
    pub cut: bool,
}

/// # Errors
/// As recvmsg(2).
pub fn receive(from: impl AsFd, into: &mut [u8], flags: RecvFlags) -> Result<Passed> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let got = recvmsg(from, &mut [IoSliceMut::new(into)], &mut control, flags)?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok(Passed {
        len: got.bytes,
        fds,
        cut: got.flags.contains(ReturnFlags::CTRUNC),
    })
}
