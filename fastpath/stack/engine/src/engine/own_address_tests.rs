//! Sockets of one engine that talk to each other at its own addresses: nothing leaves it.
use crate::config::{Address, Medium, TxOffload};
use crate::{
    Config, Engine, HowToShut, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind,
};
use std::net::{IpAddr, SocketAddr};

const V4: &str = "10.0.0.1";
const V6: &str = "fd00::1";
const BYTES: usize = 3_000_000;

struct Host {
    now: Ns,
    engine: Engine,
    slot: Vec<u8>,
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().unwrap(), port)
}

impl Host {
    fn new(medium: Medium, offload: bool) -> Host {
        Host::with_ports(medium, offload, (32_768, 60_999))
    }

    fn with_ports(medium: Medium, offload: bool, ephemeral_ports: (u16, u16)) -> Host {
        let mut config = Config::new(medium, [1; 32]);
        let address = |address: &str, prefix_bits| Address {
            address: address.parse::<IpAddr>().unwrap(),
            prefix_bits,
        };
        config.addresses = vec![address(V4, 24), address(V6, 64)];
        config.ephemeral_ports = ephemeral_ports;
        config.offload = TxOffload {
            checksum: offload,
            segmentation_v4: offload,
            segmentation_v6: offload,
        };
        Host {
            now: Ns::from_ms(5_000),
            engine: Engine::new(config).unwrap(),
            slot: vec![0; 66_000],
        }
    }

    /// As its owners do; no frame is for the device.
    fn settle(&mut self) {
        loop {
            let frame = self.engine.transmit(self.now, &mut self.slot);
            assert_eq!(frame, None);
            if self.engine.poll_at().is_none_or(|at| at > self.now) {
                return;
            }
            self.engine.advance(self.now);
        }
    }

    fn listen(&mut self, address: &str, port: u16) -> SocketId {
        let address = at(address, port);
        let id = self
            .engine
            .socket(SocketKind::Tcp, address.is_ipv6())
            .unwrap();
        self.engine.bind(id, address).unwrap();
        self.engine.listen(id, 8).unwrap();
        id
    }

    fn connect(&mut self, address: &str, port: u16) -> SocketId {
        let peer = at(address, port);
        let id = self.engine.socket(SocketKind::Tcp, peer.is_ipv6()).unwrap();
        let begun = self.engine.connect(self.now, id, Some(peer));
        assert_eq!(begun, Err(SocketError::InProgress));
        self.settle();
        id
    }

    /// A stream, and its end.
    fn stream(&mut self, from: SocketId, to: SocketId) {
        let data: Vec<u8> = (0..BYTES).map(|i| (i * 7 + i / 251) as u8).collect();
        let (mut sent, mut got) = (0, Vec::new());
        let mut buffer = vec![0; 100_000];
        while got.len() < data.len() {
            let before = (sent, got.len());
            let flags = SendFlags::default();
            match self.engine.send(self.now, from, &data[sent..], flags) {
                Ok(taken) => sent += taken,
                Err(error) => assert_eq!(error, SocketError::WouldBlock),
            }
            self.settle();
            let flags = RecvFlags::default();
            while let Ok(count) = self.engine.recv(self.now, to, &mut buffer, flags) {
                got.extend_from_slice(&buffer[..count]);
            }
            self.settle();
            if before == (sent, got.len()) {
                // A window that was shut may open by a delayed acknowledgement.
                self.now = self
                    .engine
                    .poll_at()
                    .expect("it stands still")
                    .max(self.now);
                self.engine.advance(self.now);
            }
        }
        assert!(got == data);
        let now = self.now;
        self.engine.shutdown(now, from, HowToShut::Write).unwrap();
        self.settle();
        let flags = RecvFlags::default();
        let end = self.engine.recv(self.now, to, &mut buffer, flags);
        assert_eq!(end, Ok(0));
    }
}

#[test]
fn streams_both_ways() {
    let ethernet = Medium::Ethernet {
        mac: [2, 0, 0, 0, 0, 1],
    };
    for (medium, offload) in [(ethernet, false), (ethernet, true), (Medium::Ip, true)] {
        for address in [V4, V6] {
            let mut host = Host::new(medium, offload);
            let listener = host.listen(address, 80);
            let client = host.connect(address, 80);
            let (server, peer) = host.engine.accept(listener).unwrap();
            assert_eq!(peer.ip(), at(address, 0).ip());
            host.stream(client, server);
            host.stream(server, client);
            for id in [client, server, listener] {
                host.engine.close(host.now, id).unwrap();
            }
            host.settle();
            host.now = host.now + Ns::from_ms(61_000);
            host.settle();
            assert_eq!(host.engine.connections(host.now).count(), 0);
            assert_eq!(host.engine.memory_bytes().0, 0);
            assert_eq!(host.engine.counters().tcp_retrans_segs, 0);
        }
    }
}

