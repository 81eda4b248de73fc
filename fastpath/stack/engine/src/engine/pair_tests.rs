//! Two engines and a wire without loss, in virtual time.
use crate::config::{Address, Medium, Share, TxOffload};
use crate::frame::RxMeta;
use crate::{
    Config, Engine, HowToShut, Linger, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind,
    SocketOption, TcpState,
};
use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};

struct Pair {
    now: Ns,
    client: Engine,
    server: Engine,
    slot: Vec<u8>,
    frames: usize,
    longest: usize,
}

fn config(host: u8, medium: Medium) -> Config {
    let mut config = Config::new(medium, [host; 32]);
    config.addresses = vec![Address {
        address: Ipv4Addr::new(10, 0, 0, host).into(),
        prefix_bits: 24,
    }];
    config
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 0, 0, host).into(), port)
}

impl Pair {
    fn new(client: Config, server: Config) -> Pair {
        Pair {
            now: Ns::from_ms(5_000),
            client: Engine::new(client).unwrap(),
            server: Engine::new(server).unwrap(),
            slot: vec![0; 66_000],
            frames: 0,
            longest: 0,
        }
    }

    fn of_ip() -> Pair {
        Pair::new(config(2, Medium::Ip), config(1, Medium::Ip))
    }

    fn exchange(&mut self) {
        loop {
            let before = self.frames;
            for to_server in [true, false] {
                let (from, to) = if to_server {
                    (&mut self.client, &mut self.server)
                } else {
                    (&mut self.server, &mut self.client)
                };
                while let Some(frame) = from.transmit(self.now, &mut self.slot) {
                    let meta = RxMeta {
                        checksum: match frame.checksum {
                            Some(_) => crate::frame::RxChecksum::Good,
                            None => crate::frame::RxChecksum::Unknown,
                        },
                        segment_bytes: frame.segmentation.map_or(0, |s| s.segment_bytes),
                        for_all: false,
                    };
                    to.receive(self.now, &self.slot[..frame.len], meta);
                    self.frames += 1;
                    self.longest = self.longest.max(frame.len);
                }
            }
            if before == self.frames {
                return;
            }
        }
    }

    fn run_ms(&mut self, ms: u64) {
        self.now = self.now + Ns::from_ms(ms);
        self.client.advance(self.now);
        self.server.advance(self.now);
        self.exchange();
    }

    fn connect(&mut self, port: u16) -> SocketId {
        let id = self.client.socket(SocketKind::Tcp, false).unwrap();
        let begun = self.client.connect(self.now, id, Some(address(1, port)));
        assert_eq!(begun, Err(SocketError::InProgress));
        self.exchange();
        id
    }
}

fn listen(engine: &mut Engine, port: u16, reuse_port: bool) -> SocketId {
    let id = engine.socket(SocketKind::Tcp, false).unwrap();
    let option = SocketOption::ReusePort(reuse_port);
    engine.set_option(Ns(0), id, option).unwrap();
    engine.bind(id, address(1, port)).unwrap();
    engine.listen(id, 128).unwrap();
    id
}

fn state(engine: &Engine, now: Ns, id: SocketId) -> TcpState {
    engine.tcp_info(now, id).unwrap().state
}

/// The stream that `from` sends arrives at `to`, and ends.
fn stream(pair: &mut Pair, client: SocketId, server: SocketId, bytes: usize) {
    let data: Vec<u8> = (0..bytes).map(|i| (i * 7 + i / 251) as u8).collect();
    let (mut sent, mut got) = (0, Vec::new());
    let mut buffer = vec![0; 100_000];
    for _ in 0..100_000 {
        while sent < data.len() {
            let flags = SendFlags::default();
            match pair.client.send(pair.now, client, &data[sent..], flags) {
                Ok(taken) => sent += taken,
                Err(error) => {
                    assert_eq!(error, SocketError::WouldBlock);
                    break;
                }
            }
        }
        pair.exchange();
        let flags = RecvFlags::default();
        while let Ok(count) = pair.server.recv(pair.now, server, &mut buffer, flags) {
            got.extend_from_slice(&buffer[..count]);
        }
        pair.exchange();
        if got.len() == data.len() {
            break;
        }
        pair.run_ms(1);
    }
    assert!(got == data, "{} of {} bytes", got.len(), data.len());
}

