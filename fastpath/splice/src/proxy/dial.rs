//! Connections to the upstream, begun and not waited for.
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

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

/// Probes before a connection is over.
const PROBES: u32 = 6;

/// Has TCP probe the other end after so long without a segment (tcp(7), TCP_KEEPIDLE; whole seconds).
pub(super) fn keep_alive(stream: &TcpStream, after: Duration) -> Result<(), Errno> {
    let seconds = u32::try_from(after.as_secs()).unwrap_or(MOST_SECONDS);
    let after = seconds.clamp(1, MOST_SECONDS);
    setsockopt(stream, sockopt::TcpKeepIdle, &after)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &after.div_ceil(PROBES))?;
    setsockopt(stream, sockopt::TcpKeepCount, &PROBES)?;
    setsockopt(stream, sockopt::KeepAlive, &true)
}

/// MAX_TCP_KEEPIDLE (include/net/tcp.h)
pub const MOST_SECONDS: u32 = 32767;
