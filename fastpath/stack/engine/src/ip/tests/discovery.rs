//! ARP and NDISC.
use super::super::Hop;
use super::support::*;
use crate::config::Share;
use crate::wire::ethernet::{self, Mac};
use crate::wire::ndisc::Message;
use crate::{Ns, SocketError};
use smoltcp::wire::{ArpOperation, ArpPacket, EthernetFrame, Icmpv6Packet, Ipv6Packet, NdiscRepr};
use std::net::{IpAddr, Ipv4Addr};

#[test]
fn rfc826_a_request_for_us_is_answered() {
    let mut net = Net::new();
    net.receive(&arp_request(PEER_MAC, PEER, OURS));
    let sent = net.sent();
    let frame = EthernetFrame::new_checked(&sent[0][..]).unwrap();
    assert_eq!(
        (frame.dst_addr().0, frame.src_addr().0),
        (PEER_MAC.0, OUR_MAC.0)
    );
    let arp = ArpPacket::new_checked(frame.payload()).unwrap();
    assert_eq!(arp.operation(), ArpOperation::Reply);
    assert_eq!(arp.source_hardware_addr(), OUR_MAC.0);
    assert_eq!(arp.source_protocol_addr(), OURS.octets());
    assert_eq!(arp.target_protocol_addr(), PEER.octets());
    // And whoever asked is known.
    let (_, frame) = net.send(PEER.into(), &mut Hop::default()).unwrap();
    assert_eq!(frame[..6], PEER_MAC.0);
}

#[test]
fn requests_for_others_are_not() {
    let mut net = Net::new();
    net.receive(&arp_request(PEER_MAC, PEER, Ipv4Addr::new(10, 0, 0, 77)));
    assert!(net.sent().is_empty());
    assert!(
        net.send(PEER.into(), &mut Hop::default()).is_none(),
        "and teach nothing"
    );
}

#[test]
fn rfc5227_2_1_1_a_probe_is_answered() {
    let mut net = Net::new();
    net.receive(&arp_request(PEER_MAC, Ipv4Addr::UNSPECIFIED, OURS));
    assert_eq!(net.sent().len(), 1);
}

#[test]
fn rfc5227_2_4_another_host_with_our_address_is_counted() {
    let mut net = Net::new();
    net.receive(&arp_request(PEER_MAC, OURS, OURS));
    net.receive(&arp_reply(PEER_MAC, OURS));
    assert_eq!(net.counters.address_conflicts, 2);
}

#[test]
fn rfc5227_2_4_our_address_is_defended_once_in_ten_seconds() {
    let mut net = Net::new();
    for (ms, defended) in [(0, 1), (0, 0), (9_999, 0), (1, 1), (1, 0)] {
        net.pass(ms);
        net.receive(&arp_reply(PEER_MAC, OURS));
        let sent = net.sent();
        assert_eq!(sent.len(), defended);
        for frame in sent {
            let frame = EthernetFrame::new_checked(&frame[..]).unwrap();
            assert!(frame.dst_addr().is_broadcast());
            let arp = ArpPacket::new_checked(frame.payload()).unwrap();
            assert_eq!(arp.operation(), ArpOperation::Request);
            assert_eq!(arp.source_hardware_addr(), OUR_MAC.0);
            assert_eq!(arp.source_protocol_addr(), OURS.octets());
            assert_eq!(arp.target_protocol_addr(), OURS.octets());
        }
    }
    assert_eq!(net.counters.addresses_defended, 2);
}

#[test]
fn packets_wait_for_an_arp_reply() {
    let mut net = Net::new();
    let mut hop = Hop::default();
    assert!(net.send(PEER.into(), &mut hop).is_none());
    assert!(net.send(PEER.into(), &mut hop).is_none());
    let sent = net.sent();
    assert_eq!(sent.len(), 1, "one request");
    let frame = EthernetFrame::new_checked(&sent[0][..]).unwrap();
    assert!(frame.dst_addr().is_broadcast());
    let arp = ArpPacket::new_checked(frame.payload()).unwrap();
    assert_eq!(arp.operation(), ArpOperation::Request);
    assert_eq!(arp.target_protocol_addr(), PEER.octets());
    net.receive(&arp_reply(PEER_MAC, PEER));
    let sent = net.sent();
    assert_eq!(sent.len(), 2);
    assert!(
        sent.iter()
            .all(|f| f[..6] == PEER_MAC.0 && f.ends_with(b"hello"))
    );
    // Now without waiting, and without a look-up.
    assert!(net.send(PEER.into(), &mut hop).is_some());
}