#[test]
fn handshake_data_and_close_over_ethernet() {
    let mac = |host| Medium::Ethernet {
        mac: [2, 0, 0, 0, 0, host],
    };
    let mut pair = Pair::new(config(2, mac(2)), config(1, mac(1)));
    let listener = listen(&mut pair.server, 80, false);
    let client = pair.connect(80);
    let (server, _) = pair.server.accept(listener).unwrap();
    stream(&mut pair, client, server, 1_000_000);
    pair.client
        .shutdown(pair.now, client, HowToShut::Write)
        .unwrap();
    pair.exchange();
    let mut byte = [0];
    let flags = RecvFlags::default();
    assert_eq!(pair.server.recv(pair.now, server, &mut byte, flags), Ok(0));
    pair.server.close(pair.now, server).unwrap();
    pair.exchange();
    pair.client.close(pair.now, client).unwrap();
    pair.run_ms(61_000);
    assert_eq!(pair.client.connections(pair.now).count(), 0);
    assert_eq!(pair.server.connections(pair.now).count(), 1, "the listener");
    assert_eq!(
        (pair.client.memory_bytes().0, pair.server.memory_bytes().0),
        (0, 0)
    );
    assert_eq!(pair.client.counters().tcp_curr_estab, 0);
    assert_eq!(pair.server.counters().tcp_curr_estab, 0);
}

/// Frames of 64 KiB, cut by the device, here by nobody.
#[test]
fn segments_are_as_large_as_the_device_can_cut() {
    let offload = TxOffload {
        checksum: true,
        segmentation_v4: true,
        segmentation_v6: true,
    };
    let with = |host| Config {
        offload,
        ..config(host, Medium::Ip)
    };
    let mut pair = Pair::new(with(2), with(1));
    let listener = listen(&mut pair.server, 80, false);
    let client = pair.connect(80);
    let (server, _) = pair.server.accept(listener).unwrap();
    stream(&mut pair, client, server, 8_000_000);
    assert!(pair.longest > 60_000, "{}", pair.longest);
    assert!(pair.frames < 2_000, "{} frames", pair.frames);
}

/// The same peer's connections go to the same socket; others to all of the group.
#[test]
fn reuse_port_spreads_connections() {
    let mut pair = Pair::of_ip();
    let listeners: Vec<SocketId> = (0..4).map(|_| listen(&mut pair.server, 80, true)).collect();
    for _ in 0..200 {
        pair.connect(80);
    }
    for listener in listeners {
        let mut accepted = 0;
        while pair.server.accept(listener).is_ok() {
            accepted += 1;
        }
        assert!((25..=80).contains(&accepted), "{accepted}");
    }
}

#[test]
fn a_port_is_one_sockets() {
    let mut pair = Pair::of_ip();
    listen(&mut pair.server, 80, false);
    let other = pair.server.socket(SocketKind::Tcp, false).unwrap();
    let bound = pair.server.bind(other, address(1, 80));
    assert_eq!(bound, Err(SocketError::AddressInUse));
    let foreign = pair.server.bind(other, address(9, 81));
    assert_eq!(foreign, Err(SocketError::AddressNotAvailable));
}

/// RFC 6191: connect takes a TIME-WAIT's tuple when there is no other, a second after its last segment.
#[test]
fn rfc6191_connect_reuses_time_wait() {
    let mut client = config(2, Medium::Ip);
    client.ephemeral_ports = (40_000, 40_000);
    let mut pair = Pair::new(client, config(1, Medium::Ip));
    let listener = listen(&mut pair.server, 80, false);
    let first = pair.connect(80);
    let (server, _) = pair.server.accept(listener).unwrap();
    pair.client.close(pair.now, first).unwrap();
    pair.exchange();
    pair.server.close(pair.now, server).unwrap();
    pair.exchange();
    let id = pair.client.socket(SocketKind::Tcp, false).unwrap();
    let early = pair.client.connect(pair.now, id, Some(address(1, 80)));
    assert_eq!(early, Err(SocketError::AddressNotAvailable));
    pair.run_ms(1_100);
    let second = pair.connect(80);
    assert_eq!(state(&pair.client, pair.now, second), TcpState::Established);
    assert_eq!(pair.client.counters().time_wait_recycled, 1);
}

/// Whoever shares the device gets what belongs to it, because the port was chosen so.
#[test]
fn shares_choose_ports_that_come_back_to_them() {
    for index in 0..3 {
        let mut client = config(2, Medium::Ip);
        client.share = Share {
            index,
            of: 3,
            ..Share::ALONE
        };
        let mut pair = Pair::new(client, config(1, Medium::Ip));
        listen(&mut pair.server, 80, false);
        for _ in 0..20 {
            let id = pair.connect(80);
            assert_eq!(state(&pair.client, pair.now, id), TcpState::Established);
        }
        assert_eq!(pair.client.counters().connections_of_other_engines, 0);
    }
}

