//! Bytes to smoltcp and back, verified, over paths that lose, reorder, duplicate and corrupt.
use super::smoltcp_peer::Peer;
use crate::simulator::bulk::{Stream, host, plain};
use crate::simulator::path::{Direction, Path};
use crate::support::host::Host;
use hopscope_stack_engine::{
    HowToShut, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind, TcpState,
};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;
use std::collections::BTreeMap;
use std::net::SocketAddr;

struct World {
    host: Host,
    peer: Peer,
    directions: [Direction; 2],
    now: Ns,
    /// By arrival and order: to which end, and what.
    in_flight: BTreeMap<(Ns, u64), (usize, Vec<u8>)>,
    order: u64,
}

impl World {
    fn new(path: &Path, seed: u64) -> World {
        let host = host(plain(), 1);
        let now = host.now;
        World {
            host,
            peer: Peer::new(now),
            directions: [
                Direction::new(path.clone(), seed),
                Direction::new(path.clone(), seed + 1),
            ],
            now,
            in_flight: BTreeMap::new(),
            order: 0,
        }
    }

    fn put(&mut self, from: usize, mut packet: Vec<u8>, payload_bytes: u32) {
        for at in self.directions[from].send(self.now, &mut packet, payload_bytes) {
            self.order += 1;
            self.in_flight
                .insert((at, self.order), (1 - from, packet.clone()));
        }
    }

    fn pump(&mut self) {
        self.host.pump();
        while let Some(sent) = self.host.sent.pop_front() {
            self.put(0, sent.packet, sent.frame.payload_bytes);
        }
        self.peer.poll(self.now);
        while let Some(packet) = self.peer.queues.sent.pop_front() {
            self.put(1, packet, 0);
        }
    }

    fn run(&mut self, limit: Ns, mut application: impl FnMut(&mut World) -> bool) -> bool {
        let end = self.now + limit;
        while !application(self) {
            self.pump();
            let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
            let timers = [
                arrival,
                self.host.engine.poll_at(),
                self.peer.poll_at(self.now),
            ];
            let Some(next) = timers
                .into_iter()
                .flatten()
                .min()
                .filter(|next| *next <= end)
            else {
                return false;
            };
            // smoltcp's clock has microseconds: never the same one twice.
            self.now = if next > self.now {
                next
            } else {
                self.now + Ns(1_000)
            };
            self.host.now = self.now;
            self.host.engine.advance(self.now);
            while let Some(entry) = self
                .in_flight
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
            {
                match entry.remove() {
                    (0, packet) => drop(self.host.receive(&packet)),
                    (_, packet) => self.peer.receive(self.now, packet),
                }
            }
        }
        true
    }
}

/// The engine connects.
fn engine_connects(world: &mut World, ipv6: bool) -> (SocketId, SocketHandle) {
    let handle = world.peer.socket();
    world
        .peer
        .sockets
        .get_mut::<tcp::Socket>(handle)
        .listen(80)
        .expect("listen");
    let engine = &mut world.host.engine;
    let id = engine.socket(SocketKind::Tcp, ipv6).expect("a socket");
    let end: SocketAddr = if ipv6 { "[fd00::2]:80" } else { "10.0.0.2:80" }
        .parse()
        .expect("an address");
    assert_eq!(
        engine.connect(world.now, id, Some(end)),
        Err(SocketError::InProgress)
    );
    (id, handle)
}

/// smoltcp connects.
fn smoltcp_connects(world: &mut World, ipv6: bool) -> (SocketId, SocketHandle) {
    let end: SocketAddr = if ipv6 { "[fd00::1]:80" } else { "10.0.0.1:80" }
        .parse()
        .expect("an address");
    let listener = world
        .host
        .engine
        .socket(SocketKind::Tcp, ipv6)
        .expect("a socket");
    world.host.engine.bind(listener, end).expect("bind");
    world.host.engine.listen(listener, 5).expect("listen");
    let handle = world.peer.socket();
    let Peer {
        interface, sockets, ..
    } = &mut world.peer;
    let socket = sockets.get_mut::<tcp::Socket>(handle);
    socket
        .connect(interface.context(), end, 49_152)
        .expect("connect");
    let mut accepted = None;
    world.run(Ns::from_ms(100_000), |world| {
        accepted = world.host.engine.accept(listener).ok();
        accepted.is_some()
    });
    (accepted.expect("a connection").0, handle)
}

