//! What goes out: lengths, fragments, offloads, path MTU, errors that come back.
use super::support::*;
use crate::SocketError;
use crate::config::TxOffload;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_length_over_any_path_mtu(len in 0usize..65_500, mtu in 576u16..1500, ipv6: bool) {
        let mut small = config(1);
        small.mtu = if ipv6 { mtu.max(1280) } else { mtu };
        small.addresses.retain(|a| a.address.is_ipv6() == ipv6);
        let (mut a, mut b) = (Host::with(&small), Host::new(2));
        let (wildcard, to) = if ipv6 { ("[::]:9", "[fd00::2]:9") } else { ("0.0.0.0:9", "10.0.0.2:9") };
        let server = b.bound(wildcard);
        let client = a.socket(ipv6);
        let payload: Vec<u8> = (0..len).map(|i| (i * 31) as u8).collect();
        prop_assert_eq!(a.send(client, &payload, Some(to)), Ok(len));
        let frames = a.frames();
        prop_assert!(frames.iter().all(|f| f.len() <= usize::from(small.mtu)));
        frames.iter().for_each(|frame| b.receive(frame));
        prop_assert_eq!(b.recv(server).map(|(r, _)| r == payload), Ok(true));
        prop_assert_eq!(a.pool.used_bytes() + b.pool.used_bytes(), 0);
        prop_assert_eq!(b.counters.udp_in_csum_errors, 0);
    }
}

#[test]
fn datagrams_that_are_too_long() {
    let mut a = Host::new(1);
    let (v4, v6) = (a.socket(false), a.socket(true));
    let bytes = vec![0; 65_536];
    let long = Err(SocketError::MessageTooLong);
    assert_eq!(a.send(v4, &bytes[..65_508], Some("10.0.0.2:9")), long);
    assert_eq!(a.send(v4, &bytes[..65_507], Some("10.0.0.2:9")), Ok(65_507));
    assert_eq!(a.send(v6, &bytes[..65_528], Some("[fd00::2]:9")), long);
    assert_eq!(
        a.send(v6, &bytes[..65_527], Some("[fd00::2]:9")),
        Ok(65_527)
    );
}

#[test]
fn what_was_sent_before_close_goes_out() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    let client = a.socket(false);
    a.send(client, b"last words", Some("10.0.0.2:9")).unwrap();
    a.udp.close(client, &mut a.pool);
    // Another socket takes its place, and is not charged for it.
    let next = a.socket(false);
    a.send(next, b"first", Some("10.0.0.2:9")).unwrap();
    let mut slot = [0; 1500];
    let frame = a.udp.transmit(lower!(a), &mut slot).unwrap();
    assert_eq!(a.udp.queues(next), Ok((0, 256 + 5)));
    b.receive(&slot[..frame.len]);
    exchange(&mut a, &mut b);
    assert_eq!(b.recv(server).unwrap().0, b"last words");
    assert_eq!(b.recv(server).unwrap().0, b"first");
    assert_eq!(a.udp.queues(next), Ok((0, 0)));
}

#[test]
fn the_device_completes_checksums_of_whole_datagrams() {
    let mut offloading = config(1);
    offloading.offload = TxOffload {
        checksum: true,
        ..TxOffload::default()
    };
    let mut a = Host::with(&offloading);
    let client = a.socket(false);
    a.send(client, b"x", Some("10.0.0.2:9")).unwrap();
    a.send(client, &[1; 2_000], Some("10.0.0.2:9")).unwrap();
    let mut slot = [0; 1500];
    let mut next = || a.udp.transmit(lower!(a), &mut slot).unwrap();
    let checksum = next().checksum.unwrap();
    assert_eq!((checksum.start, checksum.offset), (20, 6));
    assert_eq!((next().checksum, next().checksum), (None, None));
}

/// Fragments that are left fit the device as it is now.
#[test]
fn the_mtu_is_lowered_between_two_fragments() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    let client = a.socket(false);
    let payload: Vec<u8> = (0..8_000).map(|i| (i * 31) as u8).collect();
    a.send(client, &payload, Some("10.0.0.2:9")).unwrap();
    let mut slot = [0; 1500];
    let frame = a.udp.transmit(lower!(a), &mut slot).unwrap();
    assert_eq!(frame.len, 1_500);
    b.receive(&slot[..frame.len]);
    a.ip.set_link_mtu(1_000);
    for frame in a.frames() {
        assert!(frame.len() <= 1_000, "{}", frame.len());
        b.receive(&frame);
    }
    assert_eq!(b.recv(server).map(|(r, _)| r), Ok(payload));
}

