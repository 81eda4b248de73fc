//! Frames of all kinds: what is dropped is counted, and nothing fails.
use super::super::{Hop, Input, Outgoing};
use super::support::*;
use crate::config::{Address, ConfigError, Medium, Share};
use crate::frame::{RxChecksum, RxMeta};
use crate::wire::checksum::Sum;
use crate::wire::ethernet::{self, Mac};
use crate::wire::{flow_hash, protocol, tcp};
use crate::{Counters, Ns};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

fn tcp_segment(from: IpAddr, to: IpAddr, source_port: u16, payload: &[u8]) -> Vec<u8> {
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

#[test]
fn a_segment_with_its_addresses() {
    let mut net = Net::new();
    for (frame, from) in [
        (
            v4(
                protocol::TCP,
                &tcp_segment(PEER.into(), OURS.into(), 5000, b"data"),
            ),
            IpAddr::V4(PEER),
        ),
        (
            v6(
                protocol::TCP,
                &tcp_segment(PEER_V6.into(), OURS_V6.into(), 5000, b"data"),
            ),
            PEER_V6.into(),
        ),
    ] {
        // Ethernet pads to 60 bytes.
        let frame = [&frame[..], &[0; 20]].concat();
        let Input::Tcp(packet, segment) = net.receive(&frame) else {
            panic!()
        };
        assert_eq!(packet.source, from);
        assert_eq!((segment.source_port, segment.payload), (5000, &b"data"[..]));
    }
    assert_eq!(net.counters.tcp_in_segs, 2);
}

#[test]
fn rfc9293_3_1_checksums_are_verified_unless_the_device_did() {
    let mut net = Net::new();
    let mut frame = v4(
        protocol::TCP,
        &tcp_segment(PEER.into(), OURS.into(), 5000, b"data"),
    );
    *frame.last_mut().unwrap() ^= 1;
    assert!(matches!(net.receive(&frame), Input::Done));
    assert_eq!(
        (net.counters.tcp_in_csum_errors, net.counters.tcp_in_errs),
        (1, 1)
    );
    let meta = RxMeta {
        checksum: RxChecksum::Good,
        segment_bytes: 2,
    };
    let input = net.ip.receive(net.now, &frame, meta, &mut net.counters);
    assert!(matches!(input, Input::Tcp(..)));
    assert_eq!(net.counters.tcp_in_segs, 3, "two that the device merged");
}

#[test]
fn rfc9293_must_57_no_tcp_to_groups() {
    let mut net = Net::new();
    let to: Ipv4Addr = "10.0.0.255".parse().unwrap();
    let segment = tcp_segment(PEER.into(), to.into(), 5000, b"");
    let packet = packet_v4(&header_v4(to, protocol::TCP, segment.len()), &segment);
    assert!(matches!(
        net.receive(&ethernet(Mac::BROADCAST, ethernet::IPV4, &packet)),
        Input::Done
    ));
    let segment = tcp_segment(PEER.into(), OURS.into(), 5000, b"");
    let packet = packet_v4(&header_v4(OURS, protocol::TCP, segment.len()), &segment);
    assert!(matches!(
        net.receive(&ethernet(Mac::BROADCAST, ethernet::IPV4, &packet)),
        Input::Done
    ));
    assert_eq!(net.counters.ip_in_discards, 2);
}

#[test]
fn rfc768_and_rfc8200_8_1_a_checksum_of_zero() {
    let mut net = Net::new();
    let mut datagram = udp_datagram(PEER.into(), OURS.into(), 1, 2, b"hello");
    datagram[6..8].fill(0);
    assert!(matches!(
        net.receive(&v4(protocol::UDP, &datagram)),
        Input::Udp(..)
    ));
    assert!(matches!(
        net.receive(&v6(protocol::UDP, &datagram)),
        Input::Done
    ));
    assert_eq!(net.counters.udp_in_csum_errors, 1);
}

#[test]
fn frames_for_others_are_counted() {
    let mut net = Net::new();
    let packet = packet_v4(&header_v4(OURS, protocol::UDP, 0), &[]);
    net.receive(&ethernet(Mac([2, 0, 0, 0, 0, 1]), ethernet::IPV4, &packet));
    net.receive(&ethernet(OUR_MAC, 0x8100, &packet));
    net.receive(&ethernet(OUR_MAC, 0x88cc, &packet));
    assert_eq!(net.counters.frames_foreign, 3);
    net.receive(&[0; 13]);
    assert_eq!(net.counters.frames_malformed, 1);
    let packet = packet_v4(
        &header_v4("10.0.0.9".parse().unwrap(), protocol::UDP, 0),
        &[],
    );
    net.receive(&ethernet(OUR_MAC, ethernet::IPV4, &packet));
    assert_eq!(net.counters.ip_in_addr_errors, 1);
}

#[test]
fn rfc1122_3_2_1_3_sources_that_cannot_be() {
    let mut net = Net::new();
    let sources = [
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
        "127.0.0.1",
        "10.0.0.255",
        "10.0.0.1",
        "240.0.0.1",
    ];
    for source in sources {
        let mut header = header_v4(OURS, protocol::UDP, 8);
        header.source = source.parse().unwrap();
        net.receive(&ethernet(
            OUR_MAC,
            ethernet::IPV4,
            &packet_v4(&header, &[0; 8]),
        ));
    }
    assert_eq!(net.counters.ip_in_addr_errors, sources.len() as u64);
}

#[test]
fn rfc1122_3_2_1_2_a_wrong_header_checksum() {
    let mut net = Net::new();
    let datagram = udp_datagram(PEER.into(), OURS.into(), 1, 2, b"hello");
    let mut frame = v4(protocol::UDP, &datagram);
    // The TTL, which nothing else covers.
    frame[22] ^= 1;
    assert!(matches!(net.receive(&frame), Input::Done));
    assert_eq!(net.counters.ip_in_hdr_errors, 1);
    // Whatever the device says of the transport's checksum.
    let meta = RxMeta {
        checksum: RxChecksum::Good,
        ..RxMeta::default()
    };
    net.ip.receive(net.now, &frame, meta, &mut net.counters);
    assert_eq!(net.counters.ip_in_hdr_errors, 2);
}

#[test]
fn options_of_ipv4_are_skipped() {
    let mut net = Net::new();
    let datagram = udp_datagram(PEER.into(), OURS.into(), 1, 2, b"hello");
    let mut packet = packet_v4(&header_v4(OURS, protocol::UDP, 8 + datagram.len()), &[]);
    packet.extend([148, 4, 0, 0, 1, 1, 1, 0]);
    (packet[0], packet[10], packet[11]) = (0x47, 0, 0);
    let field = Sum::of(&packet).field().to_be_bytes();
    packet[10..12].copy_from_slice(&field);
    packet.extend(datagram);
    let frame = ethernet(OUR_MAC, ethernet::IPV4, &packet);
    let Input::Udp(_, datagram) = net.receive(&frame) else {
        panic!()
    };
    assert_eq!(datagram.payload(), b"hello");
}

#[test]
fn connections_of_other_engines() {
    let mut config = config();
    let (mut taken, mut counters) = ([0; 2], [Counters::default(); 2]);
    for (index, (taken, counters)) in taken.iter_mut().zip(&mut counters).enumerate() {
        config.share = Share {
            index: index as u16,
            of: 2,
        };
        let mut net = Net::with(&config);
        for port in 1..=100 {
            let frame = v4(
                protocol::TCP,
                &tcp_segment(PEER.into(), OURS.into(), port, b""),
            );
            let hash = flow_hash(
                SocketAddr::new(PEER.into(), port),
                SocketAddr::new(OURS.into(), 80),
            );
            let ours = matches!(net.receive(&frame), Input::Tcp(..));
            assert_eq!(ours, hash as usize % 2 == index);
            *taken += u32::from(ours);
        }
        *counters = net.counters;
    }
    assert_eq!(taken[0] + taken[1], 100);
    assert_eq!(
        counters[0].connections_of_other_engines,
        u64::from(taken[1])
    );
}

#[test]
fn a_medium_without_addresses() {
    let mut config = config();
    config.medium = Medium::Ip;
    let mut net = Net::with(&config);
    let frame = v4(protocol::ICMP, &icmp_message(false, 8, 0, 0, b"ping"));
    net.receive(&frame[14..]);
    let sent = net.sent();
    assert_eq!(sent[0][..2], [0x45, 0]);
    let (frame, bytes) = net
        .send("192.0.2.1".parse().unwrap(), &mut Hop::default())
        .unwrap();
    assert_eq!((frame.len, bytes[0]), (20 + 8 + 5, 0x45));
    assert_eq!(net.ip.header_bytes(true), 40);
    net.receive(&[]);
    net.receive(&[0x20; 40]);
    assert_eq!(net.counters.frames_malformed, 2);
}

#[test]
fn virtio_5_1_6_2_offloads_are_told() {
    let mut net = Net::with_peer();
    let mut slot = vec![0; 65_549];
    let mut packet = Outgoing::new(OURS.into(), PEER.into(), protocol::TCP, 32 + 10_000);
    packet.checksum_offset = Some(tcp::CHECKSUM_OFFSET);
    packet.segment_bytes = 1448;
    packet.transport_header_bytes = 32;
    let frame = net
        .ip
        .send(
            net.now,
            &mut slot,
            &packet,
            &mut Hop::default(),
            &mut net.counters,
        )
        .unwrap();
    let checksum = frame.checksum.unwrap();
    assert_eq!((checksum.start, checksum.offset), (34, 16));
    let segmentation = frame.segmentation.unwrap();
    assert_eq!(
        (
            segmentation.header_bytes,
            segmentation.segment_bytes,
            segmentation.ipv6
        ),
        (66, 1448, false)
    );
    assert_eq!(frame.len, 14 + 20 + 32 + 10_000);
    // What does not fit is dropped.
    let small = &mut slot[..1514];
    assert!(
        net.ip
            .send(
                net.now,
                small,
                &packet,
                &mut Hop::default(),
                &mut net.counters
            )
            .is_none()
    );
    packet.len = 65_516;
    assert!(
        net.ip
            .send(
                net.now,
                &mut slot,
                &packet,
                &mut Hop::default(),
                &mut net.counters
            )
            .is_none()
    );
    assert_eq!(net.counters.ip_out_discards, 2);
}

#[test]
fn configurations_that_cannot_be() {
    let refused = |change: fn(&mut crate::Config)| {
        let mut config = config();
        change(&mut config);
        super::super::Interface::new(&config).err()
    };
    let address = |text: &str, prefix_bits| Address {
        address: text.parse().unwrap(),
        prefix_bits,
    };
    assert_eq!(
        refused(|c| c.mtu = 1279),
        Some(ConfigError::MtuTooSmall {
            mtu: 1279,
            least: 1280,
            family: "IPv6"
        })
    );
    assert_eq!(
        refused(|c| c.addresses.clear()),
        Some(ConfigError::NoAddress)
    );
    assert_eq!(
        refused(|c| c.share = Share { index: 2, of: 2 }),
        Some(ConfigError::Share { index: 2, of: 2 })
    );
    assert!(matches!(
        refused(|c| c.addresses[0].prefix_bits = 33),
        Some(ConfigError::Prefix { most: 32, .. })
    ));
    assert!(matches!(
        refused(|c| c.addresses[1].prefix_bits = 129),
        Some(ConfigError::Prefix { most: 128, .. })
    ));
    for text in [
        "0.0.0.0",
        "255.255.255.255",
        "127.0.0.1",
        "224.0.0.1",
        "10.0.0.255",
        "ff02::1",
        "::",
        "::1",
    ] {
        let mut config = config();
        config.addresses = vec![address(text, 24)];
        let refused = super::super::Interface::new(&config).err();
        assert_eq!(
            refused,
            Some(ConfigError::NotUnicast(text.parse().unwrap())),
            "{text}"
        );
    }
    let mut point_to_point = config();
    point_to_point.addresses = vec![address("10.0.0.1", 31), address("10.0.1.255", 32)];
    assert!(
        super::super::Interface::new(&point_to_point).is_ok(),
        "RFC 3021"
    );
}

/// A frame that is right, of any kind.
fn valid() -> impl Strategy<Value = Vec<u8>> {
    let tcp = |payload: &[u8]| tcp_segment(PEER.into(), OURS.into(), 5000, payload);
    let bytes = || prop::collection::vec(any::<u8>(), 0..100);
    prop_oneof![
        Just(arp_request(PEER_MAC, PEER, OURS)),
        Just(arp_reply(PEER_MAC, PEER)),
        Just(ndisc_solicitation()),
        bytes().prop_map(move |b| v4(protocol::TCP, &tcp(&b))),
        bytes().prop_map(|b| v6(
            protocol::TCP,
            &tcp_segment(PEER_V6.into(), OURS_V6.into(), 1, &b)
        )),
        bytes().prop_map(|b| v4(
            protocol::UDP,
            &udp_datagram(PEER.into(), OURS.into(), 1, 2, &b)
        )),
        (any::<u8>(), any::<u8>(), any::<u32>(), bytes())
            .prop_map(|(k, c, w, b)| v4(protocol::ICMP, &icmp_message(false, k, c, w, &b))),
        (any::<u8>(), any::<u8>(), any::<u32>(), bytes())
            .prop_map(|(k, c, w, b)| v6(protocol::ICMPV6, &icmp_message(true, k, c, w, &b))),
        (
            prop::sample::select(vec![0u8, 43, 44, 60, 6, 17, 58, 59, 99]),
            bytes()
        )
            .prop_map(|(p, b)| v6(p, &b)),
        (
            any::<u16>(),
            0u16..20,
            any::<bool>(),
            prop::sample::select(vec![1u8, 6, 17]),
            bytes()
        )
            .prop_map(|(id, offset, more, protocol, b)| {
                let mut header = header_v4(OURS, protocol, b.len());
                header.identification = id % 4;
                (header.fragment_offset, header.more_fragments) = (offset * 8, more);
                ethernet(OUR_MAC, ethernet::IPV4, &packet_v4(&header, &b))
            }),
    ]
}

/// As it is, with bytes changed (the IPv4 header's checksum put right again half of the time), or cut.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    (
        valid(),
        changes,
        any::<bool>(),
        any::<Option<prop::sample::Index>>(),
    )
        .prop_map(|(mut frame, changes, fix, cut)| {
            for (at, byte) in changes {
                let at = at.index(frame.len());
                frame[at] = byte;
            }
            if fix && frame.len() >= 34 {
                frame[24..26].fill(0);
                let field = Sum::of(&frame[14..34]).field().to_be_bytes();
                frame[24..26].copy_from_slice(&field);
            }
            if let Some(cut) = cut {
                frame.truncate(cut.index(frame.len() + 1));
            }
            frame
        })
}