/// Sends so many bytes, receives them back, and both ends close.
fn echo(world: &mut World, (id, handle): (SocketId, SocketHandle), bytes: u64) {
    let stream = Stream::new(9);
    let (mut written, mut read, mut shut, mut ended) = (0_u64, 0_u64, false, false);
    let mut into = vec![0; 60_000];
    let finished = world.run(Ns::from_ms(2_000_000), |world| {
        let now = world.now;
        let engine = &mut world.host.engine;
        while written < bytes {
            let some = stream.at(written, (bytes - written).min(50_000) as usize);
            match engine.send(now, id, some, SendFlags::default()) {
                Ok(count) => written += count as u64,
                Err(SocketError::WouldBlock | SocketError::NotConnected) => break,
                Err(error) => panic!("send: {error}"),
            }
        }
        if written == bytes && !shut {
            engine
                .shutdown(now, id, HowToShut::Write)
                .expect("shutdown");
            shut = true;
        }
        while !ended {
            match engine.recv(now, id, &mut into, RecvFlags::default()) {
                Ok(0) => ended = true,
                Ok(count) => {
                    assert!(
                        into[..count] == *stream.at(read, count),
                        "other bytes at {read}"
                    );
                    read += count as u64;
                }
                Err(SocketError::WouldBlock | SocketError::NotConnected) => break,
                Err(error) => panic!("recv: {error} after {read} of {bytes}"),
            }
        }
        serve(world.peer.sockets.get_mut::<tcp::Socket>(handle));
        ended
    });
    assert!(finished, "{read} of {bytes} bytes, {written} written");
    assert_eq!(read, bytes);
    let socket = world.peer.sockets.get::<tcp::Socket>(handle);
    assert!(
        !socket.may_recv(),
        "smoltcp has seen the end: {}",
        socket.state()
    );
    world.host.engine.close(world.now, id).expect("close");
    // Both reach the end of the connection; whoever closed first keeps TIME-WAIT.
    world.run(Ns::from_ms(20_000), |_| false);
    let mut left = world.host.engine.connections(world.now).map(|c| c.state);
    assert!(
        left.all(|state| matches!(state, TcpState::TimeWait | TcpState::Listen)),
        "all closed"
    );
}

/// smoltcp's application: what comes goes back; it closes after the other end has.
fn serve(socket: &mut tcp::Socket<'_>) {
    while socket.can_recv() && socket.can_send() {
        let room = socket.send_capacity() - socket.send_queue();
        let some = socket
            .recv(|bytes| {
                let count = bytes.len().min(room);
                (count, bytes[..count].to_vec())
            })
            .expect("recv");
        assert_eq!(socket.send_slice(&some), Ok(some.len()));
    }
    if !socket.may_recv() && socket.may_send() {
        socket.close();
    }
}

fn hostile_path() -> Path {
    Path {
        bits_per_s: 100_000_000,
        delay: Ns::from_us(2_000),
        jitter: Ns::from_us(300),
        loss: 0.02,
        duplicate: 0.02,
        corrupt: 0.01,
        reorder: 0.05,
        reorder_by: Ns::from_us(1_000),
        ..Path::default()
    }
}

fn bytes(reduced: u64) -> u64 {
    let full = std::env::var("HOPSCOPE_COUNTS").is_ok_and(|counts| counts == "full");
    if full { reduced * 20 } else { reduced }
}

#[test]
fn smoltcp_echoes_ipv4() {
    let mut world = World::new(&Path::default(), 1);
    let ends = engine_connects(&mut world, false);
    echo(&mut world, ends, bytes(2_000_000));
}

#[test]
fn smoltcp_echoes_ipv6() {
    let mut world = World::new(&Path::default(), 1);
    let ends = engine_connects(&mut world, true);
    echo(&mut world, ends, bytes(2_000_000));
}

#[test]
fn smoltcp_connects_and_echoes_ipv4() {
    let mut world = World::new(&Path::default(), 2);
    let ends = smoltcp_connects(&mut world, false);
    echo(&mut world, ends, bytes(2_000_000));
}

#[test]
fn smoltcp_connects_and_echoes_ipv6() {
    let mut world = World::new(&Path::default(), 2);
    let ends = smoltcp_connects(&mut world, true);
    echo(&mut world, ends, bytes(2_000_000));
}

#[test]
fn smoltcp_echoes_over_loss_reordering_duplication_corruption() {
    for seed in 0..5 {
        let mut world = World::new(&hostile_path(), seed);
        let ends = engine_connects(&mut world, seed % 2 == 1);
        echo(&mut world, ends, bytes(300_000));
    }
}

#[test]
fn smoltcp_connects_over_loss_reordering_duplication_corruption() {
    for seed in 5..10 {
        let mut world = World::new(&hostile_path(), seed);
        let ends = smoltcp_connects(&mut world, seed % 2 == 1);
        echo(&mut world, ends, bytes(300_000));
    }
}
