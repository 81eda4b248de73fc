//! One UDP socket.
use super::datagrams::Datagrams;
use super::options::UdpOptions;
use crate::ip::Hop;
use crate::{Readiness, SocketError, SocketId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What is known of a datagram that was received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived {
    pub peer: SocketAddr,
    pub to: IpAddr,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

#[derive(Debug)]
pub(super) struct Socket {
    pub id: SocketId,
    /// Never that of another socket: what is still to be sent names it after it is closed.
    pub serial: u64,
    pub ipv6: bool,
    pub options: UdpOptions,
    /// Port 0: not bound. IPv4 addresses of IPv6 sockets are not mapped here.
    pub local: SocketAddr,
    /// bind(2) chose it, so that it survives a disconnect.
    pub is_address_bound: bool,
    pub is_port_bound: bool,
    pub peer: Option<SocketAddr>,
    pub hop: Hop,
    pub received: Datagrams<Arrived>,
    /// What its datagrams that wait to be sent count.
    pub queued_bytes: usize,
    /// A send was refused since there was room.
    pub wants_room: bool,
    pub error: Option<SocketError>,
    pub shut_read: bool,
    pub shut_write: bool,
}

impl Socket {
    pub(super) fn new(id: SocketId, serial: u64, ipv6: bool, options: UdpOptions) -> Socket {
        Socket {
            id,
            serial,
            ipv6,
            options,
            local: SocketAddr::new(unspecified(ipv6), 0),
            is_address_bound: false,
            is_port_bound: false,
            peer: None,
            hop: Hop::default(),
            received: Datagrams::default(),
            queued_bytes: 0,
            wants_room: false,
            error: None,
            shut_read: false,
            shut_write: false,
        }
    }

    /// datagram_poll and sock_writeable of Linux.
    pub(super) fn readiness(&self) -> Readiness {
        Readiness {
            readable: !self.received.is_empty() || self.shut_read,
            writable: self.has_room(),
            read_hangup: self.shut_read,
            hangup: self.shut_read && self.shut_write,
            error: self.error.is_some(),
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.queued_bytes < self.options.send_buffer as usize / 2
    }

    /// Whether it takes packets of the family.
    pub(super) fn takes(&self, ipv6: bool) -> bool {
        self.ipv6 == ipv6 || (self.ipv6 && !self.options.v6_only)
    }

    /// An address as the socket's owner gives it, without mapping.
    ///
    /// # Errors
    /// Family; Invalid: of IPv4 on a socket that is of IPv6 only.
    pub(super) fn canonical(&self, address: SocketAddr) -> Result<SocketAddr, SocketError> {
        let ip = address.ip().to_canonical();
        if !self.ipv6 && ip.is_ipv6() {
            return Err(SocketError::Family);
        }
        // The wildcard of an IPv6 socket is of both families.
        if ip.is_ipv4() && !self.takes(false) {
            return Err(SocketError::Invalid);
        }
        Ok(SocketAddr::new(ip, address.port()))
    }

    /// An address as the socket's owner sees it.
    pub(super) fn shown(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(v4) if self.ipv6 && v4.is_unspecified() => {
                SocketAddr::new(unspecified(true), address.port())
            }
            IpAddr::V4(v4) if self.ipv6 => {
                SocketAddr::new(v4.to_ipv6_mapped().into(), address.port())
            }
            _ => address,
        }
    }
}

pub(super) fn unspecified(ipv6: bool) -> IpAddr {
    if ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}
