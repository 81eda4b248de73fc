//! An interface with addresses of both families, and frames of a neighbour.
use super::super::{Hop, Input, Interface, Outgoing};
use crate::config::{Address, Medium, Route};
use crate::frame::{RxMeta, TxFrame};
use crate::wire::checksum::Sum;
use crate::wire::ethernet::{self, Mac};
use crate::wire::{arp, icmp, ipv4, ipv6, protocol, tcp, udp};
use crate::{Config, Counters, Ns};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const OUR_MAC: Mac = Mac([2, 0, 0, 0, 0, 0xaa]);
pub(super) const PEER_MAC: Mac = Mac([2, 0, 0, 0, 0, 0xbb]);
pub(super) const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(super) const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(super) const OURS_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
pub(super) const PEER_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);

pub(super) fn config() -> Config {
    let mut config = Config::new(Medium::Ethernet { mac: OUR_MAC.0 }, [7; 32]);
    let address = |address: &str, prefix_bits| Address {
        address: address.parse().unwrap(),
        prefix_bits,
    };
    config.addresses = vec![address("10.0.0.1", 24), address("fd00::1", 64)];
    config.routes = vec![Route {
        destination: address("0.0.0.0", 0),
        gateway: "10.0.0.254".parse().unwrap(),
    }];
    config
}

pub(super) struct Net {
    pub(super) ip: Interface,
    pub(super) counters: Counters,
    pub(super) now: Ns,
}

impl Net {
    pub(super) fn new() -> Net {
        Net::with(&config())
    }

    pub(super) fn with(config: &Config) -> Net {
        Net {
            ip: Interface::new(config).unwrap(),
            counters: Counters::default(),
            now: Ns(1),
        }
    }

    /// A neighbour whose address is known.
    pub(super) fn with_peer() -> Net {
        let mut net = Net::new();
        net.receive(&arp_request(PEER_MAC, PEER, OURS));
        net.receive(&ndisc_solicitation());
        net.sent();
        net.counters = Counters::default();
        net
    }

    pub(super) fn receive<'a>(&mut self, frame: &'a [u8]) -> Input<'a> {
        self.ip
            .receive(self.now, frame, RxMeta::default(), &mut self.counters)
    }

    /// The interface's own frames.
    pub(super) fn sent(&mut self) -> Vec<Vec<u8>> {
        let mut slot = [0; 2048];
        let mut frames = Vec::new();
        while let Some(frame) = self.ip.transmit(&mut slot, &mut self.counters) {
            frames.push(slot[..frame.len].to_vec());
        }
        frames
    }

    /// Those of them that are ICMP errors.
    pub(super) fn sent_errors(&mut self) -> Vec<Vec<u8>> {
        let mut frames = self.sent();
        frames.retain(|f| match (f[12], f[13]) {
            (8, 0) => f[23] == protocol::ICMP && f[34] != 0,
            (0x86, 0xdd) => f[20] == protocol::ICMPV6 && f[54] < 128,
            _ => false,
        });
        frames
    }

    pub(super) fn pass(&mut self, ms: u64) {
        self.now = self.now + Ns::from_ms(ms);
        self.ip.advance(self.now, &mut self.counters);
    }

    /// A UDP datagram of ours.
    pub(super) fn send(&mut self, to: IpAddr, hop: &mut Hop) -> Option<(TxFrame, Vec<u8>)> {
        let mut slot = vec![0; 2048];
        let from = self.ip.source_for(to).unwrap();
        let datagram = udp_datagram(from, to, 1000, 2000, b"hello");
        let start = self.ip.header_bytes(to.is_ipv6());
        slot[start..start + datagram.len()].copy_from_slice(&datagram);
        let packet = Outgoing::new(from, to, protocol::UDP, datagram.len());
        let frame = self
            .ip
            .send(self.now, &mut slot, &packet, hop, &mut self.counters)?;
        slot.truncate(frame.len);
        Some((frame, slot))
    }
}

pub(super) fn ethernet(destination: Mac, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [0; ethernet::HEADER_BYTES];
    ethernet::Header {
        destination,
        source: PEER_MAC,
        ethertype,
    }
    .emit(&mut frame);
    [&frame[..], payload].concat()
}

pub(super) fn header_v4(destination: Ipv4Addr, protocol: u8, payload_bytes: usize) -> ipv4::Header {
    ipv4::Header {
        source: PEER,
        destination,
        protocol,
        ttl: 64,
        traffic_class: 0,
        identification: 1,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        payload_bytes: payload_bytes as u16,
    }
}

pub(super) fn packet_v4(header: &ipv4::Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [0; ipv4::HEADER_BYTES];
    header.emit(&mut bytes);
    [&bytes[..], payload].concat()
}

