//! ICMP and ICMPv6: echo, errors out, errors in.
use super::super::{IcmpError, Input};
use super::support::*;
use crate::SocketError;
use crate::wire::ethernet::{self, Mac};
use crate::wire::protocol;
use smoltcp::wire::{
    EthernetFrame, Icmpv4Message, Icmpv4Packet, Icmpv6Message, Icmpv6Packet, Ipv4Packet, Ipv6Packet,
};
use std::net::{IpAddr, Ipv4Addr};

/// Type, code, and the body of an ICMP message that was sent.
fn message_v4(frame: &[u8]) -> (Icmpv4Message, u8, Vec<u8>) {
    let frame = EthernetFrame::new_checked(frame).unwrap();
    let packet = Ipv4Packet::new_checked(frame.payload()).unwrap();
    assert!(packet.verify_checksum());
    assert_eq!((packet.src_addr(), packet.dst_addr()), (OURS, PEER));
    let message = Icmpv4Packet::new_checked(packet.payload()).unwrap();
    assert!(message.verify_checksum());
    (
        message.msg_type(),
        message.msg_code(),
        packet.payload()[8..].to_vec(),
    )
}

fn message_v6(frame: &[u8]) -> (Icmpv6Message, u8, Vec<u8>) {
    let frame = EthernetFrame::new_checked(frame).unwrap();
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    let message = Icmpv6Packet::new_checked(packet.payload()).unwrap();
    assert!(message.verify_checksum(&OURS_V6, &PEER_V6));
    (
        message.msg_type(),
        message.msg_code(),
        packet.payload()[8..].to_vec(),
    )
}

#[test]
fn rfc1122_3_2_2_6_echo() {
    let mut net = Net::with_peer();
    for len in [0, 1, 56, 1472] {
        let body: Vec<u8> = (0..len).map(|i| i as u8).collect();
        net.receive(&v4(
            protocol::ICMP,
            &icmp_message(false, 8, 0, 0x1234_0001, &body),
        ));
        net.receive(&v6(
            protocol::ICMPV6,
            &icmp_message(true, 128, 0, 0x1234_0001, &body[..len.min(1452)]),
        ));
        let sent = net.sent();
        assert_eq!(
            message_v4(&sent[0]),
            (Icmpv4Message::EchoReply, 0, body.clone())
        );
        assert_eq!(sent[0][38..42], [0x12, 0x34, 0, 1]);
        assert_eq!(message_v6(&sent[1]).0, Icmpv6Message::EchoReply);
    }
    assert_eq!(net.counters.icmp_out_echo_reps, 8);
}

#[test]
fn rfc1122_3_2_2_6_no_echo_for_groups() {
    let mut net = Net::with_peer();
    let echo = icmp_message(false, 8, 0, 0, b"smurf");
    for destination in [
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(10, 0, 0, 255),
        Ipv4Addr::new(224, 0, 0, 1),
    ] {
        let packet = packet_v4(&header_v4(destination, protocol::ICMP, echo.len()), &echo);
        net.receive(&ethernet(Mac::BROADCAST, ethernet::IPV4, &packet));
    }
    // Our address, but in everybody's frame.
    let packet = packet_v4(&header_v4(OURS, protocol::ICMP, echo.len()), &echo);
    net.receive(&ethernet(Mac::BROADCAST, ethernet::IPV4, &packet));
    assert!(net.sent().is_empty());
    assert_eq!(net.counters.icmp_ignored, 4);
}

#[test]
fn an_echo_with_a_wrong_checksum_is_counted() {
    let mut net = Net::with_peer();
    let mut echo = icmp_message(false, 8, 0, 0, b"ping");
    echo[9] ^= 1;
    net.receive(&v4(protocol::ICMP, &echo));
    let mut echo = icmp_message(true, 128, 0, 0, b"ping");
    echo[9] ^= 1;
    net.receive(&v6(protocol::ICMPV6, &echo));
    assert!(net.sent().is_empty());
    assert_eq!(
        (
            net.counters.icmp_in_csum_errors,
            net.counters.icmp_in_errors
        ),
        (2, 2)
    );
}

#[test]
fn a_flood_of_echo_requests_is_bounded() {
    let mut net = Net::with_peer();
    let echo = v4(protocol::ICMP, &icmp_message(false, 8, 0, 0, &[1; 1400]));
    for _ in 0..10_000 {
        net.receive(&echo);
    }
    assert!(net.ip.memory_bytes() < 3 << 20);
    assert!(net.counters.ip_out_discards > 9_000);
}

