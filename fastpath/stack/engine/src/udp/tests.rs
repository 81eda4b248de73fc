//! Sockets of two hosts on one link without link-layer addresses.
use super::{Lower, Udp};
use crate::buffer::Pool;
use crate::config::{Address, Medium, Route, Share, TxOffload};
use crate::frame::RxMeta;
use crate::ip::{Input, Interface};
use crate::wire::flow_hash;
use crate::{
    Config, Counters, HowToShut, Ns, Readiness, RecvFlags, SocketError, SocketId, SocketOption,
};
use proptest::prelude::*;
use std::net::SocketAddr;

struct Host {
    udp: Udp,
    ip: Interface,
    pool: Pool,
    counters: Counters,
    now: Ns,
    slots: u32,
}

fn config(last: u8) -> Config {
    let mut config = Config::new(Medium::Ip, [last; 32]);
    let address = |text: String, prefix_bits| Address {
        address: text.parse().unwrap(),
        prefix_bits,
    };
    config.addresses = vec![
        address(format!("10.0.0.{last}"), 24),
        address(format!("fd00::{last}"), 64),
    ];
    config.routes = vec![Route {
        destination: address("0.0.0.0".into(), 0),
        gateway: "10.0.0.254".parse().unwrap(),
    }];
    config
}

macro_rules! lower {
    ($host:expr) => {
        &mut Lower {
            now: $host.now,
            ip: &mut $host.ip,
            counters: &mut $host.counters,
            pool: &mut $host.pool,
        }
    };
}

impl Host {
    fn with(config: &Config) -> Host {
        Host {
            udp: Udp::new(config),
            ip: Interface::new(config).unwrap(),
            pool: Pool::new(1 << 22),
            counters: Counters::default(),
            now: Ns(1),
            slots: 0,
        }
    }

    fn new(last: u8) -> Host {
        Host::with(&config(last))
    }

    fn socket(&mut self, ipv6: bool) -> u32 {
        self.slots += 1;
        let id = SocketId {
            slot: self.slots,
            generation: 0,
        };
        self.udp.open(id, ipv6)
    }

    fn bound(&mut self, local: &str) -> u32 {
        let socket = self.socket(local.starts_with('['));
        self.bind(socket, local).unwrap();
        socket
    }

    fn bind(&mut self, socket: u32, local: &str) -> Result<(), SocketError> {
        self.udp.bind(lower!(self), socket, address(local))
    }

    fn connect(&mut self, socket: u32, peer: &str) -> Result<(), SocketError> {
        self.udp.connect(lower!(self), socket, Some(address(peer)))
    }

    fn send(
        &mut self,
        socket: u32,
        payload: &[u8],
        peer: Option<&str>,
    ) -> Result<usize, SocketError> {
        self.udp
            .send_to(lower!(self), socket, payload, peer.map(address))
    }

    fn recv(&mut self, socket: u32) -> Result<(Vec<u8>, SocketAddr), SocketError> {
        let mut into = vec![0; 70_000];
        let (len, peer) =
            self.udp
                .recv_from(&mut self.pool, socket, &mut into, RecvFlags::default())?;
        into.truncate(len);
        Ok((into, peer))
    }

    fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut slot = vec![0; 1500];
        let mut frames = Vec::new();
        loop {
            let mut frame = self.ip.transmit(&mut slot, &mut self.counters);
            if frame.is_none() {
                frame = self.udp.transmit(lower!(self), &mut slot);
            }
            let Some(frame) = frame else { return frames };
            frames.push(slot[..frame.len].to_vec());
        }
    }

    fn receive(&mut self, frame: &[u8]) {
        let mut input = self
            .ip
            .receive(self.now, frame, RxMeta::default(), &mut self.counters);
        let whole;
        if let Input::Reassembled(packet) = input {
            whole = packet;
            input = self
                .ip
                .receive_reassembled(self.now, &whole, &mut self.counters);
        }
        match input {
            Input::Udp(packet, datagram) => {
                self.udp.receive(lower!(self), &packet, &datagram);
            }
            Input::Error(error) => self.udp.icmp_error(lower!(self), &error),
            _ => {}
        }
    }

    fn readiness(&self, socket: u32) -> Readiness {
        self.udp.readiness(socket).unwrap()
    }
}

