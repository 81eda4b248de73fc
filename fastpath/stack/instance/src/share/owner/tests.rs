use super::*;

pub(in crate::share) fn udp(source_port: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..14].copy_from_slice(&IPV4.to_be_bytes());
    frame[14] = 0x45;
    frame[23] = 17;
    frame[26..30].copy_from_slice(&[10, 0, 0, 1]);
    frame[30..34].copy_from_slice(&[10, 0, 0, 2]);
    frame[34..36].copy_from_slice(&source_port.to_be_bytes());
    frame[36..38].copy_from_slice(&80u16.to_be_bytes());
    frame
}

#[test]
fn a_flow_has_the_owner_that_its_hash_says() {
    for port in 1000..1100 {
        let peer = SocketAddr::new([10, 0, 0, 1].into(), port);
        let hash = flow_hash(peer, "10.0.0.2:80".parse().unwrap());
        let expected = Owner::One(hash as usize % 3);
        assert_eq!(owner(&udp(port), 3, false), expected);
        assert_eq!(owner(&udp(port), 3, true), Owner::One(0));
    }
}

#[test]
fn fragments_are_everybodys_and_what_is_cut_the_firsts() {
    let mut fragment = udp(1000);
    fragment[20] = 0x20;
    assert_eq!(owner(&fragment, 3, false), Owner::All);
    for len in 0..38 {
        assert_eq!(owner(&udp(1000)[..len], 3, false), FIRST, "{len} bytes");
    }
}

fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(packet);
    frame
}

fn v4(protocol: u8, [source, destination]: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, source, 10, 0, 0, destination]);
    packet.extend(payload);
    packet
}

fn v6(protocol: u8, [source, destination]: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
    for last in [source, destination] {
        packet.extend([0xfd; 15]);
        packet.push(last);
    }
    packet.extend(payload);
    packet
}

/// Ports, and what follows them in eight bytes.
fn ports(source: u16, destination: u16) -> Vec<u8> {
    let ports = [source.to_be_bytes(), destination.to_be_bytes()].concat();
    [ports, vec![0; 4]].concat()
}

#[test]
fn an_icmp_error_is_for_whoever_has_sent_what_it_is_about() {
    for port in 1000..1100 {
        for transport in [protocol::TCP, protocol::UDP] {
            let arrives = v4(transport, [1, 2], &ports(port, 80));
            let sent = v4(transport, [2, 1], &ports(80, port));
            let error = v4(protocol::ICMP, [9, 2], &[&[3; 8], &sent[..]].concat());
            let of_flow = owner(&frame(IPV4, &arrives), 3, false);
            assert_eq!(owner(&frame(IPV4, &error), 3, false), of_flow);
            let arrives = v6(transport, [1, 2], &ports(port, 80));
            let sent = v6(transport, [2, 1], &ports(80, port));
            // Of one that nobody knows, too.
            for kind in [1, 2, 100] {
                let error = [&[kind; 8], &sent[..]].concat();
                let error = v6(protocol::ICMPV6, [9, 2], &error);
                let of_flow = owner(&frame(IPV6, &arrives), 3, false);
                assert_eq!(owner(&frame(IPV6, &error), 3, false), of_flow);
            }
        }
    }
    let sent = v4(protocol::UDP, [2, 1], &ports(80, 1000));
    let error = v4(protocol::ICMP, [9, 2], &[&[3; 8], &sent[..]].concat());
    assert_eq!(owner(&frame(IPV4, &error), 3, true), FIRST);
    assert_eq!(owner(&frame(IPV4, &error[..40]), 3, false), FIRST, "cut");
}

#[test]
fn what_is_of_no_connection_is_the_firsts_but_answers_of_neighbours() {
    for kind in 0..=255 {
        let message = v4(protocol::ICMP, [1, 2], &[kind; 8]);
        assert_eq!(owner(&frame(IPV4, &message), 3, false), FIRST, "{kind}");
        let message = v6(protocol::ICMPV6, [1, 2], &[kind; 8]);
        let expected = match kind {
            NEIGHBOR_ADVERTISEMENT => Owner::All,
            _ => FIRST,
        };
        assert_eq!(owner(&frame(IPV6, &message), 3, false), expected, "{kind}");
    }
    let unknown = v4(132, [1, 2], &ports(1, 2));
    assert_eq!(owner(&frame(IPV4, &unknown), 3, false), FIRST);
    let arp = |operation| frame(ARP, &[0, 1, 8, 0, 6, 4, 0, operation]);
    assert_eq!(owner(&arp(1), 3, false), FIRST);
    assert_eq!(owner(&arp(2), 3, false), Owner::All);
}

#[test]
fn extension_headers_change_no_owner() {
    for port in 1000..1100 {
        let transport = ports(port, 80);
        let plain = owner(
            &frame(IPV6, &v6(protocol::TCP, [1, 2], &transport)),
            3,
            false,
        );
        for (kind, extension) in [(0, 0), (60, 0), (60, 1), (44, 0)] {
            let mut bytes = vec![0; 8 * (extension + 1)];
            (bytes[0], bytes[1]) = (protocol::TCP, extension as u8);
            bytes.extend(&transport);
            let extended = frame(IPV6, &v6(kind, [1, 2], &bytes));
            assert_eq!(owner(&extended, 3, false), plain, "{kind}, {extension}");
        }
    }
    let fragment = [&[protocol::TCP, 0, 0, 1, 0, 0, 0, 9], &ports(1, 80)[..]].concat();
    let fragment = frame(IPV6, &v6(44, [1, 2], &fragment));
    assert_eq!(owner(&fragment, 3, false), Owner::All);
}
