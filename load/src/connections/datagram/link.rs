//! A connected socket for datagrams, UDP or ICMP.
use super::icmp::{self, Version};
use crate::connections::{LoadError, LoadPlan};
use nix::errno::Errno;
use nix::sys::socket::{
    self, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage,
};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    Udp,
    Icmp,
}

pub(super) struct Link {
    fd: OwnedFd,
    /// Version, and the identifier where the socket is raw; `None` for UDP.
    icmp: Option<(Version, Option<u16>)>,
    scratch: Vec<u8>,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Link {
    pub(super) fn open(plan: &LoadPlan, kind: LinkKind, number: usize) -> Result<Link, LoadError> {
        let target = plan.target;
        let (fd, icmp) = match kind {
            LinkKind::Udp => {
                let fd = make(target, SockType::Datagram, None);
                (fd.map_err(LoadError::system("cannot make a socket"))?, None)
            }
            LinkKind::Icmp => {
                let (fd, identifier) = ping_socket(target, number)?;
                let version = match target {
                    SocketAddr::V4(_) => Version::V4,
                    SocketAddr::V6(_) => Version::V6,
                };
                (fd, Some((version, identifier)))
            }
        };
        if !plan.sources.is_empty() {
            let source_ip: IpAddr = plan.sources[number % plan.sources.len()];
            if source_ip.is_ipv4() != target.is_ipv4() {
                return Err(LoadError::Family { source_ip, target });
            }
            let address = SockaddrStorage::from(SocketAddr::new(source_ip, 0));
            let bound = socket::bind(fd.as_raw_fd(), &address);
            bound.map_err(|errno| LoadError::Source { source_ip, errno })?;
        }
        let connected = socket::connect(fd.as_raw_fd(), &SockaddrStorage::from(target));
        connected.map_err(|errno| LoadError::Connect { target, errno })?;
        Ok(Link {
            fd,
            icmp,
            scratch: Vec::new(),
        })
    }

    /// Sends a payload; for ICMP in an echo request.
    pub(super) fn send(&mut self, number: u64, payload: &[u8]) -> Result<(), Errno> {
        let Some((version, identifier)) = self.icmp else {
            return socket::send(self.fd.as_raw_fd(), payload, MsgFlags::empty()).map(drop);
        };
        self.scratch.resize(icmp::HEADER, 0);
        self.scratch.truncate(icmp::HEADER);
        self.scratch.extend_from_slice(payload);
        // A ping socket puts its own identifier there.
        icmp::finish(
            &mut self.scratch,
            version,
            identifier.unwrap_or(0),
            number as u16,
        );
        socket::send(self.fd.as_raw_fd(), &self.scratch, MsgFlags::empty()).map(drop)
    }

    /// The next payload that has come. One that is not for us is skipped.
    pub(super) fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b [u8], Errno> {
        let Some((version, identifier)) = self.icmp else {
            let n = socket::recv(self.fd.as_raw_fd(), buffer, MsgFlags::empty())?;
            return Ok(&buffer[..n]);
        };
        loop {
            let n = socket::recv(self.fd.as_raw_fd(), buffer, MsgFlags::empty())?;
            if let Some(payload) = icmp::payload(&buffer[..n], version, identifier) {
                let from = n - payload.len();
                return Ok(&buffer[from..n]);
            }
        }
    }
}

fn make(
    target: SocketAddr,
    kind: SockType,
    protocol: Option<SockProtocol>,
) -> Result<OwnedFd, Errno> {
    let family = match target {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket::socket(family, kind, flags, protocol)
}

/// A ping socket, or a raw one with an identifier of its own.
fn ping_socket(target: SocketAddr, number: usize) -> Result<(OwnedFd, Option<u16>), LoadError> {
    let protocol = match target {
        SocketAddr::V4(_) => SockProtocol::Icmp,
        SocketAddr::V6(_) => SockProtocol::IcmpV6,
    };
    match make(target, SockType::Datagram, Some(protocol)) {
        Ok(fd) => return Ok((fd, None)),
        Err(Errno::EACCES | Errno::EPERM | Errno::EPROTONOSUPPORT) => {}
        Err(errno) => return Err(LoadError::Ping { errno }),
    }
    let raw = make(target, SockType::Raw, Some(protocol));
    let fd = raw.map_err(|errno| LoadError::Ping { errno })?;
    let identifier = (std::process::id() as usize).wrapping_add(number) as u16;
    Ok((fd, Some(identifier)))
}
