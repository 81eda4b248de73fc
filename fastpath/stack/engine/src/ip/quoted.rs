//! The packet that an ICMP error quotes: of ours, or so it says, and cut.
use super::input::IcmpError;
use crate::SocketError;
use crate::wire::{be16, be32, icmp, ipv4, ipv6, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Of a packet, or its beginning: who sent it, and the first eight bytes of the transport.
#[derive(Debug, Clone, Copy)]
struct Quoted {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    transport: [u8; 8],
}

/// `error` about the packet of ours that begins `bytes`. `None`: it is cut before its transport's first eight bytes, or a
/// fragment without them.
pub(super) fn error(bytes: &[u8], error: SocketError) -> Option<IcmpError> {
    let quoted = parse(bytes)?;
    Some(IcmpError {
        error,
        hard: false,
        mtu: None,
        local: quoted.source,
        peer: quoted.destination,
        protocol: quoted.protocol,
        transport: quoted.transport,
    })
}

/// Length of the whole quoted IPv4 packet, as it says.
pub(super) fn total_len_v4(bytes: &[u8]) -> u16 {
    be16(bytes, 2)
}

/// Whether a packet has an ICMP error, about which no other is sent. Of a fragment that is not the first nobody knows: true.
pub(super) fn is_icmp_error(bytes: &[u8]) -> bool {
    match parse(bytes) {
        None => transport(bytes).is_none(),
        Some(q) if q.protocol == protocol::ICMP => {
            !matches!(q.transport[0], icmp::v4::ECHO | icmp::v4::ECHO_REPLY)
        }
        // RFC 4443, 2.1: errors are below 128; redirects count as such (2.4 (e)).
        Some(q) if q.protocol == protocol::ICMPV6 => {
            q.transport[0] < icmp::v6::ECHO || q.transport[0] == icmp::v6::REDIRECT
        }
        Some(_) => false,
    }
}

fn parse(bytes: &[u8]) -> Option<Quoted> {
    let (protocol, transport) = transport(bytes)?;
    let (source, destination) = match bytes.first()? >> 4 {
        4 => {
            let address = |at| IpAddr::V4(Ipv4Addr::from_bits(be32(bytes, at)));
            (address(12), address(16))
        }
        _ => {
            let address = |at: usize| {
                let octets = bytes.get(at..at + 16)?.first_chunk::<16>()?;
                Some(IpAddr::V6(Ipv6Addr::from(*octets)))
            };
            (address(8)?, address(24)?)
        }
    };
    Some(Quoted {
        source,
        destination,
        protocol,
        transport: *transport.first_chunk()?,
    })
}

/// The protocol and what follows the IP headers. We send no extension header but a fragment's; a packet of others is
/// looked at as far as that.
fn transport(bytes: &[u8]) -> Option<(u8, &[u8])> {
    match bytes.first()? >> 4 {
        4 => {
            let header = usize::from(bytes[0] & 15) * 4;
            let is_first = be16(bytes, 6) & 0x1fff == 0;
            let valid = header >= ipv4::HEADER_BYTES && is_first;
            let rest = bytes.get(header..).filter(|_| valid)?;
            Some((*bytes.get(9)?, rest))
        }
        6 => {
            let rest = bytes.get(ipv6::HEADER_BYTES..)?;
            match *bytes.get(6)? {
                ipv6::FRAGMENT if be16(rest, 2) & !7 == 0 => Some((*rest.first()?, rest.get(8..)?)),
                ipv6::FRAGMENT => None,
                protocol => Some((protocol, rest)),
            }
        }
        _ => None,
    }
}