proptest! {
    #[test]
    fn any_frames_are_handled_or_counted(
        frames in prop::collection::vec((frame(), 0u64..5_000, any::<bool>()), 1..60),
    ) {
        let mut net = Net::new();
        for (frame, ms, good) in frames {
            net.pass(ms);
            let checksum = if good { RxChecksum::Good } else { RxChecksum::Unknown };
            let meta = RxMeta { checksum, segment_bytes: u16::from(good) };
            let before = net.counters;
            let input = net.ip.receive(net.now, &frame, meta, &mut net.counters);
            match input {
                Input::Reassembled(packet) => {
                    let again = net.ip.receive_reassembled(net.now, &packet, &mut net.counters);
                    prop_assert!(!matches!(again, Input::Reassembled(_)));
                }
                Input::Udp(packet, _) => net.ip.refuse_port(net.now, &packet, &mut net.counters),
                Input::Error(error) => {
                    net.ip.lower_mtu(net.now, &error);
                }
                Input::Tcp(..) | Input::Done => {}
            }
            prop_assert_ne!(before, net.counters, "nothing happens without a count");
            for frame in net.sent() {
                prop_assert!(frame.len() <= 1514);
            }
        }
        // Whatever was begun ends.
        for _ in 0..10 {
            net.pass(100_000);
            net.sent();
            while net.ip.next_unreachable().is_some() {}
        }
        prop_assert_eq!(net.ip.poll_at(), None::<Ns>);
    }

    #[test]
    fn any_bytes_are_no_frame(bytes in prop::collection::vec(any::<u8>(), 0..200), is_ip: bool) {
        let mut config = config();
        if is_ip {
            config.medium = Medium::Ip;
        }
        let mut net = Net::with(&config);
        net.receive(&bytes);
        prop_assert_ne!(net.counters, Counters::default());
    }
}
