//! Fragments as frames, and packets in fragments.
use super::super::Input;
use super::support::*;
use crate::wire::checksum::Sum;
use crate::wire::ethernet;
use crate::wire::{ipv6, protocol, tcp, tcp_options};
use smoltcp::wire::{EthernetFrame, Icmpv4Packet, Ipv4Packet};

/// Fragments of `payload` to us.
pub(super) fn fragments_v4(protocol: u8, payload: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let pieces = payload.chunks(piece).enumerate();
    let frame = |(i, bytes): (usize, &[u8])| {
        let mut header = header_v4(OURS, protocol, bytes.len());
        header.fragment_offset = (i * piece) as u16;
        header.more_fragments = (i + 1) * piece < payload.len();
        ethernet(OUR_MAC, ethernet::IPV4, &packet_v4(&header, bytes))
    };
    pieces.map(frame).collect()
}

pub(super) fn fragments_v6(protocol: u8, payload: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let pieces = payload.chunks(piece).enumerate();
    let frame = |(i, bytes): (usize, &[u8])| {
        let more = (i + 1) * piece < payload.len();
        let place = ((i * piece) as u16 | u16::from(more)).to_be_bytes();
        let header = [protocol, 0, place[0], place[1], 0, 0, 0, 9];
        v6(ipv6::FRAGMENT, &[&header[..], bytes].concat())
    };
    pieces.map(frame).collect()
}

