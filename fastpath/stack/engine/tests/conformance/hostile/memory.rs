//! Peers that take nothing, and what is left for others when the memory limit is near.
use super::floods::open;
use crate::support::host::{Host, config};
use crate::support::packet::{ACK, RST, Segment};
use hopscope_stack_engine::{SendFlags, SocketError, SocketId};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes that the server has for each honest client.
const RESPONSE: usize = 1 << 20;

fn server() -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 0, 0, 1]), 80)
}

/// Each from an address and port of its own.
fn peer(n: u32) -> SocketAddr {
    let address = Ipv4Addr::from(0x0a00_0003 + n % 200);
    SocketAddr::new(IpAddr::V4(address), 1024 + (n / 200) as u16)
}

/// Sends what the connection takes, `left` bytes at most; how many that were.
fn fill(host: &mut Host, id: SocketId, mut left: usize) -> usize {
    let mut total = 0;
    while left > 0 {
        match host.engine.send(
            host.now,
            id,
            &[7; 16_384][..left.min(16_384)],
            SendFlags::default(),
        ) {
            Ok(sent) => (total, left) = (total + sent, left - sent),
            Err(SocketError::WouldBlock) => break,
            Err(error) => panic!("send: {error}"),
        }
    }
    total
}

/// `count` connections to a server that sends without end, of peers that take nothing: every second has a window of zero, the others have
/// one and acknowledge nothing.
fn hold(host: &mut Host, listener: SocketId, count: u32) -> Vec<SocketId> {
    let mut held = Vec::new();
    for n in 0..count {
        let window = if n % 2 == 0 { 0 } else { 65_000 };
        let (id, _) = open(host, listener, peer(n), window).expect("a connection");
        fill(host, id, usize::MAX);
        host.pump();
        host.sent.clear();
        held.push(id);
    }
    held
}

struct Honest {
    from: SocketAddr,
    /// Unsent by the application.
    left: usize,
    /// Of the peer: what it acknowledges next, and how many bytes came.
    ack: u32,
    received: usize,
}

/// One round trip of a millisecond: clients acknowledge what came, and the server writes where it is told that there is room.
fn round(host: &mut Host, honest: &mut BTreeMap<SocketAddr, (SocketId, Honest)>) {
    host.run_ms(1);
    while !host.sent.is_empty() {
        let (_, _, to, segment) = host.take_segment().expect("a segment");
        if let Some((_, client)) = honest.get_mut(&to)
            && segment.seq == client.ack
        {
            client.ack = client.ack.wrapping_add(segment.payload.len() as u32);
            client.received += segment.payload.len();
        }
    }
    for (_, client) in honest.values() {
        let ack = Segment {
            flags: ACK,
            seq: 101,
            ack: client.ack,
            window: 65_000,
            ..Segment::default()
        };
        let packet = ack.encode(client.from, server());
        host.engine.receive(host.now, &packet, Default::default());
    }
    while let Some(event) = host.engine.next_event() {
        let of = honest.values_mut().find(|(id, _)| *id == event.socket);
        let left = of.as_ref().map_or(usize::MAX, |(_, client)| client.left);
        if event.readiness.writable && left > 0 {
            let sent = fill(host, event.socket, left);
            if let Some((_, client)) = of {
                client.left -= sent;
            }
        }
    }
}

/// As in Linux each socket has a least (tcp_wmem), and under pressure (tcp_mem) nobody has more than goes out: who came later is served.
#[test]
fn peers_that_take_nothing_leave_memory_for_others() {
    let mut config = config();
    config.memory_bytes = 128 << 20;
    let mut host = Host::new(config);
    let listener = host.listen(80, 100);
    let held = hold(&mut host, listener, 10_000);
    let counters = *host.engine.counters();
    assert_eq!(counters.memory_pressures, 1);
    assert_eq!(counters.memory_limit_drop, 0);
    let mut honest = BTreeMap::new();
    for n in 0..20 {
        let from = SocketAddr::new(IpAddr::from([10, 0, 0, 250]), 1024 + n);
        let (id, ack) = open(&mut host, listener, from, 65_000).expect("a connection");
        let client = Honest {
            from,
            left: RESPONSE,
            ack,
            received: 0,
        };
        honest.insert(from, (id, client));
    }
    for (id, client) in honest.values_mut() {
        client.left -= fill(&mut host, *id, RESPONSE);
    }
    let mut rounds = 0;
    while honest
        .values()
        .any(|(_, client)| client.received < RESPONSE)
    {
        round(&mut host, &mut honest);
        rounds += 1;
        // 4 MiB/s each over a round trip of a millisecond: the least, 4 KiB, and some round trips more.
        assert!(
            rounds <= 300,
            "{} of {RESPONSE}",
            honest.values().map(|(_, c)| c.received).min().unwrap_or(0)
        );
    }
    let (buffers, _) = host.engine.memory_bytes();
    assert!(buffers <= 128 << 20, "{buffers} bytes");
    for id in held.into_iter().chain(honest.values().map(|(id, _)| *id)) {
        host.engine.abort(host.now, id).expect("abort");
        host.pump();
        host.sent.clear();
    }
    assert_eq!(host.engine.memory_bytes().0, 0);
}

/// Linux tcp_check_oom and tcp_out_of_resources: what is closed, and whose peer takes nothing, is given up when others have too little.
#[test]
fn closed_connections_are_reset_when_memory_is_tight() {
    let mut config = config();
    config.memory_bytes = 4 << 20;
    let mut host = Host::new(config);
    let listener = host.listen(80, 100);
    let held = hold(&mut host, listener, 100);
    let used = host.engine.memory_bytes().0;
    for id in &held {
        host.engine.close(host.now, *id).expect("close");
    }
    host.pump();
    host.sent.clear();
    assert_eq!(host.engine.counters().abort_on_memory, 0, "{used} of 4 MiB");
    // The rest is taken by the least of many more, until memory is tight.
    let more = hold(&mut host, listener, 0);
    assert!(more.is_empty());
    let late: Vec<SocketId> = (100..700)
        .map(|n| {
            let (id, _) = open(&mut host, listener, peer(n), 0).expect("a connection");
            fill(&mut host, id, usize::MAX);
            host.sent.clear();
            id
        })
        .collect();
    host.run_ms(2_000);
    let resets = std::iter::from_fn(|| host.take_segment())
        .filter(|(_, _, _, segment)| segment.flags & RST != 0)
        .count();
    let aborted = host.engine.counters().abort_on_memory;
    assert!(
        aborted > 0 && aborted as usize == resets,
        "{aborted} {resets}"
    );
    // No more than that memory is not tight any more.
    assert!(aborted < 100, "{aborted}");
    for id in late {
        host.engine.abort(host.now, id).expect("abort");
    }
}
