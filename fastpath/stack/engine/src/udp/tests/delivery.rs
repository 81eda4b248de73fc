//! Which socket a datagram comes to, and what it finds there.
use super::support::*;
use crate::{RecvFlags, SocketError, SocketOption};

#[test]
fn rfc768_there_and_back_in_both_families() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    for (local, wildcard) in [("10.0.0.2:7", "0.0.0.0:7"), ("[fd00::2]:8", "[::]:8")] {
        let server = b.bound(wildcard);
        let client = a.socket(local.starts_with('['));
        for len in [0, 1, 1_000] {
            let payload = vec![len as u8; len];
            assert_eq!(a.send(client, &payload, Some(local)), Ok(len));
            exchange(&mut a, &mut b);
            assert!(b.readiness(server).readable);
            let (received, peer) = b.recv(server).unwrap();
            assert_eq!(received, payload);
            assert_eq!(peer.port(), a.udp.local_address(client).unwrap().port());
            b.send(server, b"answer", Some(&peer.to_string())).unwrap();
            exchange(&mut a, &mut b);
            assert_eq!(a.recv(client), Ok((b"answer".to_vec(), address(local))));
        }
        assert_eq!(b.recv(server), Err(SocketError::WouldBlock));
    }
    assert_eq!((a.pool.used_bytes(), b.pool.used_bytes()), (0, 0));
    assert_eq!(
        a.counters.udp_in_csum_errors + b.counters.udp_in_csum_errors,
        0
    );
}

#[test]
fn rfc1122_4_1_3_5_the_closest_socket() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let any = b.socket(false);
    let near = b.socket(false);
    let connected = b.socket(false);
    for socket in [any, near, connected] {
        b.udp
            .set_option(socket, SocketOption::ReuseAddress(true))
            .unwrap();
    }
    b.bind(any, "0.0.0.0:9").unwrap();
    b.bind(near, "10.0.0.2:9").unwrap();
    b.bind(connected, "10.0.0.2:9").unwrap();
    b.connect(connected, "10.0.0.1:1000").unwrap();
    let clients = [a.bound("10.0.0.1:1000"), a.bound("10.0.0.1:1001")];
    for client in clients {
        a.send(client, b"x", Some("10.0.0.2:9")).unwrap();
    }
    exchange(&mut a, &mut b);
    assert_eq!(b.recv(connected).unwrap().1, address("10.0.0.1:1000"));
    assert_eq!(b.recv(near).unwrap().1, address("10.0.0.1:1001"));
    // After the nearer ones are gone.
    b.udp.close(connected, &mut b.pool);
    b.udp.close(near, &mut b.pool);
    a.send(clients[0], b"y", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(b.recv(any).unwrap().0, b"y");
}

#[test]
fn so_reuseport_shares_by_hash() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let servers: Vec<u32> = (0..4).map(|_| b.socket(false)).collect();
    for server in &servers {
        b.udp
            .set_option(*server, SocketOption::ReusePort(true))
            .unwrap();
        b.bind(*server, "0.0.0.0:9").unwrap();
    }
    for _ in 0..200 {
        let client = a.socket(false);
        a.send(client, b"x", Some("10.0.0.2:9")).unwrap();
        a.send(client, b"y", Some("10.0.0.2:9")).unwrap();
    }
    exchange(&mut a, &mut b);
    let mut total = 0;
    for server in servers {
        let mut count = 0;
        while let Ok((_, peer)) = b.recv(server) {
            // One client's are together.
            assert_eq!(b.recv(server).unwrap().1, peer);
            count += 1;
        }
        assert!((20..80).contains(&count), "{count}");
        total += count;
    }
    assert_eq!(total, 200);
}

