//! Frames of all kinds: what is dropped is counted.
use super::super::{Hop, Input, Outgoing};
use super::support::*;
use crate::Counters;
use crate::config::{Medium, Share};
use crate::frame::{RxChecksum, RxMeta};
use crate::wire::checksum::Sum;
use crate::wire::ethernet::{self, Mac};
use crate::wire::{flow_hash, protocol, tcp};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

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
        ..RxMeta::default()
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
    // Loopback is not for what comes from the device.
    for (count, destination) in (1..).zip(["10.0.0.9", "127.0.0.1", "127.9.9.9"]) {
        let header = header_v4(destination.parse().unwrap(), protocol::UDP, 0);
        let packet = packet_v4(&header, &[]);
        net.receive(&ethernet(OUR_MAC, ethernet::IPV4, &packet));
        assert_eq!(net.counters.ip_in_addr_errors, count);
    }
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
            ..Share::ALONE
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
fn datagrams_are_all_the_first_engines_where_that_is_asked() {
    let mut config = config();
    for index in 0..2 {
        config.share = Share {
            index,
            of: 2,
            datagrams_at_first: true,
        };
        let mut net = Net::with(&config);
        let mut segments = 0;
        for port in 1..=20 {
            let datagram = udp_datagram(PEER.into(), OURS.into(), port, 53, b"query");
            let ours = matches!(net.receive(&v4(protocol::UDP, &datagram)), Input::Udp(..));
            assert_eq!(ours, index == 0);
            let segment = tcp_segment(PEER.into(), OURS.into(), port, b"");
            let ours = matches!(net.receive(&v4(protocol::TCP, &segment)), Input::Tcp(..));
            segments += u32::from(ours);
        }
        assert!((1..20).contains(&segments));
    }
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