/// Counted as by the kernel (net/ipv4/ip_output.c).
#[test]
fn a_datagram_in_fragments_is_one_request() {
    let mut a = Host::new(1);
    let client = a.socket(false);
    let counted = |a: &Host| {
        let c = &a.counters;
        let fragmented = (c.ip_frag_oks, c.ip_frag_fails, c.ip_frag_creates);
        (c.ip_out_requests, fragmented)
    };
    a.send(client, &[1; 4_000], Some("10.0.0.2:9")).unwrap();
    assert_eq!(a.frames().len(), 3);
    assert_eq!(counted(&a), (1, (1, 0, 3)));
    a.send(client, &[1; 1_000], Some("10.0.0.2:9")).unwrap();
    assert_eq!(a.frames().len(), 1);
    assert_eq!(counted(&a), (2, (1, 0, 3)), "it fits");
    a.send(client, &[1; 4_000], Some("10.0.0.2:9")).unwrap();
    let mut slot = [0; 1500];
    assert!(a.udp.transmit(lower!(a), &mut slot).is_some());
    let too_short = a.udp.transmit(lower!(a), &mut slot[..100]);
    assert_eq!((too_short, a.frames().len()), (None, 0));
    assert_eq!(counted(&a), (3, (1, 1, 4)), "the rest has no room");
}

#[test]
fn options_decide_what_becomes_of_datagrams_beyond_a_lowered_mtu() {
    use crate::MtuDiscovery::{Do, Dont, Probe, Want};
    let mut a = Host::new(1);
    a.ip.set_link_mtu(1_000);
    let long = Err(SocketError::MessageTooLong);
    for (how, sent, frames) in [
        (Dont, Ok(1_400), 2),
        (Want, Ok(1_400), 2),
        (Do, long, 0),
        (Probe, long, 0),
    ] {
        let client = a.socket(false);
        a.udp
            .set_option(client, crate::SocketOption::MtuDiscovery(how))
            .unwrap();
        assert_eq!(a.send(client, &[1; 1_400], Some("10.0.0.2:9")), sent);
        assert_eq!(a.frames().len(), frames, "{how:?}");
    }
    a.ip.set_link_mtu(1_500);
    let client = a.socket(false);
    a.send(client, &[1; 1_400], Some("10.0.0.2:9")).unwrap();
    assert_eq!(a.frames().len(), 1);
}

#[test]
fn rfc1191_a_path_with_less_mtu() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    let client = a.socket(false);
    a.connect(client, "10.0.0.2:9").unwrap();
    a.send(client, &[1; 1_400], None).unwrap();
    let frames = a.frames();
    assert_eq!(
        (frames.len(), frames[0][6] & 0x40),
        (1, 0x40),
        "not to be fragmented"
    );
    let error = crate::ip::IcmpError {
        error: SocketError::MessageTooLong,
        hard: false,
        mtu: Some(1_000),
        local: address("10.0.0.1:0").ip(),
        peer: address("10.0.0.2:0").ip(),
        protocol: 17,
        transport: [0; 8],
    };
    a.udp.icmp_error(lower!(a), &error);
    assert_eq!(
        a.ip.mtu(a.now, error.peer),
        1_500,
        "nobody sends from port 0"
    );
    let mut transport = [0; 8];
    transport.copy_from_slice(&frames[0][20..28]);
    a.udp
        .icmp_error(lower!(a), &crate::ip::IcmpError { transport, ..error });
    assert_eq!(
        a.send(client, b"x", None),
        Err(SocketError::MessageTooLong),
        "told once"
    );
    a.send(client, &[2; 1_400], None).unwrap();
    assert_eq!(exchange(&mut a, &mut b), 2);
    assert_eq!(b.recv(server).unwrap().0, [2; 1_400]);
}

#[test]
fn rfc1122_4_1_3_3_a_refused_port_is_told_to_the_connected() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    for peer in ["10.0.0.2:9", "[fd00::2]:9"] {
        let connected = a.socket(peer.starts_with('['));
        let other = a.socket(peer.starts_with('['));
        a.connect(connected, peer).unwrap();
        a.send(connected, b"x", None).unwrap();
        a.send(other, b"x", Some(peer)).unwrap();
        exchange(&mut a, &mut b);
        assert!(a.readiness(connected).error);
        assert_eq!(a.recv(connected), Err(SocketError::Refused), "once");
        assert_eq!(a.recv(connected), Err(SocketError::WouldBlock));
        assert!(!a.readiness(other).error);
    }
    assert_eq!(b.counters.udp_no_ports, 4);
}
