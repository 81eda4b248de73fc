//! What a socket call fails with, one to one with Linux' errno.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SocketError {
    #[error("bad socket (EBADF)")]
    BadSocket,
    #[error("operation would block (EAGAIN)")]
    WouldBlock,
    #[error("operation in progress (EINPROGRESS)")]
    InProgress,
    #[error("operation already in progress (EALREADY)")]
    Already,
    #[error("socket is connected (EISCONN)")]
    IsConnected,
    #[error("socket is not connected (ENOTCONN)")]
    NotConnected,
    #[error("destination address required (EDESTADDRREQ)")]
    DestinationRequired,
    #[error("permission denied (EACCES)")]
    Access,
    #[error("address in use (EADDRINUSE)")]
    AddressInUse,
    #[error("address not available (EADDRNOTAVAIL)")]
    AddressNotAvailable,
    #[error("address family not supported (EAFNOSUPPORT)")]
    Family,
    #[error("invalid argument (EINVAL)")]
    Invalid,
    #[error("operation not supported (EOPNOTSUPP)")]
    NotSupported,
    #[error("no such option (ENOPROTOOPT)")]
    NoOption,
    #[error("connection refused (ECONNREFUSED)")]
    Refused,
    #[error("connection reset by peer (ECONNRESET)")]
    Reset,
    #[error("connection aborted (ECONNABORTED)")]
    Aborted,
    #[error("broken pipe (EPIPE)")]
    BrokenPipe,
    #[error("connection timed out (ETIMEDOUT)")]
    TimedOut,
    #[error("host unreachable (EHOSTUNREACH)")]
    HostUnreachable,
    #[error("network unreachable (ENETUNREACH)")]
    NetworkUnreachable,
    #[error("message too long (EMSGSIZE)")]
    MessageTooLong,
    #[error("out of buffer space (ENOBUFS)")]
    NoBuffers,
    #[error("protocol error (EPROTO)")]
    Protocol,
}

impl SocketError {
    /// The number that Linux has for it (x86-64, asm-generic/errno.h).
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            SocketError::BadSocket => 9,
            SocketError::WouldBlock => 11,
            SocketError::InProgress => 115,
            SocketError::Already => 114,
            SocketError::IsConnected => 106,
            SocketError::NotConnected => 107,
            SocketError::DestinationRequired => 89,
            SocketError::Access => 13,
            SocketError::AddressInUse => 98,
            SocketError::AddressNotAvailable => 99,
            SocketError::Family => 97,
            SocketError::Invalid => 22,
            SocketError::NotSupported => 95,
            SocketError::NoOption => 92,
            SocketError::Refused => 111,
            SocketError::Reset => 104,
            SocketError::Aborted => 103,
            SocketError::BrokenPipe => 32,
            SocketError::TimedOut => 110,
            SocketError::HostUnreachable => 113,
            SocketError::NetworkUnreachable => 101,
            SocketError::MessageTooLong => 90,
            SocketError::NoBuffers => 105,
            SocketError::Protocol => 71,
        }
    }
}