#[test]
fn an_ipv6_socket_of_both_families() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("[::]:9");
    let client = a.bound("10.0.0.1:1000");
    a.send(client, b"x", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    let (_, peer) = b.recv(server).unwrap();
    assert_eq!(peer, address("[::ffff:10.0.0.1]:1000"));
    b.send(server, b"y", Some("[::ffff:10.0.0.1]:1000"))
        .unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(
        a.recv(client).unwrap(),
        (b"y".to_vec(), address("10.0.0.2:9"))
    );
    assert_eq!(b.connect(server, "[::ffff:10.0.0.1]:1000"), Ok(()));
    assert_eq!(
        b.udp.local_address(server),
        Ok(address("[::ffff:10.0.0.2]:9"))
    );
    assert_eq!(
        b.udp.peer_address(server),
        Ok(address("[::ffff:10.0.0.1]:1000"))
    );
    let only = a.socket(true);
    a.udp.set_option(only, SocketOption::V6Only(true)).unwrap();
    assert_eq!(
        a.send(only, b"x", Some("[::ffff:10.0.0.2]:9")),
        Err(SocketError::Invalid)
    );
}

#[test]
fn connected_sockets_hear_their_peer_alone() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    b.connect(server, "10.0.0.1:1000").unwrap();
    let (peer, other) = (a.bound("10.0.0.1:1000"), a.bound("10.0.0.1:1001"));
    a.send(peer, b"x", Some("10.0.0.2:9")).unwrap();
    a.send(other, b"y", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(b.recv(server).unwrap().0, b"x");
    assert_eq!(b.recv(server), Err(SocketError::WouldBlock));
    assert_eq!(b.counters.udp_no_ports, 1);
    // Disconnected, it keeps its port, and hears all.
    b.udp.connect(lower!(b), server, None).unwrap();
    assert_eq!(b.udp.local_address(server), Ok(address("0.0.0.0:9")));
    assert_eq!(b.udp.peer_address(server), Err(SocketError::NotConnected));
    a.send(other, b"z", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(b.recv(server).unwrap().0, b"z");
    // One that never was bound loses its port.
    let client = a.socket(false);
    a.connect(client, "10.0.0.2:9").unwrap();
    assert_eq!(
        a.udp.local_address(client).unwrap().ip(),
        address("10.0.0.1:0").ip()
    );
    a.udp.connect(lower!(a), client, None).unwrap();
    assert_eq!(a.udp.local_address(client), Ok(address("0.0.0.0:0")));
}

#[test]
fn peeking_and_truncating() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    let client = a.socket(false);
    a.send(client, b"datagram", Some("10.0.0.2:9")).unwrap();
    exchange(&mut a, &mut b);
    assert_eq!(b.udp.unread_bytes(server), Ok(8));
    let mut into = [0; 4];
    let peek = RecvFlags {
        peek: true,
        truncate: false,
    };
    for flags in [peek, RecvFlags::default()] {
        let inbound = b.inbound(server, &mut into, flags).unwrap();
        assert_eq!((inbound.len, &into), (8, b"data"));
    }
    assert_eq!(b.udp.unread_bytes(server), Ok(0));
}

#[test]
fn a_broadcast_comes_to_all_sockets_of_the_port() {
    let mut b = Host::new(2);
    let sockets: Vec<u32> = (0..3).map(|_| b.socket(false)).collect();
    for socket in &sockets {
        b.udp
            .set_option(*socket, SocketOption::ReuseAddress(true))
            .unwrap();
        b.bind(*socket, "0.0.0.0:9").unwrap();
    }
    let mut a = Host::new(1);
    let client = a.socket(false);
    a.send(client, b"x", Some("10.0.0.2:9")).unwrap();
    let mut frame = a.frames().remove(0);
    // To all: the sums change by the addresses' difference.
    frame[16..20].copy_from_slice(&[255, 255, 255, 255]);
    frame[10..12].fill(0);
    frame[26..28].fill(0);
    let field = crate::wire::checksum::Sum::of(&frame[..20])
        .field()
        .to_be_bytes();
    frame[10..12].copy_from_slice(&field);
    b.receive(&frame);
    for socket in sockets {
        assert_eq!(b.recv(socket).unwrap().0, b"x");
    }
    frame[22..24].copy_from_slice(&10u16.to_be_bytes());
    b.receive(&frame);
    assert_eq!(b.counters.udp_no_ports, 1);
    assert!(b.frames().is_empty(), "RFC 1122, 3.2.2: no error about it");
}