#[test]
fn rfc1122_2_3_2_2_a_neighbor_that_does_not_answer() {
    let mut net = Net::new();
    assert!(net.send(PEER.into(), &mut Hop::default()).is_none());
    for _ in 0..3 {
        assert_eq!(net.sent().len(), 1);
        assert_eq!(net.ip.next_unreachable(), None);
        net.pass(1_000);
    }
    let error = net.ip.next_unreachable().unwrap();
    assert_eq!(error.error, SocketError::HostUnreachable);
    assert_eq!((error.local, error.peer), (OURS.into(), PEER.into()));
    assert_eq!((error.local_port(), error.peer_port()), (1000, 2000));
    assert_eq!(net.ip.next_unreachable(), None);
    assert_eq!(net.ip.poll_at(), None);
}

#[test]
fn others_are_reached_by_the_gateway() {
    let mut net = Net::new();
    assert!(
        net.send("192.0.2.1".parse().unwrap(), &mut Hop::default())
            .is_none()
    );
    let sent = net.sent();
    assert_eq!(sent[0][38..42], [10, 0, 0, 254], "who is asked for");
    assert_eq!(
        net.ip.source_for("2001:db8::1".parse().unwrap()),
        Err(SocketError::NetworkUnreachable)
    );
}

#[test]
fn hostile_senders_of_arp_teach_nothing() {
    let mut net = Net::new();
    let strange = [
        arp_request(PEER_MAC, Ipv4Addr::new(192, 0, 2, 1), OURS),
        arp_request(PEER_MAC, Ipv4Addr::new(10, 0, 0, 255), OURS),
        arp_request(PEER_MAC, Ipv4Addr::new(224, 0, 0, 1), OURS),
        arp_request(Mac::BROADCAST, PEER, OURS),
        arp_request(Mac([0; 6]), PEER, OURS),
        arp_request(OUR_MAC, PEER, OURS),
    ];
    for frame in strange {
        net.receive(&frame);
    }
    net.sent();
    for address in [PEER, Ipv4Addr::new(192, 0, 2, 1)] {
        assert!(net.send(address.into(), &mut Hop::default()).is_none());
    }
    // To a gateway nobody asked for yet, and the peer.
    assert_eq!(net.sent().len(), 2);
    let bytes = net.ip.neighbors.memory_bytes();
    for i in 0..2_000 {
        net.receive(&arp_request(
            PEER_MAC,
            Ipv4Addr::from_bits(0xc000_0200 + i),
            OURS,
        ));
    }
    assert_eq!(net.ip.neighbors.memory_bytes(), bytes);
}

#[test]
fn rfc4861_7_2_4_a_solicitation_is_answered() {
    let mut net = Net::new();
    net.receive(&ndisc_solicitation());
    let sent = net.sent();
    let frame = EthernetFrame::new_checked(&sent[0][..]).unwrap();
    assert_eq!(frame.dst_addr().0, PEER_MAC.0);
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    assert_eq!(
        (packet.src_addr(), packet.dst_addr(), packet.hop_limit()),
        (OURS_V6, PEER_V6, 255)
    );
    let icmp = Icmpv6Packet::new_checked(packet.payload()).unwrap();
    assert!(icmp.verify_checksum(&packet.src_addr(), &packet.dst_addr()));
    let NdiscRepr::NeighborAdvert {
        target_addr,
        lladdr,
        ..
    } = NdiscRepr::parse(&icmp).unwrap()
    else {
        panic!()
    };
    assert_eq!(target_addr, OURS_V6);
    assert_eq!(lladdr.unwrap().as_bytes(), OUR_MAC.0);
}

#[test]
fn rfc4291_2_5_6_a_solicitation_from_a_link_local_address() {
    let mut net = Net::new();
    let mut frame = ndisc_solicitation();
    let source: std::net::Ipv6Addr = "fe80::2".parse().unwrap();
    frame[22..38].copy_from_slice(&source.octets());
    frame[56..58].fill(0);
    let sum = crate::wire::checksum::Sum::of_pseudo_header(source.into(), OURS_V6.into(), 58, 32);
    let field = sum
        .and(crate::wire::checksum::Sum::of(&frame[54..]))
        .field();
    frame[56..58].copy_from_slice(&field.to_be_bytes());
    net.receive(&frame);
    let sent = net.sent();
    assert_eq!((sent.len(), &sent[0][..6]), (1, &PEER_MAC.0[..]));
    assert_eq!(sent[0][38..54], source.octets());
}

