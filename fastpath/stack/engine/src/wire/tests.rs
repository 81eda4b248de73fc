//! What is written here is read by smoltcp, and what smoltcp takes is taken here, with the same meaning.
mod rules;

use super::checksum::Sum;
use super::ethernet::Mac;
use super::*;
use proptest::prelude::*;
use smoltcp::wire as other;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(u32, u32)>()
            .prop_map(|(a, b)| { (Ipv4Addr::from_bits(a).into(), Ipv4Addr::from_bits(b).into()) }),
        any::<(u128, u128)>()
            .prop_map(|(a, b)| { (Ipv6Addr::from_bits(a).into(), Ipv6Addr::from_bits(b).into()) }),
    ]
}

fn theirs(address: IpAddr) -> other::IpAddress {
    address.into()
}

fn sum(addresses: (IpAddr, IpAddr), protocol: u8, bytes: &[u8]) -> Sum {
    let len = bytes.len() as u32;
    Sum::of_pseudo_header(addresses.0, addresses.1, protocol, len).and(Sum::of(bytes))
}

proptest! {
    #[test]
    fn a_tcp_segment(
        addresses in addresses(),
        header in tcp::tests::header(),
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = vec![0; header.len()];
        header.emit(&mut bytes);
        bytes.extend(payload);
        let field = sum(addresses, protocol::TCP, &bytes).field();
        tcp::set_checksum(&mut bytes, field);
        let packet = other::TcpPacket::new_checked(&bytes[..]).unwrap();
        let (source, destination) = (theirs(addresses.0), theirs(addresses.1));
        prop_assert!(packet.verify_checksum(&source, &destination));
        prop_assert_eq!(packet.seq_number().0 as u32, header.seq);
        prop_assert_eq!(packet.ack_number().0 as u32, header.ack);
        prop_assert_eq!(packet.window_len(), header.window);
        let (options, malformed) = tcp_options::TcpOptions::parse(packet.options());
        prop_assert!(!malformed);
        let mut at = packet.options();
        let mut seen = tcp_options::TcpOptions::default();
        while !at.is_empty() {
            let (rest, option) = other::TcpOption::parse(at).unwrap();
            match option {
                other::TcpOption::MaxSegmentSize(mss) => seen.mss = Some(mss),
                other::TcpOption::WindowScale(scale) => seen.window_scale = Some(scale),
                other::TcpOption::SackPermitted => seen.sack_permitted = true,
                other::TcpOption::SackRange(ranges) => {
                    for (left, right) in ranges.into_iter().flatten() {
                        seen.sack.push(left, right);
                    }
                }
                other::TcpOption::TimeStamp { tsval, tsecr } => {
                    seen.timestamps = Some(tcp_options::Timestamps { value: tsval, echo: tsecr });
                }
                _ => {}
            }
            at = rest;
        }
        // smoltcp reads three blocks.
        let mut expected = options;
        expected.sack.truncate(3);
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn any_segment_is_cut_at_the_same_place(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let ours = tcp::Segment::parse(&bytes);
        match other::TcpPacket::new_checked(&bytes[..]) {
            Ok(packet) => {
                let ours = ours.unwrap();
                prop_assert_eq!(ours.payload, packet.payload());
                prop_assert_eq!(ours.source_port, packet.src_port());
            }
            Err(_) => prop_assert!(ours.is_err()),
        }
    }

    #[test]
    fn an_ipv4_header(
        (a, b, id) in any::<(u32, u32, u16)>(),
        (protocol, ttl, traffic_class) in any::<(u8, u8, u8)>(),
        (dont_fragment, more_fragments, offset) in (any::<bool>(), any::<bool>(), 0u16..8192),
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let header = ipv4::Header {
            source: Ipv4Addr::from_bits(a),
            destination: Ipv4Addr::from_bits(b),
            protocol,
            ttl,
            traffic_class,
            identification: id,
            dont_fragment,
            more_fragments,
            fragment_offset: offset * 8,
            payload_bytes: payload.len() as u16,
        };
        let mut bytes = [0; ipv4::HEADER_BYTES];
        header.emit(&mut bytes);
        let bytes = [&bytes[..], &payload, &[0xaa; 7]].concat();
        let packet = other::Ipv4Packet::new_checked(&bytes[..]).unwrap();
        prop_assert!(packet.verify_checksum());
        prop_assert_eq!(packet.frag_offset(), offset * 8);
        prop_assert_eq!(packet.payload(), payload);
        let ours = ipv4::Packet::parse(&bytes).unwrap();
        prop_assert_eq!(ours.payload, packet.payload());
        prop_assert_eq!(ours.source, packet.src_addr());
        prop_assert_eq!((ours.protocol, ours.ttl, ours.traffic_class), (protocol, ttl, traffic_class));
        prop_assert_eq!(ours.is_fragment(), more_fragments || offset > 0);
        prop_assert_eq!(ours.dont_fragment, packet.dont_frag());
    }

    #[test]
    fn any_ipv4_packet_is_taken_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..80), fix: bool) {
        if fix && bytes.len() >= 20 {
            bytes[0] = 0x40 | bytes[0] & 15;
            (bytes[2], bytes[10], bytes[11]) = (0, 0, 0);
            let header = (usize::from(bytes[0] & 15) * 4).min(bytes.len());
            let field = Sum::of(&bytes[..header]).field().to_be_bytes();
            bytes[10..12].copy_from_slice(&field);
        }
        let ours = ipv4::Packet::parse(&bytes);
        match other::Ipv4Packet::new_checked(&bytes[..]) {
            Ok(packet) if packet.version() == 4 && packet.header_len() >= 20 && packet.verify_checksum() => {
                prop_assert_eq!(ours.unwrap().payload, packet.payload());
            }
            _ => prop_assert!(ours.is_err()),
        }
    }

    #[test]
    fn an_ipv6_header(
        (a, b) in any::<(u128, u128)>(),
        (hop_limit, traffic_class) in any::<(u8, u8)>(),
        payload in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let header = ipv6::Header {
            source: Ipv6Addr::from_bits(a),
            destination: Ipv6Addr::from_bits(b),
            protocol: protocol::UDP,
            hop_limit,
            traffic_class,
            payload_bytes: payload.len() as u16,
        };
        let mut bytes = [0; ipv6::HEADER_BYTES];
        header.emit(&mut bytes);
        let bytes = [&bytes[..], &payload, &[0xaa; 7]].concat();
        let packet = other::Ipv6Packet::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(packet.dst_addr(), header.destination);
        prop_assert_eq!(packet.traffic_class(), traffic_class);
        prop_assert_eq!(packet.payload(), payload);
        let ours = ipv6::Packet::parse(&bytes).unwrap();
        prop_assert_eq!(ours.payload, packet.payload());
        prop_assert_eq!((ours.source, ours.hop_limit, ours.traffic_class), (header.source, hop_limit, traffic_class));
    }

    #[test]
    fn any_extension_headers_are_walked(
        first in prop::sample::select(vec![0u8, 43, 44, 60, 59, 6, 17]),
        mut bytes in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 3, 4, 5, 43, 44, 60, 0xc2, 0x80, 0x40]), 40..200),
    ) {
        let len = bytes.len() - 40;
        bytes[0] = 0x60;
        bytes[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        bytes[6] = first;
        match ipv6::Packet::parse(&bytes) {
            Ok(packet) => {
                let at = packet.protocol_at as usize;
                prop_assert!(at < bytes.len() && bytes[at] == packet.protocol);
                prop_assert!(packet.bytes.ends_with(packet.payload));
            }
            Err(Malformed::Parameter { pointer, .. }) => prop_assert!((pointer as usize) < bytes.len()),
            Err(_) => {}
        }
    }

    #[test]
    fn a_udp_datagram(addresses in addresses(), ports: (u16, u16), payload: Vec<u8>) {
        let mut header = [0; udp::HEADER_BYTES];
        udp::Header {
            source_port: ports.0,
            destination_port: ports.1.max(1),
            len: (8 + payload.len()) as u16,
        }
        .emit(&mut header);
        let mut bytes = [&header[..], &payload].concat();
        let field = udp::nonzero(sum(addresses, protocol::UDP, &bytes).field());
        bytes[6..8].copy_from_slice(&field.to_be_bytes());
        let packet = other::UdpPacket::new_checked(&bytes[..]).unwrap();
        prop_assert!(packet.verify_checksum(&theirs(addresses.0), &theirs(addresses.1)));
        bytes.extend([9; 5]);
        let ours = udp::Datagram::parse(&bytes).unwrap();
        prop_assert_eq!(ours.payload(), payload);
        prop_assert!(ours.has_checksum);
    }

    #[test]
    fn an_arp_packet(is_request: bool, macs: ([u8; 6], [u8; 6]), (sender, target) in any::<(u32, u32)>()) {
        let ours = arp::Packet {
            is_request,
            sender_mac: Mac(macs.0),
            sender: Ipv4Addr::from_bits(sender),
            target_mac: Mac(macs.1),
            target: Ipv4Addr::from_bits(target),
        };
        let mut bytes = [0; arp::BYTES];
        ours.emit(&mut bytes);
        prop_assert_eq!(arp::Packet::parse(&bytes), Some(ours));
        let packet = other::ArpPacket::new_checked(&bytes[..]).unwrap();
        let other::ArpRepr::EthernetIpv4 { operation, source_hardware_addr, source_protocol_addr, target_hardware_addr, target_protocol_addr } =
            other::ArpRepr::parse(&packet).unwrap() else { panic!() };
        prop_assert_eq!(operation == other::ArpOperation::Request, is_request);
        prop_assert_eq!((source_hardware_addr.0, target_hardware_addr.0), macs);
        prop_assert_eq!((source_protocol_addr, target_protocol_addr), (ours.sender, ours.target));
    }

    #[test]
    fn any_bytes_of_the_small_protocols(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = arp::Packet::parse(&bytes);
        let _ = ndisc::Message::parse(&bytes);
        let _ = icmp::Message::parse(&bytes).map(|m| m.next_hop_mtu());
        let _ = ethernet::Header::parse(&bytes);
        if let Ok(datagram) = udp::Datagram::parse(&bytes) {
            prop_assert!(datagram.bytes.len() <= bytes.len());
            prop_assert_eq!(datagram.payload().len() + 8, datagram.bytes.len());
        }
    }
}