#[test]
fn refused_keeps_the_binding_and_tells_once() {
    let mut pair = Pair::of_ip();
    let id = pair.client.socket(SocketKind::Tcp, false).unwrap();
    pair.client.bind(id, address(2, 5_000)).unwrap();
    let to = Some(address(1, 80));
    assert_eq!(
        pair.client.connect(pair.now, id, to),
        Err(SocketError::InProgress)
    );
    pair.exchange();
    let ready = pair.client.readiness(id).unwrap();
    assert!(ready.error && ready.hangup && ready.writable);
    assert_eq!(pair.client.take_error(id), Ok(Some(SocketError::Refused)));
    assert_eq!(pair.client.take_error(id), Ok(None));
    assert_eq!(pair.client.local_address(id), Ok(address(2, 5_000)));
    let other = pair.client.socket(SocketKind::Tcp, false).unwrap();
    let bound = pair.client.bind(other, address(2, 5_000));
    assert_eq!(bound, Err(SocketError::AddressInUse));
}

/// Without memory nothing breaks, and the stream goes on when there is some.
#[test]
fn a_stream_passes_through_little_memory() {
    let small = |host| Config {
        memory_bytes: 40 * 4096,
        ..config(host, Medium::Ip)
    };
    let mut pair = Pair::new(small(2), small(1));
    let listener = listen(&mut pair.server, 80, false);
    let client = pair.connect(80);
    let (server, _) = pair.server.accept(listener).unwrap();
    stream(&mut pair, client, server, 2_000_000);
    assert!(pair.client.memory_bytes().0 <= 40 * 4096);
}

/// An id is never another socket's.
#[test]
fn ids_are_not_used_again() {
    let mut pair = Pair::of_ip();
    let mut seen = HashSet::new();
    for _ in 0..100 {
        let id = pair.client.socket(SocketKind::Tcp, false).unwrap();
        assert!(seen.insert(id));
        pair.client.close(pair.now, id).unwrap();
        assert_eq!(pair.client.readiness(id), Err(SocketError::BadSocket));
    }
}

/// Out of order of the calls, not of the engine: an event for each change, merged until it is drained.
#[test]
fn events_are_merged_until_they_are_drained() {
    let mut pair = Pair::of_ip();
    let listener = listen(&mut pair.server, 80, false);
    pair.server.set_token(listener, 9).unwrap();
    let client = pair.connect(80);
    let event = pair.server.next_event().unwrap();
    assert!(event.socket == listener && event.token == 9 && event.readiness.readable);
    assert!(pair.client.next_event().unwrap().readiness.writable);
    let (server, peer) = pair.server.accept(listener).unwrap();
    assert_eq!(Ok(peer), pair.client.local_address(client));
    for _ in 0..3 {
        let flags = SendFlags::default();
        pair.client.send(pair.now, client, b"x", flags).unwrap();
        pair.exchange();
    }
    let event = pair.server.next_event().unwrap();
    assert!(event.socket == server && event.readiness.readable);
    assert_eq!(pair.server.next_event(), None);
}

/// What was sent before the close has gone where calls send at once; here it goes before the reset.
#[test]
fn a_reset_follows_what_was_sent() {
    for unread in [true, false] {
        let mut pair = Pair::of_ip();
        let listener = listen(&mut pair.server, 80, false);
        let client = pair.connect(80);
        let (server, _) = pair.server.accept(listener).unwrap();
        let (now, send) = (pair.now, SendFlags::default());
        if unread {
            pair.client.send(now, client, b"request", send).unwrap();
            pair.exchange();
        } else {
            let option = SocketOption::Linger(Linger::Reset);
            pair.server.set_option(now, server, option).unwrap();
        }
        pair.server.send(now, server, b"answer", send).unwrap();
        pair.server.close(now, server).unwrap();
        pair.exchange();
        let (mut bytes, recv) = ([0; 10], RecvFlags::default());
        let came = pair.client.recv(pair.now, client, &mut bytes, recv);
        assert_eq!((came, &bytes[..6]), (Ok(6), &b"answer"[..]), "{unread}");
        let end = pair.client.recv(pair.now, client, &mut bytes, recv);
        assert_eq!(end, Err(SocketError::Reset));
        assert_eq!(pair.server.counters().tcp_out_rsts, 1);
        assert_eq!(pair.server.memory_bytes().0, 0);
    }
}

/// Who looks for a free port and uses it later is not given the one that another one has found.
#[test]
fn free_ports_differ() {
    let mut pair = Pair::of_ip();
    let ports: HashSet<u16> = (0..50)
        .map(|_| {
            let id = pair.server.socket(SocketKind::Tcp, false).unwrap();
            pair.server.bind(id, address(1, 0)).unwrap();
            let port = pair.server.local_address(id).unwrap().port();
            pair.server.close(pair.now, id).unwrap();
            port
        })
        .collect();
    assert!(ports.len() > 40, "{ports:?}");
}
