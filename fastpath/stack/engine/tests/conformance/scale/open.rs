//! Open connections that do nothing.
use crate::simulator::bulk::{host, plain};
use crate::support::host::Host;
use hopscope_stack_engine::frame::RxMeta;
use hopscope_stack_engine::{
    Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind, TcpState,
};
use std::net::SocketAddr;

pub fn full() -> bool {
    std::env::var("HOPSCOPE_COUNTS").is_ok_and(|counts| counts == "full")
}

/// Two hosts on a wire without delay: packets arrive in the order of their sending.
pub struct Pair {
    pub client: Host,
    pub server: Host,
    pub listeners: Vec<SocketId>,
}

/// So many ports of the server, because a client's ephemeral ports are 28,232.
pub const PORTS: u16 = 8;

impl Pair {
    pub fn new() -> Pair {
        let mut config = plain();
        config.memory_bytes = 4 << 30;
        config.tcp.syn_backlog = 4096;
        let mut pair = Pair {
            client: host(config.clone(), 1),
            server: host(config, 2),
            listeners: Vec::new(),
        };
        pair.listeners = (0..PORTS)
            .map(|port| pair.server.listen(1000 + port, 4096))
            .collect();
        pair
    }

    /// Until neither has anything to send.
    pub fn exchange(&mut self) {
        loop {
            self.client.pump();
            self.server.pump();
            if self.client.sent.is_empty() && self.server.sent.is_empty() {
                return;
            }
            while let Some(sent) = self.client.sent.pop_front() {
                self.server
                    .engine
                    .receive(self.server.now, &sent.packet, RxMeta::default());
            }
            while let Some(sent) = self.server.sent.pop_front() {
                self.client
                    .engine
                    .receive(self.client.now, &sent.packet, RxMeta::default());
            }
        }
    }

    /// With every timer of both in its turn.
    pub fn pass(&mut self, ms: u64) {
        let end = self.client.now + Ns::from_ms(ms);
        loop {
            self.exchange();
            let timers = [self.client.engine.poll_at(), self.server.engine.poll_at()];
            let next = timers
                .into_iter()
                .flatten()
                .min()
                .filter(|next| *next <= end);
            self.set_clock(next.unwrap_or(end));
            let now = self.client.now;
            self.client.engine.advance(now);
            self.server.engine.advance(now);
            if next.is_none() {
                return self.exchange();
            }
        }
    }

    pub fn set_clock(&mut self, now: Ns) {
        self.client.now = self.client.now.max(now);
        self.server.now = self.client.now;
    }

    pub fn connect(&mut self, port: u16) -> SocketId {
        let peer = SocketAddr::new("10.0.0.2".parse().expect("an address"), 1000 + port);
        let id = self
            .client
            .engine
            .socket(SocketKind::Tcp, false)
            .expect("a socket");
        let started = self.client.engine.connect(self.client.now, id, Some(peer));
        assert_eq!(started, Err(SocketError::InProgress));
        id
    }

    pub fn accept(&mut self) -> Vec<SocketId> {
        let engine = &mut self.server.engine;
        let accept = |listener: &SocketId| engine.accept(*listener).ok().map(|(id, _)| id);
        let mut accept = accept;
        self.listeners
            .iter()
            .flat_map(|listener| std::iter::from_fn(|| accept(listener)).collect::<Vec<_>>())
            .collect()
    }

    /// Both engines' bytes of buffers and tables.
    pub fn memory_bytes(&self) -> (u64, u64) {
        let (client, server) = (
            self.client.engine.memory_bytes(),
            self.server.engine.memory_bytes(),
        );
        (client.0 + server.0, client.1 + server.1)
    }
}

fn request(pair: &mut Pair, client: SocketId, server: SocketId) {
    let mut into = [0; 100];
    for (from, to, client_sends) in [(client, server, true), (server, client, false)] {
        let now = pair.client.now;
        let (sender, _) = ends(pair, client_sends);
        assert_eq!(
            sender
                .engine
                .send(now, from, &[5; 64], SendFlags::default()),
            Ok(64)
        );
        pair.exchange();
        let (_, receiver) = ends(pair, client_sends);
        assert_eq!(
            receiver
                .engine
                .recv(now, to, &mut into, RecvFlags::default()),
            Ok(64)
        );
    }
}

fn ends(pair: &mut Pair, client_sends: bool) -> (&mut Host, &mut Host) {
    match client_sends {
        true => (&mut pair.client, &mut pair.server),
        false => (&mut pair.server, &mut pair.client),
    }
}

#[test]
fn open_connections_cost_little_and_leave_nothing() {
    let count = if full() { 100_000 } else { 2_000 };
    let mut pair = Pair::new();
    let (_, before) = pair.memory_bytes();
    let mut clients = Vec::new();
    let mut servers = Vec::new();
    for index in 0..count {
        clients.push(pair.connect((index % u32::from(PORTS)) as u16));
        pair.exchange();
        servers.extend(pair.accept());
    }
    assert_eq!(servers.len(), count as usize);
    for index in 0..count as usize {
        request(&mut pair, clients[index], servers[index]);
    }
    pair.pass(1_000);
    let (buffers, tables) = pair.memory_bytes();
    assert_eq!(buffers, 0, "idle connections hold no buffers");
    let each = (tables - before) / u64::from(2 * count);
    assert!(each <= 2_048, "{each} bytes for each idle connection");
    assert_eq!(pair.client.engine.poll_at(), None, "no timers");
    assert_eq!(pair.server.engine.poll_at(), None, "no timers");
    let now = pair.client.now;
    for (client, server) in clients.into_iter().zip(servers) {
        pair.client.engine.close(now, client).expect("close");
        pair.exchange();
        pair.server.engine.close(now, server).expect("close");
        pair.exchange();
    }
    let waiting = pair.client.engine.connections(now).count();
    assert_eq!(waiting, count as usize, "each in TIME-WAIT");
    assert!(
        pair.client
            .engine
            .connections(now)
            .all(|c| c.state == TcpState::TimeWait)
    );
    pair.pass(61_000);
    assert_eq!(pair.client.engine.connections(pair.client.now).count(), 0);
    assert_eq!(
        pair.server.engine.connections(pair.client.now).count(),
        usize::from(PORTS)
    );
    assert_eq!(pair.client.engine.poll_at(), None);
    assert_eq!(pair.memory_bytes().0, 0);
    assert_eq!(pair.client.engine.counters().tcp_curr_estab, 0);
    assert_eq!(pair.server.engine.counters().tcp_curr_estab, 0);
}