#[test]
fn rfc4861_4_3_and_4_4_messages() {
    let target: Ipv6Addr = "fd00::1:2".parse().unwrap();
    let mac = Some(Mac([2, 0, 0, 0, 0, 7]));
    let (source, destination) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    for message in [
        ndisc::Message::Solicitation { target, mac },
        ndisc::Message::Solicitation { target, mac: None },
        ndisc::Message::Advertisement {
            target,
            mac,
            router: false,
            solicited: true,
            overrides: true,
        },
    ] {
        let mut bytes = [0; ndisc::BYTES];
        let len = message.emit(&mut bytes);
        let bytes = &mut bytes[..len];
        assert_eq!(ndisc::Message::parse(bytes), Some(message));
        let field = sum(
            (IpAddr::V6(source), IpAddr::V6(destination)),
            protocol::ICMPV6,
            bytes,
        )
        .field();
        icmp::set_checksum(bytes, field);
        let packet = other::Icmpv6Packet::new_checked(&bytes[..]).unwrap();
        assert!(packet.verify_checksum(&source, &destination));
        match (message, other::NdiscRepr::parse(&packet).unwrap()) {
            (
                ndisc::Message::Solicitation { target, mac },
                other::NdiscRepr::NeighborSolicit {
                    target_addr,
                    lladdr,
                },
            ) => {
                assert_eq!(target_addr, target);
                assert_eq!(
                    lladdr.map(|a| a.as_bytes().to_vec()),
                    mac.map(|m| m.0.to_vec())
                );
            }
            (
                ndisc::Message::Advertisement { .. },
                other::NdiscRepr::NeighborAdvert {
                    flags,
                    target_addr,
                    lladdr,
                },
            ) => {
                assert_eq!(target_addr, target);
                assert_eq!(flags.bits(), 0b0110_0000);
                assert_eq!(
                    lladdr.map(|a| a.as_bytes().to_vec()),
                    mac.map(|m| m.0.to_vec())
                );
            }
            other => panic!("{other:?}"),
        }
    }
}
