//! Sockets that listen.
use super::{EchoError, EchoPlan, Mode};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, getsockname, listen,
    setsockopt, socket, sockopt,
};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};

/// One for each thread, on the same port; none listens yet.
pub(super) fn bound_sockets(plan: &EchoPlan) -> Result<Vec<OwnedFd>, EchoError> {
    if plan.mode != Mode::UserMt {
        return Ok(vec![bound(plan, plan.listen, false)?]);
    }
    // Sockets that share a port do not mind a stranger that shares it too, and would lose half of the
    // connections to it: one that does not share is refused there.
    let alone = local_address(&bound(plan, plan.listen, false)?)?;
    (0..plan.threads)
        .map(|_| bound(plan, alone, true))
        .collect()
}

fn refused(listen: SocketAddr) -> impl Fn(nix::Error) -> EchoError {
    move |errno| EchoError::Listen {
        listen,
        why: errno.desc().to_owned(),
    }
}

fn bound(plan: &EchoPlan, at: SocketAddr, shares: bool) -> Result<OwnedFd, EchoError> {
    bound_to(at, plan.v6_only, shares)
}

/// A socket that may listen there; with `shares`, together with others (SO_REUSEPORT).
pub(crate) fn bound_to(at: SocketAddr, v6_only: bool, shares: bool) -> Result<OwnedFd, EchoError> {
    let refused = refused(at);
    let family = match at {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let fd = socket(family, SockType::Stream, flags, None).map_err(&refused)?;
    // A server that is started anew finds connections of the old one in TIME_WAIT.
    setsockopt(&fd, sockopt::ReuseAddr, &true).map_err(&refused)?;
    if shares {
        setsockopt(&fd, sockopt::ReusePort, &true).map_err(&refused)?;
    }
    if at.is_ipv6() {
        setsockopt(&fd, sockopt::Ipv6V6Only, &v6_only).map_err(&refused)?;
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(at)).map_err(&refused)?;
    Ok(fd)
}

pub(super) fn listening(plan: &EchoPlan, fd: OwnedFd) -> Result<TcpListener, EchoError> {
    listening_at(plan.listen, plan.backlog, fd)
}

pub(crate) fn listening_at(
    at: SocketAddr,
    backlog: i32,
    fd: OwnedFd,
) -> Result<TcpListener, EchoError> {
    let refused = refused(at);
    let backlog = Backlog::new(backlog).map_err(&refused)?;
    listen(&fd, backlog).map_err(&refused)?;
    Ok(TcpListener::from(fd))
}

pub(crate) fn local_address(fd: &OwnedFd) -> Result<SocketAddr, EchoError> {
    let address: Result<SockaddrStorage, nix::Error> = getsockname(fd.as_raw_fd());
    let address = address.map_err(EchoError::system("asking where a socket listens"))?;
    let v4 = address.as_sockaddr_in();
    let v4 = v4.map(|v4| SocketAddr::from((v4.ip(), v4.port())));
    let v6 = address.as_sockaddr_in6();
    let address = v4.or_else(|| v6.map(|v6| SocketAddr::from((v6.ip(), v6.port()))));
    address.ok_or_else(|| EchoError::System {
        doing: "asking where a socket listens",
        why: "neither IPv4 nor IPv6".into(),
    })
}

/// As many descriptors as this process may have; gives that number.
pub(crate) fn take_all_descriptors() -> Result<u64, EchoError> {
    let failed = |errno: nix::Error| EchoError::System {
        doing: "raising the limit of open files",
        why: errno.desc().to_owned(),
    };
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(failed)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(failed)?;
    }
    Ok(hard)
}

/// Closing it will send RST, and throw away what is not sent.
pub(crate) fn reset_at_close(stream: &std::net::TcpStream) -> Result<(), EchoError> {
    let linger = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(stream, sockopt::Linger, &linger)
        .map_err(EchoError::system("resetting a connection"))
}