/// From the peer to us.
pub(super) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let packet = packet_v4(&header_v4(OURS, protocol, payload.len()), payload);
    ethernet(OUR_MAC, ethernet::IPV4, &packet)
}

pub(super) fn packet_v6(
    destination: Ipv6Addr,
    protocol: u8,
    hop_limit: u8,
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = [0; ipv6::HEADER_BYTES];
    ipv6::Header {
        source: PEER_V6,
        destination,
        protocol,
        hop_limit,
        traffic_class: 0,
        payload_bytes: payload.len() as u16,
    }
    .emit(&mut bytes);
    [&bytes[..], payload].concat()
}

pub(super) fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(
        OUR_MAC,
        ethernet::IPV6,
        &packet_v6(OURS_V6, protocol, 64, payload),
    )
}

pub(super) fn udp_datagram(
    from: IpAddr,
    to: IpAddr,
    source_port: u16,
    destination_port: u16,
    payload: &[u8],
) -> Vec<u8> {
    let mut header = [0; udp::HEADER_BYTES];
    let len = (payload.len() + 8) as u16;
    udp::Header {
        source_port,
        destination_port,
        len,
    }
    .emit(&mut header);
    let mut bytes = [&header[..], payload].concat();
    let sum = Sum::of_pseudo_header(from, to, protocol::UDP, len.into()).and(Sum::of(&bytes));
    bytes[6..8].copy_from_slice(&udp::nonzero(sum.field()).to_be_bytes());
    bytes
}

/// With its checksum; for ICMPv6 from the peer to us.
pub(super) fn icmp_message(ipv6: bool, kind: u8, code: u8, word: u32, body: &[u8]) -> Vec<u8> {
    let mut header = [0; icmp::HEADER_BYTES];
    icmp::emit(&mut header, kind, code, word);
    let mut bytes = [&header[..], body].concat();
    let pseudo = match ipv6 {
        false => Sum::default(),
        true => Sum::of_pseudo_header(
            PEER_V6.into(),
            OURS_V6.into(),
            protocol::ICMPV6,
            bytes.len() as u32,
        ),
    };
    let field = pseudo.and(Sum::of(&bytes)).field();
    icmp::set_checksum(&mut bytes, field);
    bytes
}

pub(super) fn arp(packet: &arp::Packet, destination: Mac) -> Vec<u8> {
    let mut bytes = [0; arp::BYTES];
    packet.emit(&mut bytes);
    ethernet(destination, ethernet::ARP, &bytes)
}

pub(super) fn arp_request(sender_mac: Mac, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let request = arp::Packet {
        is_request: true,
        sender_mac,
        sender,
        target_mac: Mac::default(),
        target,
    };
    arp(&request, Mac::BROADCAST)
}

pub(super) fn arp_reply(sender_mac: Mac, sender: Ipv4Addr) -> Vec<u8> {
    let reply = arp::Packet {
        is_request: false,
        sender_mac,
        sender,
        target_mac: OUR_MAC,
        target: OURS,
    };
    arp(&reply, OUR_MAC)
}

/// From the peer about itself or us, to us.
pub(super) fn ndisc(message: &crate::wire::ndisc::Message, hop_limit: u8) -> Vec<u8> {
    let mut bytes = [0; crate::wire::ndisc::BYTES];
    let len = message.emit(&mut bytes);
    let bytes = &mut bytes[..len];
    let sum = Sum::of_pseudo_header(PEER_V6.into(), OURS_V6.into(), protocol::ICMPV6, len as u32)
        .and(Sum::of(bytes));
    icmp::set_checksum(bytes, sum.field());
    ethernet(
        OUR_MAC,
        ethernet::IPV6,
        &packet_v6(OURS_V6, protocol::ICMPV6, hop_limit, bytes),
    )
}

pub(super) fn ndisc_solicitation() -> Vec<u8> {
    let message = crate::wire::ndisc::Message::Solicitation {
        target: OURS_V6,
        mac: Some(PEER_MAC),
    };
    ndisc(&message, 255)
}

/// An ACK to port 80.
pub(super) fn tcp_segment(from: IpAddr, to: IpAddr, source_port: u16, payload: &[u8]) -> Vec<u8> {
    let header = tcp::Header {
        source_port,
        destination_port: 80,
        flags: tcp::Flags::ACK,
        ..Default::default()
    };
    let mut bytes = vec![0; 20];
    header.emit(&mut bytes);
    bytes.extend(payload);
    let sum =
        Sum::of_pseudo_header(from, to, protocol::TCP, bytes.len() as u32).and(Sum::of(&bytes));
    tcp::set_checksum(&mut bytes, sum.field());
    bytes
}