#[test]
fn many_at_once() {
    let mut host = Host::new(Medium::Ip, true);
    let listener = host.listen(V4, 80);
    let mut pairs = Vec::new();
    for _ in 0..100 {
        let client = host.connect(V4, 80);
        let (server, _) = host.engine.accept(listener).unwrap();
        pairs.push((client, server));
    }
    let data = [7; 200_000];
    let mut buffer = [0; 200_000];
    for _ in 0..3 {
        let mut sent = vec![0; pairs.len()];
        let mut got = 0;
        for _ in 0..1_000 {
            for (sent, (client, _)) in sent.iter_mut().zip(&pairs) {
                let flags = SendFlags::default();
                let rest = &data[*sent..];
                *sent += self::taken(host.engine.send(host.now, *client, rest, flags));
            }
            host.settle();
            for (_, server) in &pairs {
                let flags = RecvFlags::default();
                got += self::taken(host.engine.recv(host.now, *server, &mut buffer, flags));
            }
            host.now = host.now + Ns::from_us(10);
        }
        assert_eq!(got, pairs.len() * data.len());
    }
    assert_eq!(host.engine.counters().tcp_retrans_segs, 0);
}

fn taken(done: Result<usize, SocketError>) -> usize {
    done.or_else(|error| match error {
        SocketError::WouldBlock => Ok(0),
        error => Err(error),
    })
    .unwrap()
}

#[test]
fn datagrams_whole_and_in_fragments() {
    let mut host = Host::new(Medium::Ip, true);
    for address in [V4, V6] {
        let local = at(address, 7);
        let server = host
            .engine
            .socket(SocketKind::Udp, local.is_ipv6())
            .unwrap();
        host.engine.bind(server, local).unwrap();
        let client = host
            .engine
            .socket(SocketKind::Udp, local.is_ipv6())
            .unwrap();
        for bytes in [0, 100, 40_000] {
            let data: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            let sent = host.engine.send_to(host.now, client, &data, Some(local));
            assert_eq!(sent, Ok(bytes));
            host.settle();
            let mut into = vec![0; 50_000];
            let flags = RecvFlags::default();
            let came = host.engine.recv_datagram(server, &mut into, flags).unwrap();
            assert!(came.len == bytes && into[..bytes] == data);
        }
    }
}

/// As by a host without a socket at that port.
#[test]
fn nobody_is_there() {
    let mut host = Host::new(Medium::Ip, true);
    for address in [V4, V6] {
        let client = host.connect(address, 9);
        let peer = at(address, 9);
        let again = host.engine.connect(host.now, client, Some(peer));
        assert_eq!(again, Err(SocketError::Refused));
        let udp = host.engine.socket(SocketKind::Udp, peer.is_ipv6()).unwrap();
        host.engine.connect(host.now, udp, Some(peer)).unwrap();
        // However often, as Linux on loopback.
        for _ in 0..100 {
            host.engine.send_to(host.now, udp, b"x", None).unwrap();
            host.settle();
            let sent = host.engine.send_to(host.now, udp, b"x", None);
            assert_eq!(sent, Err(SocketError::Refused));
        }
    }
}

/// A port of its own that is the peer's as well would make it its own peer.
#[test]
fn is_not_connected_to_itself() {
    let mut host = Host::with_ports(Medium::Ip, true, (40_000, 40_003));
    for _ in 0..20 {
        for port in 40_000..=40_003 {
            let client = host.connect(V4, port);
            let again = host.engine.connect(host.now, client, Some(at(V4, port)));
            assert_eq!(again, Err(SocketError::Refused));
            host.engine.close(host.now, client).unwrap();
        }
    }
}

/// RFC 1122, 3.2.1.3; RFC 4291, 2.5.3.
#[test]
fn loopback_stays_here() {
    let mut host = Host::new(Medium::Ip, true);
    for (loopback, elsewhere) in [("127.0.0.1", "10.0.0.9"), ("::1", "fd00::9")] {
        let listener = host.listen(loopback, 80);
        let client = host.connect(loopback, 80);
        let (_, peer) = host.engine.accept(listener).unwrap();
        assert_eq!(peer, host.engine.local_address(client).unwrap());
        assert_eq!(peer.ip(), at(loopback, 0).ip());
        for kind in [SocketKind::Tcp, SocketKind::Udp] {
            let bound = host.engine.socket(kind, peer.is_ipv6()).unwrap();
            host.engine.bind(bound, at(loopback, 0)).unwrap();
            let peer = Some(at(elsewhere, 9));
            let begun = host.engine.connect(host.now, bound, peer);
            assert_eq!(begun, Err(SocketError::Invalid));
            if kind == SocketKind::Udp {
                let sent = host.engine.send_to(host.now, bound, b"x", peer);
                assert_eq!(sent, Err(SocketError::Invalid));
            }
        }
        host.settle();
    }
}