#[test]
fn rfc1122_4_1_3_1_a_port_without_a_socket() {
    let mut net = Net::with_peer();
    let datagram = udp_datagram(PEER.into(), OURS.into(), 5000, 53, b"query");
    let frame = v4(protocol::UDP, &datagram);
    let Input::Udp(packet, _) = net.receive(&frame) else {
        panic!()
    };
    net.ip.refuse_port(net.now, &packet, &mut net.counters);
    let sent = net.sent();
    let (kind, code, body) = message_v4(&sent[0]);
    assert_eq!((kind, code), (Icmpv4Message::DstUnreachable, 3));
    assert_eq!(body, frame[14..], "the packet");
    let datagram = udp_datagram(PEER_V6.into(), OURS_V6.into(), 5000, 53, &[1; 1400]);
    let frame = v6(protocol::UDP, &datagram);
    let Input::Udp(packet, _) = net.receive(&frame) else {
        panic!()
    };
    net.ip.refuse_port(net.now, &packet, &mut net.counters);
    let sent = net.sent();
    let (kind, code, body) = message_v6(&sent[0]);
    assert_eq!((kind, code), (Icmpv6Message::DstUnreachable, 4));
    assert_eq!(body, frame[14..][..1280 - 48], "RFC 4443, 2.4 (c)");
    assert_eq!(net.counters.icmp_out_dest_unreachs, 2);
}

#[test]
fn unknown_protocols_are_refused() {
    let mut net = Net::with_peer();
    net.receive(&v4(132, &[1; 20]));
    net.receive(&v6(132, &[1; 20]));
    let sent = net.sent();
    assert_eq!(message_v4(&sent[0]).0, Icmpv4Message::DstUnreachable);
    assert_eq!(message_v4(&sent[0]).1, 2);
    assert_eq!(message_v6(&sent[1]).0, Icmpv6Message::ParamProblem);
    assert_eq!(sent[1][58..62], 6u32.to_be_bytes(), "the next header field");
    assert_eq!(net.counters.ip_in_unknown_protos, 2);
}

#[test]
fn rfc4443_2_4_e_no_error_about_errors_groups_and_nobody() {
    let mut net = Net::with_peer();
    // A wrong next header in a packet that is an error itself cannot be told; so is one to a group.
    let unknown = packet_v6("ff02::1".parse().unwrap(), 132, 64, &[1; 20]);
    net.receive(&ethernet(
        Mac([0x33, 0x33, 0, 0, 0, 1]),
        ethernet::IPV6,
        &unknown,
    ));
    let unknown = packet_v4(&header_v4(Ipv4Addr::new(10, 0, 0, 255), 132, 4), &[1; 4]);
    net.receive(&ethernet(Mac::BROADCAST, ethernet::IPV4, &unknown));
    assert!(net.sent().is_empty());
    let quoted = |kind| {
        packet_v4(
            &header_v4(OURS, protocol::ICMP, 8),
            &[kind, 0, 0, 0, 0, 0, 0, 0],
        )
    };
    for (kind, is_error) in [(3, true), (11, true), (12, true), (8, false), (0, false)] {
        assert_eq!(
            super::super::quoted::is_icmp_error(&quoted(kind)),
            is_error,
            "{kind}"
        );
    }
    let quoted = |kind| packet_v6(OURS_V6, protocol::ICMPV6, 64, &[kind, 0, 0, 0, 0, 0, 0, 0]);
    for (kind, is_error) in [
        (1, true),
        (127, true),
        (137, true),
        (128, false),
        (129, false),
        (135, false),
    ] {
        assert_eq!(
            super::super::quoted::is_icmp_error(&quoted(kind)),
            is_error,
            "{kind}"
        );
    }
}

#[test]
fn rfc1812_4_3_2_8_errors_are_limited() {
    let mut net = Net::with_peer();
    for _ in 0..1_000 {
        net.receive(&v4(132, &[1; 20]));
    }
    assert_eq!(net.sent().len(), 6);
    assert_eq!(net.counters.icmp_out_rate_limit_host, 994);
}

/// What an error says about a packet from `local` to `peer`.
fn error_v4(
    net: &mut Net,
    code: u8,
    word: u32,
    source: Ipv4Addr,
    quoted_bytes: usize,
) -> Option<IcmpError> {
    let mut header = header_v4(PEER, protocol::TCP, 1400);
    header.source = source;
    let tcp = [0x13, 0x88, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8];
    let quoted = packet_v4(&header, &tcp);
    let quoted = &quoted[..quoted_bytes.min(quoted.len())];
    match net.receive(&v4(
        protocol::ICMP,
        &icmp_message(false, 3, code, word, quoted),
    )) {
        Input::Error(error) => Some(error),
        _ => None,
    }
}

