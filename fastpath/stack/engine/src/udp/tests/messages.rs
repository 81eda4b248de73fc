//! What sendmsg, recvmsg and shutdown have beyond sendto and recvfrom, and in which order calls fail.
use super::support::*;
use crate::{HowToShut, MtuDiscovery, Outbound, RecvFlags, SocketError, SocketOption};

#[test]
fn a_datagram_has_its_own_source_hops_and_class() {
    let mut two = config(1);
    two.addresses.push(crate::config::Address {
        address: "10.0.0.9".parse().unwrap(),
        prefix_bits: 24,
    });
    let (mut a, mut b) = (Host::with(&two), Host::new(2));
    let server = b.bound("[::]:9");
    let client = a.socket(false);
    let outbound = Outbound {
        peer: Some(address("10.0.0.2:9")),
        source: Some("10.0.0.9".parse().unwrap()),
        hop_limit: Some(3),
        traffic_class: Some(0xb8),
    };
    a.udp.send_to(lower!(a), client, b"x", &outbound).unwrap();
    a.send(client, b"y", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    let mut into = [0; 9];
    let first = b.inbound(server, &mut into, RecvFlags::default()).unwrap();
    assert_eq!(first.peer.ip(), address("[::ffff:10.0.0.9]:0").ip());
    assert_eq!(first.to, address("[::ffff:10.0.0.2]:0").ip());
    assert_eq!((first.hop_limit, first.traffic_class), (3, 0xb8));
    let second = b.inbound(server, &mut into, RecvFlags::default()).unwrap();
    assert_eq!(second.peer.ip(), address("[::ffff:10.0.0.1]:0").ip());
    assert_eq!((second.hop_limit, second.traffic_class), (64, 0));
    // Of others nobody says what comes from us.
    let foreign = [
        ("10.0.0.7", SocketError::NetworkUnreachable),
        ("fd00::1", SocketError::Invalid),
    ];
    for (source, error) in foreign {
        let outbound = Outbound {
            source: Some(source.parse().unwrap()),
            ..outbound
        };
        let sent = a.udp.send_to(lower!(a), client, b"x", &outbound);
        assert_eq!(sent, Err(error), "{source}");
    }
}

#[test]
fn errors_of_the_socket_come_behind_those_of_the_call() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let client = a.socket(false);
    a.connect(client, "10.0.0.2:9").unwrap();
    a.send(client, b"x", None).unwrap();
    exchange(&mut a, &mut b);
    assert!(a.readiness(client).error);
    let invalid = Err(SocketError::Invalid);
    assert_eq!(a.send(client, b"x", Some("10.0.0.2:0")), invalid);
    let long = Err(SocketError::MessageTooLong);
    assert_eq!(a.send(client, &[0; 65_508], None), long);
    // Nor does a disconnect forget it (__udp_disconnect).
    a.udp.connect(lower!(a), client, None).unwrap();
    let refused = Err(SocketError::Refused);
    assert_eq!(a.send(client, b"x", Some("10.0.0.2:9")), refused);
    assert_eq!(a.send(client, b"x", Some("10.0.0.2:9")), Ok(1));
}

#[test]
fn a_send_that_fails_has_taken_a_port() {
    let mut a = Host::new(1);
    let client = a.socket(false);
    assert_eq!(
        a.send(client, b"x", None),
        Err(SocketError::DestinationRequired)
    );
    assert_ne!(a.udp.local_address(client).unwrap().port(), 0);
    // Which error comes first is not the same in both families.
    let bytes = [0; 70_000];
    let long = Err(SocketError::MessageTooLong);
    assert_eq!(a.send(client, &bytes, None), long);
    let v6 = a.socket(true);
    let nowhere = Err(SocketError::DestinationRequired);
    assert_eq!(a.send(v6, &bytes, None), nowhere);
}

#[test]
fn a_port_that_others_chose_is_given_up_by_a_disconnect() {
    let mut a = Host::new(1);
    let client = a.socket(false);
    assert_eq!(a.udp.take_port(client, 0), Err(SocketError::Invalid));
    assert_eq!(a.udp.take_port(client, 40_000), Ok(()));
    assert_eq!(a.udp.take_port(client, 40_001), Err(SocketError::Invalid));
    let other = a.socket(false);
    let in_use = Err(SocketError::AddressInUse);
    assert_eq!(a.udp.take_port(other, 40_000), in_use);
    a.connect(client, "10.0.0.2:9").unwrap();
    assert_eq!(a.udp.local_address(client), Ok(address("10.0.0.1:40000")));
    a.udp.connect(lower!(a), client, None).unwrap();
    assert_eq!(a.udp.local_address(client), Ok(address("0.0.0.0:0")));
    assert_eq!(a.udp.take_port(other, 40_000), Ok(()));
}

