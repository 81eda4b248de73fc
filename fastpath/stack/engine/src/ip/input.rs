//! What a received frame turned out to be.
use crate::SocketError;
use crate::wire::{be16, be32, tcp, udp};
use std::net::IpAddr;

/// The IP packet around a transport's bytes. Both addresses are unicast and `destination` is ours, except for UDP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub hop_limit: u8,
    pub traffic_class: u8,
    /// From the IP header on: what an ICMP error about it quotes.
    pub bytes: &'a [u8],
}

#[derive(Debug)]
pub(crate) enum Input<'a> {
    /// Handled here, or dropped and counted.
    Done,
    /// The checksum is right. TCP counts malformed options.
    Tcp(Packet<'a>, tcp::Segment<'a>),
    /// The same. To be refused by [`super::Interface::refuse_port`] where no socket is.
    Udp(Packet<'a>, udp::Datagram<'a>),
    /// About a packet that somebody here sent, or so it says.
    Error(IcmpError),
    /// The last fragment came: to be given to [`super::Interface::receive_reassembled`].
    Reassembled(Box<[u8]>),
}

/// What ICMP, or a neighbour that did not answer, says about a packet of ours. A connection has to check that `seq` is in
/// flight before it believes it (RFC 5927, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IcmpError {
    /// As Linux converts types and codes.
    pub error: SocketError,
    /// Hard errors end what RFC 1122, 4.2.3.9 lets them end; Linux' icmp_err_convert says which they are.
    pub hard: bool,
    /// The next hop's MTU, in bytes of IP packets, where that is the error. Whoever has checked it calls
    /// [`super::Interface::lower_mtu`].
    pub mtu: Option<u16>,
    pub local: IpAddr,
    pub peer: IpAddr,
    pub protocol: u8,
    /// The first bytes of the transport's header.
    pub transport: [u8; 8],
}

impl IcmpError {
    pub(crate) fn local_port(&self) -> u16 {
        be16(&self.transport, 0)
    }

    pub(crate) fn peer_port(&self) -> u16 {
        be16(&self.transport, 2)
    }

    /// TCP's sequence number.
    pub(crate) fn seq(&self) -> u32 {
        be32(&self.transport, 4)
    }
}
