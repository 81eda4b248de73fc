//! The kernel's socket of a program's socket of UDP: it has the options, and what comes there while the program's is at every address.
use super::datagram::Head;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use rustix::net::{AddressFamily, SocketType, sockopt};
use rustix::net::{bind, connect_unspec, getpeername, getsockname};
use std::io::IoSliceMut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

pub struct Joined {
    fd: OwnedFd,
    pub ready: bool,
}

pub enum Came {
    Datagram(Head, usize),
    /// errno
    Error(i32),
    Nothing,
}

impl Joined {
    pub fn new(fd: OwnedFd) -> Joined {
        Joined { fd, ready: true }
    }

    /// A program's descriptor is a socket of UDP.
    pub fn is_one(fd: &OwnedFd) -> bool {
        let fd = fd.as_fd();
        let domain = sockopt::socket_domain(fd);
        matches!(domain, Ok(AddressFamily::INET | AddressFamily::INET6))
            && sockopt::socket_type(fd) == Ok(SocketType::DGRAM)
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub fn local(&self) -> Option<SocketAddr> {
        getsockname(&self.fd).ok()?.try_into().ok()
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        getpeername(&self.fd).ok()??.try_into().ok()
    }

    /// One of the kernel's choice, where it has none. True: it was chosen now.
    pub fn take_port(&self, ipv6: bool) -> rustix::io::Result<(u16, bool)> {
        let port = |local: Option<SocketAddr>| local.map_or(0, |local| local.port());
        let before = port(self.local());
        if before != 0 {
            return Ok((before, false));
        }
        let any: IpAddr = match ipv6 {
            false => Ipv4Addr::UNSPECIFIED.into(),
            true => Ipv6Addr::UNSPECIFIED.into(),
        };
        bind(&self.fd, &SocketAddr::new(any, 0))?;
        Ok((port(self.local()), true))
    }

    /// A port that was chosen for it is given up.
    pub fn disconnect(&self) {
        let _ = connect_unspec(&self.fd);
    }

    /// The oldest datagram, which stays.
    pub fn peek(&mut self, into: &mut [u8]) -> Came {
        if !self.ready {
            return Came::Nothing;
        }
        let mut control = nix::cmsg_space!(libc::in6_pktinfo, libc::in_pktinfo, [i32; 4], [i32; 4]);
        let mut parts = [IoSliceMut::new(into)];
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK;
        let fd = self.fd.as_raw_fd();
        match recvmsg::<SockaddrStorage>(fd, &mut parts, Some(&mut control), flags) {
            Ok(message) => {
                let mut head = Head {
                    peer: message.address.as_ref().and_then(address),
                    ..Head::default()
                };
                for part in message.cmsgs().into_iter().flatten() {
                    note(&mut head, &part);
                }
                Came::Datagram(head, message.bytes)
            }
            Err(nix::errno::Errno::EAGAIN) => {
                self.ready = false;
                Came::Nothing
            }
            Err(nix::errno::Errno::EINTR) => Came::Nothing,
            Err(error) => Came::Error(error as i32),
        }
    }

    pub fn discard(&self) {
        let flags = rustix::net::RecvFlags::DONTWAIT;
        let _ = rustix::net::recv(&self.fd, &mut [0_u8; 1][..], flags);
    }
}

fn address(of: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = of.as_sockaddr_in().map(|v4| SocketAddr::V4((*v4).into()));
    v4.or_else(|| of.as_sockaddr_in6().map(|v6| SocketAddr::V6((*v6).into())))
}

/// What the program has asked the kernel's socket for.
fn note(head: &mut Head, part: &ControlMessageOwned) {
    match part {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            let to = u32::from_be(info.ipi_addr.s_addr);
            head.local = Some(Ipv4Addr::from(to).into());
            head.interface = info.ipi_ifindex as u32;
            head.answers = Some(Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr)));
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            head.local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
            head.interface = info.ipi6_ifindex;
        }
        ControlMessageOwned::Ipv4Ttl(hops) | ControlMessageOwned::Ipv6HopLimit(hops) => {
            head.hop_limit = u8::try_from(*hops).ok();
        }
        ControlMessageOwned::Ipv4Tos(class) => head.traffic_class = Some(*class),
        ControlMessageOwned::Ipv6TClass(class) => head.traffic_class = u8::try_from(*class).ok(),
        _ => {}
    }
}