fn reassembled(net: &mut Net, frames: &[Vec<u8>]) -> Box<[u8]> {
    let (last, others) = frames.split_last().unwrap();
    for frame in others {
        assert!(matches!(net.receive(frame), Input::Done));
    }
    match net.receive(last) {
        Input::Reassembled(packet) => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rfc791_3_2_and_rfc8200_4_5_datagrams_in_fragments() {
    let mut net = Net::with_peer();
    let payload: Vec<u8> = (0..9_000).map(|i| (i / 3) as u8).collect();
    let v4 = udp_datagram(PEER.into(), OURS.into(), 1, 2, &payload);
    let v6 = udp_datagram(PEER_V6.into(), OURS_V6.into(), 1, 2, &payload);
    for frames in [
        fragments_v4(protocol::UDP, &v4, 1480),
        fragments_v6(protocol::UDP, &v6, 1448),
        fragments_v4(protocol::UDP, &v4, 8 * 10),
    ] {
        let mut frames = frames;
        frames.reverse();
        let packet = reassembled(&mut net, &frames);
        let Input::Udp(_, datagram) =
            net.ip
                .receive_reassembled(net.now, &packet, false, &mut net.counters)
        else {
            panic!()
        };
        assert_eq!(datagram.payload(), payload);
    }
    assert_eq!(net.counters.ip_reasm_oks, 3);
    assert_eq!(net.counters.ip_reasm_fails, 0);
    let fragments = 7 + 7 + 9_008u64.div_ceil(80);
    let received = net.counters.ip_in_receives;
    assert_eq!(received, fragments, "each fragment, not the whole again");
    assert_eq!(net.counters.ip_in_delivers, 3);
    assert_eq!(net.counters.udp_in_csum_errors, 0);
}

#[test]
fn a_long_echo_comes_and_goes_in_fragments() {
    let mut net = Net::with_peer();
    let body: Vec<u8> = (0..5_000).map(|i| i as u8).collect();
    let frames = fragments_v4(protocol::ICMP, &icmp_message(false, 8, 0, 7, &body), 1480);
    let packet = reassembled(&mut net, &frames);
    net.ip
        .receive_reassembled(net.now, &packet, false, &mut net.counters);
    let sent = net.sent();
    assert_eq!(sent.len(), 4);
    let mut reply = Vec::new();
    for (i, frame) in sent.iter().enumerate() {
        assert!(frame.len() <= 1514);
        let frame = EthernetFrame::new_checked(&frame[..]).unwrap();
        let packet = Ipv4Packet::new_checked(frame.payload()).unwrap();
        assert!(packet.verify_checksum() && !packet.dont_frag());
        assert_eq!(usize::from(packet.frag_offset()), reply.len());
        assert_eq!(packet.more_frags(), i < 3);
        reply.extend_from_slice(packet.payload());
    }
    assert!(
        Icmpv4Packet::new_checked(&reply[..])
            .unwrap()
            .verify_checksum()
    );
    assert_eq!(reply[8..], body);
    assert_sent_in_fragments(&net, 4);
}

/// One datagram, as the kernel counts it (net/ipv4/ip_output.c, net/ipv6/ip6_output.c).
fn assert_sent_in_fragments(net: &Net, fragments: u64) {
    let counters = &net.counters;
    assert_eq!(counters.ip_out_requests, 1);
    let fragmented = (counters.ip_frag_oks, counters.ip_frag_fails);
    assert_eq!(fragmented, (1, 0));
    assert_eq!(counters.ip_frag_creates, fragments);
}

#[test]
fn rfc8200_4_5_a_long_echo_over_ipv6() {
    let mut net = Net::with_peer();
    let body: Vec<u8> = (0..3_000).map(|i| i as u8).collect();
    let frames = fragments_v6(
        protocol::ICMPV6,
        &icmp_message(true, 128, 0, 7, &body),
        1448,
    );
    let packet = reassembled(&mut net, &frames);
    net.ip
        .receive_reassembled(net.now, &packet, false, &mut net.counters);
    let mut reply = Vec::new();
    for frame in net.sent() {
        assert!(frame.len() <= 1514);
        assert_eq!(frame[20], ipv6::FRAGMENT);
        let place = u16::from_be_bytes([frame[56], frame[57]]);
        assert_eq!(usize::from(place & !7), reply.len());
        reply.extend_from_slice(&frame[62..]);
    }
    assert_eq!((reply[0], &reply[8..]), (129, &body[..]));
    assert_sent_in_fragments(&net, 3);
}

#[test]
fn rfc5722_overlaps_are_counted() {
    let mut net = Net::with_peer();
    let datagram = udp_datagram(PEER.into(), OURS.into(), 1, 2, &[1; 100]);
    let frames = fragments_v4(protocol::UDP, &datagram, 40);
    net.receive(&frames[0]);
    let mut header = header_v4(OURS, protocol::UDP, 40);
    (header.fragment_offset, header.more_fragments) = (32, true);
    net.receive(&ethernet(
        OUR_MAC,
        ethernet::IPV4,
        &packet_v4(&header, &[6; 40]),
    ));
    for frame in &frames {
        assert!(matches!(net.receive(frame), Input::Done));
    }
    assert_eq!(net.counters.overlapping_fragments, 4);
    assert_eq!(net.counters.ip_reasm_oks, 0);
}

/// All of the packet is dropped silently, also what comes later; another packet is none the worse.
#[test]
fn rfc5722_4_overlapping_fragments_of_ipv6() {
    let mut net = Net::with_peer();
    let datagram = udp_datagram(PEER_V6.into(), OURS_V6.into(), 1, 2, &[1; 100]);
    let frames = fragments_v6(protocol::UDP, &datagram, 40);
    net.receive(&frames[0]);
    let header = [protocol::UDP, 0, 0, 32 | 1, 0, 0, 0, 9];
    net.receive(&v6(ipv6::FRAGMENT, &[&header[..], &[6; 40]].concat()));
    for frame in &frames {
        assert!(matches!(net.receive(frame), Input::Done));
    }
    assert_eq!(net.counters.overlapping_fragments, 4);
    assert!(net.sent_errors().is_empty());
    net.pass(60_000);
    assert!(
        net.sent_errors().is_empty(),
        "RFC 5722, 4: no time exceeded"
    );
    let packet = reassembled(&mut net, &frames);
    let receive = net
        .ip
        .receive_reassembled(net.now, &packet, false, &mut net.counters);
    assert!(matches!(receive, Input::Udp(..)));
}

/// RFC 1858 and RFC 3128 are about filters that see the first fragment only. A host takes the packet that comes of them.
#[test]
fn rfc791_3_2_a_syn_in_fragments_of_8_and_of_16_bytes() {
    for piece in [8, 16] {
        let mut net = Net::with_peer();
        let mut syn = [0; 24];
        let header = tcp::Header {
            source_port: 5,
            destination_port: 80,
            flags: tcp::Flags::SYN,
            options: tcp_options::TcpOptions {
                mss: Some(1400),
                ..tcp_options::TcpOptions::default()
            },
            ..tcp::Header::default()
        };
        header.emit(&mut syn);
        let pseudo = Sum::of_pseudo_header(PEER.into(), OURS.into(), protocol::TCP, 24);
        let field = pseudo.and(Sum::of(&syn)).field();
        tcp::set_checksum(&mut syn, field);
        let packet = reassembled(&mut net, &fragments_v4(protocol::TCP, &syn, piece));
        let Input::Tcp(_, segment) =
            net.ip
                .receive_reassembled(net.now, &packet, false, &mut net.counters)
        else {
            panic!("{:?}", net.counters)
        };
        assert_eq!((segment.source_port, segment.destination_port), (5, 80));
        assert!(segment.flags.syn());
        assert_eq!(net.counters.ip_in_hdr_errors, 0);
    }
}

/// RFC 8200, 4.5, RFC 7112, 5: in IPv6 the first fragment has all headers; the sender is told what is wrong.
#[test]
fn rfc8200_4_5_fragments_with_a_parameter_problem() {
    // Protocol, offset with M, payload bytes; code and pointer of the answer. About a fragment that is not the first there is none: it may be
    // an ICMP error's (RFC 4443, 2.4 (e)).
    for (protocol, place, bytes, answer) in [
        (protocol::TCP, 1, 16, Some((3, 0))),
        (protocol::UDP, 1, 9, Some((0, 4))),
        (protocol::UDP, 65_528, 16, None),
    ] {
        let mut net = Net::with_peer();
        let [high, low] = u16::to_be_bytes(place);
        let header = [protocol, 0, high, low, 0, 0, 0, 9];
        net.receive(&v6(
            ipv6::FRAGMENT,
            &[&header[..], &vec![1; bytes]].concat(),
        ));
        let sent = net.sent_errors();
        let told = |f: &Vec<u8>| {
            assert_eq!(f[54], 4);
            (f[55], f[61])
        };
        assert_eq!(
            sent.iter().map(told).collect::<Vec<_>>(),
            Vec::from_iter(answer)
        );
        assert_eq!(net.counters.ip_in_hdr_errors, 1);
        assert_eq!(net.ip.reassembly.poll_at(), None);
    }
}

#[test]
fn rfc791_3_2_fragments_that_are_no_multiple_of_8_or_too_long() {
    let mut net = Net::with_peer();
    let mut header = header_v4(OURS, protocol::TCP, 8);
    header.more_fragments = true;
    (
        header.protocol,
        header.payload_bytes,
        header.fragment_offset,
    ) = (protocol::UDP, 9, 8);
    net.receive(&ethernet(
        OUR_MAC,
        ethernet::IPV4,
        &packet_v4(&header, &[1; 9]),
    ));
    (header.payload_bytes, header.fragment_offset) = (16, 65_528);
    net.receive(&ethernet(
        OUR_MAC,
        ethernet::IPV4,
        &packet_v4(&header, &[1; 16]),
    ));
    assert_eq!(net.counters.ip_in_hdr_errors, 2);
    assert_eq!(net.ip.reassembly.poll_at(), None);
}

#[test]
fn rfc1122_3_3_2_time_exceeded_quotes_the_first_fragment() {
    let mut net = Net::with_peer();
    let datagram = udp_datagram(PEER.into(), OURS.into(), 1, 2, &[1; 100]);
    net.receive(&fragments_v4(protocol::UDP, &datagram, 40)[0]);
    let datagram = udp_datagram(PEER_V6.into(), OURS_V6.into(), 1, 2, &[1; 100]);
    net.receive(&fragments_v6(protocol::UDP, &datagram, 40)[0]);
    net.receive(&fragments_v6(protocol::UDP, &datagram, 56)[1]);
    net.pass(29_999);
    assert!(net.sent_errors().is_empty());
    net.pass(1);
    let sent = net.sent_errors();
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0][34..36], [11, 1]);
    assert_eq!(sent[0][42 + 20..][..4], [0, 1, 0, 2], "the ports");
    net.pass(30_000);
    let sent = net.sent_errors();
    assert_eq!(
        sent.len(),
        1,
        "a fragment that is not the first says nothing"
    );
    assert_eq!(sent[0][54..56], [3, 1]);
    assert_eq!(net.counters.icmp_out_time_excds, 2);
    assert_eq!(net.ip.reassembly.poll_at(), None);
}
