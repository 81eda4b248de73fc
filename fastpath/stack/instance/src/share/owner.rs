//! Which of several engines a frame is for. What one of them needs goes to that one, so that it is counted and answered once; what nobody
//! can use is the first's, which counts it.
use hopscope_stack_engine::wire::{flow_hash, protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whose a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    One(usize),
    /// What several may need: answers of neighbours, fragments.
    All,
}

const FIRST: Owner = Owner::One(0);

const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP_REPLY: u16 = 2;
const NEIGHBOR_ADVERTISEMENT: u8 = 136;
/// Of messages of ICMP and ICMPv6: before the packet that an error is about.
const ICMP_HEADER_BYTES: usize = 8;

/// A packet, or its beginning.
struct Packet<'a> {
    source: IpAddr,
    destination: IpAddr,
    is_fragment: bool,
    protocol: u8,
    /// Behind the headers of IP; of a fragment that is not the first, `None`.
    transport: Option<&'a [u8]>,
}

pub(super) fn owner(frame: &[u8], of: usize, datagrams_at_first: bool) -> Owner {
    let one = |peer, local| Owner::One(flow_hash(peer, local) as usize % of);
    owner_of(frame, datagrams_at_first, one).unwrap_or(FIRST)
}

/// `None`: the first's.
fn owner_of(
    frame: &[u8],
    datagrams_at_first: bool,
    one: impl Fn(SocketAddr, SocketAddr) -> Owner,
) -> Option<Owner> {
    match half(frame, 12)? {
        // Questions are answered once.
        ARP => return (half(frame, 20)? == ARP_REPLY).then_some(Owner::All),
        IPV4 | IPV6 => {}
        _ => return None,
    }
    let packet = packet(&frame[14..])?;
    if packet.is_fragment {
        return Some(Owner::All);
    }
    let transport = packet.transport?;
    if let (protocol::ICMPV6, NEIGHBOR_ADVERTISEMENT) = (packet.protocol, *transport.first()?) {
        return Some(Owner::All);
    }
    // An error is for whoever has sent what it is about.
    let (packet, is_ours) = match is_error(packet.protocol, *transport.first()?) {
        true => (self::packet(transport.get(ICMP_HEADER_BYTES..)?)?, true),
        false => (packet, false),
    };
    match packet.protocol {
        protocol::UDP if datagrams_at_first => return None,
        protocol::TCP | protocol::UDP => {}
        _ => return None,
    }
    let transport = packet.transport?;
    let source = SocketAddr::new(packet.source, half(transport, 0)?);
    let destination = SocketAddr::new(packet.destination, half(transport, 2)?);
    Some(match is_ours {
        true => one(destination, source),
        false => one(source, destination),
    })
}

/// Of ICMP: unreachable, source quench, redirect, time exceeded, parameter problem. ICMPv6's are below 128 (RFC 4443, 2.1).
fn is_error(protocol: u8, kind: u8) -> bool {
    match protocol {
        protocol::ICMP => matches!(kind, 3 | 4 | 5 | 11 | 12),
        protocol::ICMPV6 => kind < 128,
        _ => false,
    }
}

fn packet(bytes: &[u8]) -> Option<Packet<'_>> {
    match bytes.first()? >> 4 {
        4 => packet_v4(bytes),
        6 => packet_v6(bytes),
        _ => None,
    }
}

fn packet_v4(bytes: &[u8]) -> Option<Packet<'_>> {
    let header: &[u8; 20] = bytes.first_chunk()?;
    let address = |at: usize| {
        let octets: [u8; 4] = header[at..at + 4].try_into().ok()?;
        Some(IpAddr::from(Ipv4Addr::from(octets)))
    };
    let place = half(header, 6)?;
    let rest = bytes.get(usize::from(header[0] & 15) * 4..);
    Some(Packet {
        source: address(12)?,
        destination: address(16)?,
        is_fragment: place & 0x3fff != 0,
        protocol: header[9],
        transport: rest.filter(|_| place & 0x1fff == 0),
    })
}

fn packet_v6(bytes: &[u8]) -> Option<Packet<'_>> {
    /// As many extension headers as the engine takes.
    const MAX_EXTENSIONS: usize = 8;
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT: u8 = 44;
    const DESTINATION_OPTIONS: u8 = 60;
    let header: &[u8; 40] = bytes.first_chunk()?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().ok()?;
        Some(IpAddr::from(Ipv6Addr::from(octets)))
    };
    let mut packet = Packet {
        source: address(8)?,
        destination: address(24)?,
        is_fragment: false,
        protocol: header[6],
        transport: bytes.get(40..),
    };
    for _ in 0..MAX_EXTENSIONS {
        let rest = packet.transport?;
        let len = match packet.protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(*rest.get(1)?) + 1) * 8,
            FRAGMENT => 8,
            _ => break,
        };
        let place = match packet.protocol {
            FRAGMENT => half(rest, 2)?,
            _ => 0,
        };
        packet.protocol = *rest.first()?;
        packet.transport = rest.get(len..).filter(|_| place & !7 == 0);
        // One that is a packet by itself is none (RFC 6946).
        if place & !6 != 0 {
            packet.is_fragment = true;
            break;
        }
    }
    Some(packet)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
pub(super) mod tests;