#[test]
fn rfc5942_3_a_gateway_outside_of_our_network() {
    let mut config = config();
    config.addresses[0].prefix_bits = 32;
    let mut net = Net::with(&config);
    assert!(
        net.send("192.0.2.1".parse().unwrap(), &mut Hop::default())
            .is_none()
    );
    net.sent();
    net.receive(&arp_reply(PEER_MAC, Ipv4Addr::new(10, 0, 0, 254)));
    assert_eq!(net.sent().len(), 1);
}

#[test]
fn rfc4861_7_1_1_hop_limit_255() {
    let mut net = Net::new();
    let message = Message::Solicitation {
        target: OURS_V6,
        mac: Some(PEER_MAC),
    };
    net.receive(&ndisc(&message, 254));
    assert!(net.sent().is_empty());
    assert_eq!(net.counters.nd_ignored, 1);
}

#[test]
fn rfc4862_5_4_3_a_detection_of_our_address_is_answered_to_all() {
    let mut net = Net::new();
    let mut frame = ndisc(
        &Message::Solicitation {
            target: OURS_V6,
            mac: None,
        },
        255,
    );
    let group = ethernet::solicited_node(OURS_V6);
    frame[..6].copy_from_slice(&Mac::of_multicast(group.into()).unwrap().0);
    frame[22..38].fill(0);
    frame[38..54].copy_from_slice(&group.octets());
    frame[56..58].fill(0);
    let sum = crate::wire::checksum::Sum::of_pseudo_header(
        IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        group.into(),
        58,
        24,
    );
    let field = sum
        .and(crate::wire::checksum::Sum::of(&frame[54..]))
        .field();
    frame[56..58].copy_from_slice(&field.to_be_bytes());
    net.receive(&frame);
    let sent = net.sent();
    assert_eq!(sent[0][..6], [0x33, 0x33, 0, 0, 0, 1]);
    assert_eq!(sent[0][38..54], super::super::addresses::ALL_NODES.octets());
}

#[test]
fn rfc4861_7_2_2_packets_wait_for_an_advertisement() {
    let mut net = Net::new();
    assert!(net.send(PEER_V6.into(), &mut Hop::default()).is_none());
    let sent = net.sent();
    let frame = EthernetFrame::new_checked(&sent[0][..]).unwrap();
    assert_eq!(frame.dst_addr().0, [0x33, 0x33, 0xff, 0, 0, 2]);
    let packet = Ipv6Packet::new_checked(frame.payload()).unwrap();
    assert_eq!(packet.dst_addr(), ethernet::solicited_node(PEER_V6));
    let icmp = Icmpv6Packet::new_checked(packet.payload()).unwrap();
    assert!(icmp.verify_checksum(&packet.src_addr(), &packet.dst_addr()));
    let advertisement = Message::Advertisement {
        target: PEER_V6,
        mac: Some(PEER_MAC),
        router: false,
        solicited: true,
        overrides: true,
    };
    net.receive(&ndisc(&advertisement, 255));
    let sent = net.sent();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].starts_with(&PEER_MAC.0) && sent[0].ends_with(b"hello"));
}

#[test]
fn of_several_engines_the_first_answers_and_all_learn() {
    let mut config = config();
    config.share = Share {
        index: 1,
        of: 2,
        ..Share::ALONE
    };
    let mut net = Net::with(&config);
    net.receive(&arp_request(PEER_MAC, PEER, OURS));
    net.receive(&ndisc_solicitation());
    assert!(net.sent().is_empty());
    assert!(net.send(PEER.into(), &mut Hop::default()).is_some());
    assert!(net.send(PEER_V6.into(), &mut Hop::default()).is_some());
}

#[test]
fn router_advertisements_are_ignored() {
    let mut net = Net::new();
    let body = [64, 0, 0, 0, 0, 0, 0, 0];
    let message = icmp_message(true, 134, 0, 0, &body);
    net.receive(&v6(58, &message));
    assert_eq!((net.counters.nd_in, net.counters.nd_ignored), (1, 1));
    assert_eq!(net.ip.poll_at(), None::<Ns>);
}
