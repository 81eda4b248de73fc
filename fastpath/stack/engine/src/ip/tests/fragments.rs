//! Fragments as frames, and packets in fragments.
use super::super::Input;
use super::support::*;
use crate::wire::ethernet;
use crate::wire::{ipv6, protocol};
use smoltcp::wire::{EthernetFrame, Icmpv4Packet, Ipv4Packet};

/// Fragments of `payload` to us.
fn fragments_v4(protocol: u8, payload: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let pieces = payload.chunks(piece).enumerate();
    let frame = |(i, bytes): (usize, &[u8])| {
        let mut header = header_v4(OURS, protocol, bytes.len());
        header.fragment_offset = (i * piece) as u16;
        header.more_fragments = (i + 1) * piece < payload.len();
        ethernet(OUR_MAC, ethernet::IPV4, &packet_v4(&header, bytes))
    };
    pieces.map(frame).collect()
}

fn fragments_v6(protocol: u8, payload: &[u8], piece: usize) -> Vec<Vec<u8>> {
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
                .receive_reassembled(net.now, &packet, &mut net.counters)
        else {
            panic!()
        };
        assert_eq!(datagram.payload(), payload);
    }
    assert_eq!(net.counters.ip_reasm_oks, 3);
    assert_eq!(net.counters.ip_reasm_fails, 0);
    assert_eq!(net.counters.udp_in_csum_errors, 0);
}

#[test]
fn a_long_echo_comes_and_goes_in_fragments() {
    let mut net = Net::with_peer();
    let body: Vec<u8> = (0..5_000).map(|i| i as u8).collect();
    let frames = fragments_v4(protocol::ICMP, &icmp_message(false, 8, 0, 7, &body), 1480);
    let packet = reassembled(&mut net, &frames);
    net.ip
        .receive_reassembled(net.now, &packet, &mut net.counters);
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
        .receive_reassembled(net.now, &packet, &mut net.counters);
    let mut reply = Vec::new();
    for frame in net.sent() {
        assert!(frame.len() <= 1514);
        assert_eq!(frame[20], ipv6::FRAGMENT);
        let place = u16::from_be_bytes([frame[56], frame[57]]);
        assert_eq!(usize::from(place & !7), reply.len());
        reply.extend_from_slice(&frame[62..]);
    }
    assert_eq!((reply[0], &reply[8..]), (129, &body[..]));
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

#[test]
fn rfc1858_3_a_first_fragment_without_its_header() {
    let mut net = Net::with_peer();
    let mut header = header_v4(OURS, protocol::TCP, 8);
    header.more_fragments = true;
    net.receive(&ethernet(
        OUR_MAC,
        ethernet::IPV4,
        &packet_v4(&header, &[1; 8]),
    ));
    // And one that is no multiple of 8, and one beyond 64 KiB.
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
    assert_eq!(net.counters.ip_in_hdr_errors, 3);
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
