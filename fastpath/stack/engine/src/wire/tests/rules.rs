//! What RFCs say of single fields.
use crate::wire::ethernet::Mac;
use crate::wire::*;
use std::net::Ipv6Addr;

#[test]
fn rfc4861_4_6_an_option_without_length_ends_it() {
    let message = ndisc::Message::Solicitation {
        target: "fd00::1".parse().unwrap(),
        mac: None,
    };
    let mut bytes = [0; ndisc::BYTES];
    message.emit(&mut bytes);
    assert_eq!(ndisc::Message::parse(&bytes), None, "length 0");
    bytes[25] = 2;
    assert_eq!(ndisc::Message::parse(&bytes), None, "beyond the end");
    bytes[25] = 1;
    assert_eq!(
        ndisc::Message::parse(&bytes),
        Some(message),
        "an unknown kind"
    );
}

#[test]
fn rfc8200_4_2_unknown_options_by_their_highest_bits() {
    // A destination options header with one option, to unicast and to multicast.
    let packet = |kind: u8, multicast: bool| {
        let mut bytes = [0; 48];
        bytes[0] = 0x60;
        bytes[5] = 8;
        bytes[6] = 60;
        bytes[24] = if multicast { 0xff } else { 0xfd };
        bytes[40..].copy_from_slice(&[59, 0, kind, 4, 0, 0, 0, 0]);
        ipv6::Packet::parse(&bytes).map(|p| p.has_no_payload())
    };
    let problem = Err(Malformed::Parameter {
        code: 2,
        pointer: 42,
    });
    assert_eq!(packet(0x1e, false), Ok(true), "skipped");
    assert_eq!(packet(0x5e, false), Err(Malformed::Length), "dropped");
    assert_eq!(packet(0x9e, true), problem);
    assert_eq!(packet(0xde, false), problem);
    assert_eq!(packet(0xde, true), Err(Malformed::Length));
}

#[test]
fn rfc8200_4_1_extension_headers_are_bounded() {
    let packet = |headers: usize| {
        let mut bytes = vec![0; 40 + 8 * headers];
        bytes[0] = 0x60;
        bytes[5] = 8 * headers as u8;
        bytes[6] = 60;
        for i in 0..headers {
            bytes[40 + 8 * i] = if i + 1 == headers { 59 } else { 60 };
            bytes[42 + 8 * i] = 1;
            bytes[43 + 8 * i] = 4;
        }
        ipv6::Packet::parse(&bytes).map(|p| p.has_no_payload())
    };
    assert_eq!(packet(8), Ok(true));
    assert_eq!(packet(9), Err(Malformed::Length));
}

#[test]
fn rfc8200_4_4_a_routing_header_with_segments_left() {
    let packet = |left: u8| {
        let mut bytes = [0; 48];
        bytes[0] = 0x60;
        bytes[5] = 8;
        bytes[6] = 43;
        bytes[40..44].copy_from_slice(&[59, 0, 0, left]);
        ipv6::Packet::parse(&bytes).map(|p| p.has_no_payload())
    };
    assert_eq!(packet(0), Ok(true));
    assert_eq!(
        packet(1),
        Err(Malformed::Parameter {
            code: 0,
            pointer: 42
        })
    );
}

#[test]
fn rfc6946_an_atomic_fragment_is_a_packet() {
    let mut bytes = [0; 48];
    bytes[0] = 0x60;
    bytes[5] = 8;
    bytes[6] = 44;
    bytes[40] = 59;
    assert!(ipv6::Packet::parse(&bytes).unwrap().fragment.is_none());
    bytes[43] = 1;
    assert!(ipv6::Packet::parse(&bytes).unwrap().fragment.is_some());
}

#[test]
fn rfc1112_6_4_and_rfc2464_7_group_addresses() {
    let mac = |address: &str| Mac::of_multicast(address.parse().unwrap());
    assert_eq!(mac("224.129.2.3"), Some(Mac([1, 0, 0x5e, 1, 2, 3])));
    assert_eq!(mac("255.255.255.255"), Some(Mac::BROADCAST));
    assert_eq!(
        mac("ff02::1:ff01:203"),
        Some(Mac([0x33, 0x33, 0xff, 1, 2, 3]))
    );
    assert_eq!(mac("10.0.0.1"), None);
    let node = ethernet::solicited_node("fd00::5:6789:abcd".parse().unwrap());
    assert_eq!(node, "ff02::1:ff89:abcd".parse::<Ipv6Addr>().unwrap());
}