/// All that either has to send, until there is nothing.
fn exchange(a: &mut Host, b: &mut Host) -> usize {
    let mut count = 0;
    loop {
        let (to_b, to_a) = (a.frames(), b.frames());
        if to_a.is_empty() && to_b.is_empty() {
            return count;
        }
        count += to_a.len() + to_b.len();
        to_b.iter().for_each(|frame| b.receive(frame));
        to_a.iter().for_each(|frame| a.receive(frame));
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

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
fn addresses_in_use_as_linux_has_them() {
    let mut a = Host::new(1);
    let in_use = Err(SocketError::AddressInUse);
    a.bound("0.0.0.0:9");
    let other = a.socket(false);
    assert_eq!(a.bind(other, "10.0.0.1:9"), in_use);
    assert_eq!(a.bind(other, "0.0.0.0:9"), in_use);
    let both = a.socket(true);
    assert_eq!(a.bind(both, "[::]:9"), in_use, "of both families");
    assert_eq!(a.bind(both, "[fd00::1]:9"), Ok(()));
    let only = a.socket(true);
    a.udp.set_option(only, SocketOption::V6Only(true)).unwrap();
    assert_eq!(a.bind(only, "[::]:10"), Ok(()));
    assert_eq!(a.bind(other, "0.0.0.0:10"), Ok(()));
    assert_eq!(
        a.bind(other, "0.0.0.0:11"),
        Err(SocketError::Invalid),
        "bound already"
    );
    let third = a.socket(false);
    assert_eq!(
        a.bind(third, "10.0.0.77:1"),
        Err(SocketError::AddressNotAvailable)
    );
    assert_eq!(a.bind(third, "[fd00::1]:1"), Err(SocketError::Family));
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
fn calls_that_fail_as_linux_has_them() {
    let mut a = Host::new(1);
    let socket = a.socket(false);
    assert_eq!(
        a.send(socket, b"x", None),
        Err(SocketError::DestinationRequired)
    );
    assert_eq!(
        a.send(socket, b"x", Some("10.0.0.2:0")),
        Err(SocketError::Invalid)
    );
    assert_eq!(
        a.send(socket, b"x", Some("[fd00::2]:1")),
        Err(SocketError::Family)
    );
    assert_eq!(
        a.send(socket, b"x", Some("255.255.255.255:1")),
        Err(SocketError::Access)
    );
    assert_eq!(a.connect(socket, "10.0.0.255:1"), Err(SocketError::Access));
    let v6 = a.socket(true);
    assert_eq!(
        a.connect(v6, "[2001:db8::1]:1"),
        Err(SocketError::NetworkUnreachable)
    );
    assert_eq!(
        a.udp.shutdown(socket, HowToShut::Both),
        Err(SocketError::NotConnected)
    );
    let no_delay = SocketOption::NoDelay(true);
    assert_eq!(
        a.udp.set_option(socket, no_delay),
        Err(SocketError::NoOption)
    );
    a.connect(socket, "10.0.0.2:1").unwrap();
    a.udp.shutdown(socket, HowToShut::Both).unwrap();
    assert_eq!(a.send(socket, b"x", None), Err(SocketError::BrokenPipe));
    assert_eq!(a.recv(socket).map(|(bytes, _)| bytes), Ok(vec![]));
    let readiness = a.readiness(socket);
    assert!(readiness.readable && readiness.read_hangup && readiness.hangup);
    a.udp.close(socket, &mut a.pool);
    assert_eq!(a.recv(socket), Err(SocketError::BadSocket));
}

#[test]
fn queues_are_bounded_and_counted() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let server = b.bound("0.0.0.0:9");
    b.udp
        .set_option(server, SocketOption::ReceiveBuffer(10_000))
        .unwrap();
    let client = a.socket(false);
    a.udp
        .set_option(client, SocketOption::SendBuffer(50_000))
        .unwrap();
    let mut sent = 0;
    let refused = loop {
        match a.send(client, &[1; 1_000], Some("10.0.0.2:9")) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(
        (refused, sent),
        (SocketError::WouldBlock, 80),
        "1,256 each of 100,000"
    );
    assert!(!a.readiness(client).writable);
    while a.udp.next_changed().is_some() {}
    exchange(&mut a, &mut b);
    assert!(a.readiness(client).writable);
    assert!(a.udp.next_changed().is_some(), "there is room again");
    let mut received = 0;
    while b.recv(server).is_ok() {
        received += 1;
    }
    assert_eq!(received, 20_000 / 1_256);
    assert_eq!(b.counters.udp_rcvbuf_errors, 80 - received);
    assert_eq!(b.counters.udp_in_datagrams, received);
    // Empty datagrams fill a queue, too.
    for _ in 0..1_000 {
        let _ = a.send(client, b"", Some("10.0.0.2:9"));
        exchange(&mut a, &mut b);
    }
    assert_eq!(b.udp.queues(server).unwrap().0, 20_000 / 256 * 256);
    b.udp.close(server, &mut b.pool);
    assert_eq!((a.pool.used_bytes(), b.pool.used_bytes()), (0, 0));
}

#[test]
fn a_full_pool_is_no_buffers_and_counted() {
    let (mut a, mut b) = (Host::new(1), Host::new(2));
    let client = a.socket(false);
    a.pool = Pool::new(8_192);
    assert_eq!(
        a.send(client, &[1; 9_000], Some("10.0.0.2:9")),
        Err(SocketError::NoBuffers)
    );
    assert_eq!((a.pool.used_bytes(), a.counters.udp_sndbuf_errors), (0, 1));
    b.bound("0.0.0.0:9");
    b.pool = Pool::new(4_096);
    for _ in 0..5 {
        a.send(client, &[1; 1_400], Some("10.0.0.2:9")).unwrap();
    }
    exchange(&mut a, &mut b);
    assert_eq!(
        (b.counters.udp_in_datagrams, b.counters.udp_mem_errors),
        (2, 3)
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
        let (len, _) = b
            .udp
            .recv_from(&mut b.pool, server, &mut into, flags)
            .unwrap();
        assert_eq!((len, &into), (8, b"data"));
    }
    assert_eq!(b.udp.unread_bytes(server), Ok(0));
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
fn rfc6056_ports_are_not_in_a_row_and_come_to_their_engine() {
    let mut a = Host::new(1);
    let mut ports = Vec::new();
    for _ in 0..100 {
        let socket = a.socket(false);
        a.connect(socket, "10.0.0.2:9").unwrap();
        ports.push(a.udp.local_address(socket).unwrap().port());
    }
    let in_a_row = ports
        .windows(2)
        .filter(|p| p[0].abs_diff(p[1]) < 10)
        .count();
    assert!(in_a_row < 5, "{ports:?}");
    let mut second = config(1);
    second.share = Share { index: 1, of: 2 };
    let mut a = Host::with(&second);
    for _ in 0..100 {
        let socket = a.socket(false);
        a.connect(socket, "10.0.0.2:9").unwrap();
        let local = a.udp.local_address(socket).unwrap();
        assert_eq!(flow_hash(address("10.0.0.2:9"), local) % 2, 1);
    }
}

#[test]
fn ports_that_are_all_taken() {
    let mut few = config(1);
    few.ephemeral_ports = (40_000, 40_003);
    let mut a = Host::with(&few);
    for _ in 0..4 {
        let socket = a.socket(false);
        a.send(socket, b"x", Some("10.0.0.2:9")).unwrap();
    }
    let socket = a.socket(false);
    assert_eq!(
        a.send(socket, b"x", Some("10.0.0.2:9")),
        Err(SocketError::WouldBlock)
    );
    assert_eq!(a.bind(socket, "0.0.0.0:0"), Err(SocketError::AddressInUse));
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
