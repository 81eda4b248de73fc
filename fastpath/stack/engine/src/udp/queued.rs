//! A datagram that waits to be sent.
use super::socket::Socket;
use crate::ip::{Hop, Outgoing};
use crate::wire::checksum::Sum;
use crate::wire::protocol;
use crate::wire::udp::{self, HEADER_BYTES};
use crate::{MtuDiscovery, Outbound, SocketId};
use std::net::SocketAddr;

/// What is known of a datagram that waits; its socket may be gone.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) index: u32,
    pub(super) serial: u64,
    pub(super) id: SocketId,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    /// Routers may make fragments of it.
    pub(super) may_be_cut: bool,
    /// What is beyond the path's MTU goes out in fragments.
    pub(super) cut_here: bool,
    pub(super) hop: Hop,
    /// Fragments of it are out.
    pub(super) progress: Option<Progress>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub(super) identification: u32,
    /// The next fragment's, from the UDP header on.
    pub(super) offset: usize,
    pub(super) piece_bytes: usize,
}

impl Queued {
    pub(super) fn new(
        socket: &Socket,
        index: u32,
        (source, destination): (SocketAddr, SocketAddr),
        outbound: &Outbound,
    ) -> Queued {
        let (peer, header) = (destination.ip(), &socket.options.header);
        let discovery = header.mtu_discovery(peer);
        Queued {
            index,
            serial: socket.serial,
            id: socket.id,
            source,
            destination,
            hop_limit: outbound.hop_limit.unwrap_or(header.hop_limit(peer)),
            traffic_class: outbound.traffic_class.unwrap_or(header.traffic_class(peer)),
            may_be_cut: matches!(
                discovery,
                MtuDiscovery::Dont | MtuDiscovery::Interface | MtuDiscovery::Omit
            ),
            cut_here: !matches!(discovery, MtuDiscovery::Probe | MtuDiscovery::Interface),
            hop: if socket.peer == Some(destination) {
                socket.hop
            } else {
                Hop::default()
            },
            progress: None,
        }
    }

    pub(super) fn outgoing(&self, len: usize) -> Outgoing {
        let (source, destination) = (self.source.ip(), self.destination.ip());
        let multicast = destination.is_multicast();
        Outgoing {
            // IP_MULTICAST_TTL's default.
            hop_limit: if multicast { 1 } else { self.hop_limit },
            traffic_class: self.traffic_class,
            socket: Some(self.id),
            ..Outgoing::new(source, destination, protocol::UDP, len)
        }
    }

    pub(super) fn header(&self, payload_bytes: usize) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        udp::Header {
            source_port: self.source.port(),
            destination_port: self.destination.port(),
            len: (HEADER_BYTES + payload_bytes) as u16,
        }
        .emit(&mut header);
        header
    }

    pub(super) fn pseudo_header(&self, payload_bytes: usize) -> Sum {
        let len = (HEADER_BYTES + payload_bytes) as u32;
        let (source, destination) = (self.source.ip(), self.destination.ip());
        Sum::of_pseudo_header(source, destination, protocol::UDP, len)
    }
}