#[test]
fn rfc1122_3_2_2_1_an_error_names_its_packet() {
    let mut net = Net::with_peer();
    let error = error_v4(&mut net, 3, 0, OURS, 28).unwrap();
    assert_eq!(
        (error.error, error.hard, error.mtu),
        (SocketError::Refused, true, None)
    );
    assert_eq!(
        (error.local, error.peer),
        (IpAddr::V4(OURS), IpAddr::V4(PEER))
    );
    assert_eq!(
        (error.local_port(), error.peer_port(), error.seq()),
        (5000, 80, 0x0102_0304)
    );
    assert_eq!(error.protocol, protocol::TCP);
    assert_eq!(error_v4(&mut net, 3, 0, OURS, 27), None, "cut");
    assert_eq!(error_v4(&mut net, 3, 0, PEER, 28), None, "of another host");
    assert_eq!(net.counters.icmp_in_errors, 2);
    assert_eq!(net.counters.icmp_in_dest_unreachs, 3);
}

#[test]
fn rfc1191_4_the_mtu_of_fragmentation_needed() {
    let mut net = Net::with_peer();
    let mut mtu = |word| error_v4(&mut net, 4, word, OURS, 28).unwrap().mtu;
    assert_eq!(mtu(1400), Some(1400));
    assert_eq!(mtu(68), Some(552), "Linux, min_pmtu");
    assert_eq!(mtu(0), Some(1006), "the plateau below 1,420 bytes");
}

#[test]
fn rfc1191_6_3_the_path_mtu_ages() {
    let mut net = Net::with_peer();
    let peer = IpAddr::V4(PEER);
    let error = error_v4(&mut net, 4, 1400, OURS, 28).unwrap();
    assert_eq!(net.ip.mtu(net.now, peer), 1500, "nobody checked it yet");
    assert_eq!(net.ip.lower_mtu(net.now, &error), 1400);
    assert_eq!(net.ip.mtu(net.now, peer), 1400);
    let larger = error_v4(&mut net, 4, 1450, OURS, 28).unwrap();
    assert_eq!(net.ip.lower_mtu(net.now, &larger), 1400, "never up");
    net.pass(600_000);
    assert_eq!(net.ip.mtu(net.now, peer), 1500);
}

#[test]
fn rfc8201_4_packet_too_big() {
    let mut net = Net::with_peer();
    let mut too_big = |mtu: u32| {
        let mut quoted = packet_v6(PEER_V6, protocol::TCP, 64, &[0x13, 0x88, 0, 80, 1, 2, 3, 4]);
        quoted[8..24].copy_from_slice(&OURS_V6.octets());
        let frame = v6(protocol::ICMPV6, &icmp_message(true, 2, 0, mtu, &quoted));
        match net.receive(&frame) {
            Input::Error(error) => error.mtu,
            _ => None,
        }
    };
    assert_eq!(too_big(1400), Some(1400));
    assert_eq!(too_big(1279), None, "RFC 8201, 4");
    assert_eq!(too_big(100_000), Some(u16::MAX));
}

/// Once: where it is about nothing, or by whoever does not find what it is about.
#[test]
fn an_error_of_unknown_type_is_one_error() {
    let mut net = Net::with_peer();
    net.receive(&v6(
        protocol::ICMPV6,
        &icmp_message(true, 100, 0, 0, &[0; 4]),
    ));
    let counted = |net: &Net| (net.counters.icmp_in_msgs, net.counters.icmp_in_errors);
    assert_eq!(counted(&net), (1, 1));
    let mut quoted = packet_v6(PEER_V6, protocol::TCP, 64, &[0x13, 0x88, 0, 80, 1, 2, 3, 4]);
    quoted[8..24].copy_from_slice(&OURS_V6.octets());
    let frame = v6(protocol::ICMPV6, &icmp_message(true, 100, 0, 0, &quoted));
    let Input::Error(told) = net.receive(&frame) else {
        panic!("an error")
    };
    assert_eq!((told.error, told.hard), (SocketError::Protocol, false));
    assert_eq!(counted(&net), (2, 1));
}

#[test]
fn hard_and_soft_errors_as_linux_has_them() {
    use SocketError::*;
    let mut net = Net::with_peer();
    for (code, error, hard) in [
        (0, NetworkUnreachable, false),
        (1, HostUnreachable, false),
        (2, NoOption, true),
        (3, Refused, true),
        (4, MessageTooLong, false),
        (9, NetworkUnreachable, true),
        (13, HostUnreachable, true),
    ] {
        let got = error_v4(&mut net, code, 1400, OURS, 28).unwrap();
        assert_eq!((got.error, got.hard), (error, hard), "{code}");
    }
}
