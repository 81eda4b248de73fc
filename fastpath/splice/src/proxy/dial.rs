//! Connections to the upstream, begun and not waited for.
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

/// The socket can be written to when the connection is there, or has failed.
pub(super) fn dial(to: SocketAddr) -> Result<TcpStream, Errno> {
    let family = match to {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Stream, flags, None)?;
    setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    match connect(fd.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(TcpStream::from(fd)),
        Err(errno) => Err(errno),
    }
}