#[test]
fn a_shutdown_without_a_peer_fails_and_counts() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    let not_connected = Err(SocketError::NotConnected);
    assert_eq!(b.udp.shutdown(server, HowToShut::Read), not_connected);
    let readiness = b.readiness(server);
    assert!(readiness.readable && readiness.read_hangup && !readiness.hangup);
    assert_eq!(b.recv(server), Err(SocketError::WouldBlock));
    // Linux goes on to queue what comes.
    let client = a.socket(false);
    a.send(client, b"x", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(b.recv(server).unwrap().0, b"x");
    assert_eq!(b.udp.shutdown(server, HowToShut::Write), not_connected);
    assert!(b.readiness(server).hangup);
    assert_eq!(
        b.send(server, b"x", Some("10.0.0.1:9")),
        Err(SocketError::BrokenPipe)
    );
}

#[test]
fn rfc1191_what_becomes_of_more_than_an_mtu() {
    let mut a = Host::new(1);
    let client = a.socket(false);
    a.connect(client, "10.0.0.2:9").unwrap();
    assert_eq!(a.udp.path_mtu(lower!(a), client), Ok(1_500));
    let discovery = SocketOption::MtuDiscovery;
    // DF, frames: of what fits, and of what does not.
    for (how, df, frames) in [
        (MtuDiscovery::Want, true, Ok(2)),
        (MtuDiscovery::Dont, false, Ok(2)),
        (MtuDiscovery::Do, true, Err(SocketError::MessageTooLong)),
        (MtuDiscovery::Probe, true, Err(SocketError::MessageTooLong)),
    ] {
        a.udp.set_option(client, discovery(how)).unwrap();
        a.send(client, &[0; 1_472], None).unwrap();
        let sent = a.frames();
        assert_eq!(sent.len(), 1);
        assert_eq!(sent[0][6] & 0x40 != 0, df, "{how:?}");
        let more = a.send(client, &[0; 1_473], None);
        let more = more.map(|_| a.frames().len());
        assert_eq!(more, frames, "{how:?}");
    }
    // The path's is less than the link's: a probe goes out whole.
    let error = crate::ip::IcmpError {
        error: SocketError::MessageTooLong,
        hard: false,
        mtu: Some(1_000),
        local: address("10.0.0.1:0").ip(),
        peer: address("10.0.0.2:0").ip(),
        protocol: 17,
        transport: [0; 8],
    };
    a.ip.lower_mtu(a.now, &error);
    assert_eq!(a.udp.path_mtu(lower!(a), client), Ok(1_000));
    a.send(client, &[0; 1_472], None).unwrap();
    assert_eq!(a.frames().len(), 1);
    a.udp
        .set_option(client, discovery(MtuDiscovery::Do))
        .unwrap();
    let long = Err(SocketError::MessageTooLong);
    assert_eq!(a.send(client, &[0; 973], None), long);
    assert_eq!(a.send(client, &[0; 972], None), Ok(972));
    let unconnected = a.socket(false);
    let not_connected = Err(SocketError::NotConnected);
    assert_eq!(a.udp.path_mtu(lower!(a), unconnected), not_connected);
    for (how, longest) in [
        (MtuDiscovery::Want, 65_507),
        (MtuDiscovery::Do, 972),
        (MtuDiscovery::Probe, 1_472),
    ] {
        a.udp.set_option(unconnected, discovery(how)).unwrap();
        let peer = address("10.0.0.2:0").ip();
        let lower = lower!(a);
        let told = a.udp.longest_payload(lower, unconnected, peer);
        assert_eq!(told, Ok(longest), "{how:?}");
    }
}

#[test]
fn connected_to_port_0_is_connected_to_a_host() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let client = a.bound("0.0.0.0:9");
    assert_eq!(a.connect(client, "10.0.0.2:0"), Ok(()));
    assert_eq!(a.udp.local_address(client), Ok(address("10.0.0.1:9")));
    let peer = b.bound("0.0.0.0:1000");
    b.send(peer, b"x", Some("10.0.0.1:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(a.recv(client).unwrap().1, address("10.0.0.2:1000"));
    // Another socket that is connected to that port is nearer.
    let nearer = a.socket(false);
    for socket in [client, nearer] {
        a.udp
            .set_option(socket, SocketOption::ReuseAddress(true))
            .unwrap();
    }
    a.bind(nearer, "10.0.0.1:9").unwrap();
    a.connect(nearer, "10.0.0.2:1000").unwrap();
    b.send(peer, b"y", Some("10.0.0.1:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(a.recv(nearer).unwrap().0, b"y");
    assert_eq!(a.recv(client), Err(SocketError::WouldBlock));
    a.udp.close(client, &mut a.pool);
    a.udp.close(nearer, &mut a.pool);
    b.send(peer, b"z", Some("10.0.0.1:9")).unwrap();
    assert_eq!(exchange(&mut a, &mut b), 2, "refused");
}
