//! Sockets with the options that a measurement needs.
use super::{Close, LoadError, LoadPlan};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, setsockopt, sockopt,
};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

/// Why a connection could not be begun: before the network was asked, or by its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    Errno(Errno),
    TimedOut,
}

fn family(address: SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// A socket for the `number`-th connection of a plan: non-blocking, without delay (a request is
/// complete when it is written: Nagle would wait for more), bound to its source address.
pub(super) fn prepare(plan: &LoadPlan, number: usize) -> Result<TcpStream, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket::socket(family(plan.target), SockType::Stream, flags, None)?;
    setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    if plan.close == Close::Reset {
        let linger = nix::libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        setsockopt(&fd, sockopt::Linger, &linger)?;
    }
    if !plan.sources.is_empty() {
        let source = plan.sources[number % plan.sources.len()];
        // The port is chosen at connect, by the whole tuple: a port serves many targets.
        setsockopt(&fd, sockopt::IpBindAddressNoPort, &true)?;
        let address = SockaddrStorage::from(SocketAddr::new(source, 0));
        socket::bind(fd.as_raw_fd(), &address)?;
    }
    Ok(TcpStream::from(fd))
}

/// Begins to connect; `Ok(true)` where it is done at once.
pub(super) fn begin(stream: &TcpStream, target: SocketAddr) -> Result<bool, Errno> {
    match socket::connect(stream.as_raw_fd(), &SockaddrStorage::from(target)) {
        Ok(()) => Ok(true),
        Err(Errno::EINPROGRESS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// How a connection that was begun has ended, once it is writable.
pub(super) fn connected(stream: &TcpStream) -> Result<(), Errno> {
    match socket::getsockopt(stream, sockopt::SocketError)? {
        0 => Ok(()),
        code => Err(Errno::from_raw(code)),
    }
}

/// Connects and waits for it.
pub(super) fn open(plan: &LoadPlan, number: usize) -> Result<TcpStream, Opening> {
    let stream = prepare(plan, number).map_err(Opening::Errno)?;
    if !begin(&stream, plan.target).map_err(Opening::Errno)? {
        let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
        let time = PollTimeout::try_from(plan.timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, time).map_err(Opening::Errno)? {
            0 => return Err(Opening::TimedOut),
            _ => connected(&stream).map_err(Opening::Errno)?,
        }
    }
    Ok(stream)
}

/// As [`open`], for a run that cannot begin without this connection.
pub(super) fn must_open(plan: &LoadPlan, number: usize) -> Result<TcpStream, LoadError> {
    let target = plan.target;
    open(plan, number).map_err(|why| match why {
        Opening::TimedOut => LoadError::ConnectTimeout {
            target,
            seconds: plan.timeout.as_secs_f64(),
        },
        Opening::Errno(errno) => LoadError::Connect { target, errno },
    })
}

/// Checks once that every source address can be used, for a clear answer before the run.
pub(super) fn check_sources(plan: &LoadPlan) -> Result<(), LoadError> {
    for (number, &source_ip) in plan.sources.iter().enumerate() {
        let target = plan.target;
        if source_ip.is_ipv4() != target.is_ipv4() {
            return Err(LoadError::Family { source_ip, target });
        }
        prepare(plan, number).map_err(|errno| LoadError::Source { source_ip, errno })?;
    }
    Ok(())
}

/// A socket bound to the address. One that shares its port shares it with all that say so too; one
/// that does not is refused where anybody has the port.
pub(super) fn bound(address: SocketAddr, kind: SockType, shared: bool) -> Result<OwnedFd, Errno> {
    let fd = socket::socket(family(address), kind, SockFlag::SOCK_CLOEXEC, None)?;
    if kind == SockType::Stream {
        // Connections of an earlier server in TIME_WAIT do not keep this one from its port. Over
        // UDP the same option would let two servers have it.
        setsockopt(&fd, sockopt::ReuseAddr, &true)?;
        // Accepted sockets inherit it.
        setsockopt(&fd, sockopt::TcpNoDelay, &true)?;
    }
    if shared {
        setsockopt(&fd, sockopt::ReusePort, &true)?;
    }
    socket::bind(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
    Ok(fd)
}

pub(super) fn listen(fd: &OwnedFd, backlog: i32) -> Result<(), Errno> {
    socket::listen(fd, Backlog::new(backlog)?)
}

/// Wakes a blocking read at least this often, so that it can look whether it should stop.
pub(super) const TICK: Duration = Duration::from_millis(50);
