//! Many at once.
use crate::simulator::random::Random;
use crate::support::host::{Host, config};
use crate::support::packet::{ACK, PSH, SYN, Segment, TcpOption};
use crate::support::script::Script;
use hopscope_stack_engine::config::SynCookies;
use hopscope_stack_engine::{RecvFlags, SendFlags, SocketId};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

pub(super) fn full() -> bool {
    std::env::var("HOPSCOPE_COUNTS").is_ok_and(|counts| counts == "full")
}

pub(super) fn anybody(random: &mut Random) -> SocketAddr {
    let address = Ipv4Addr::from(0x0a00_0003 + random.below(200) as u32);
    SocketAddr::new(IpAddr::V4(address), 1024 + random.below(60_000) as u16)
}

/// RFC 4987: a flood of SYNs takes bounded memory, and others still connect.
#[test]
fn rfc4987_syn_flood() {
    for cookies in [SynCookies::WhenFull, SynCookies::Never, SynCookies::Always] {
        let mut config = config();
        config.tcp.syn_backlog = 256;
        config.tcp.syn_cookies = cookies;
        let mut script = Script::listening(config);
        let mut random = Random::new(2);
        let mut most = 0;
        for _ in 0..if full() { 1_000_000 } else { 20_000 } {
            let seq = random.next() as u32;
            let syn = Segment {
                flags: SYN,
                seq,
                window: 1000,
                options: vec![TcpOption::Mss(1460)],
                ..Segment::default()
            };
            let packet = syn.encode(anybody(&mut random), script.engine_end);
            script.host.receive(&packet);
            script.host.sent.clear();
            let (buffers, tables) = script.host.engine.memory_bytes();
            most = most.max(buffers + tables);
        }
        assert!(most < 4 << 20, "{cookies:?}: {most} bytes");
        let known = script.host.engine.connections(script.host.now).count();
        assert!(known <= 257 + 1, "{cookies:?}: {known} connections");
        if matches!(cookies, SynCookies::Never) {
            continue;
        }
        script.inject("S 0:0(0) win 32000 <mss 1000>");
        let (_, answer) = script.take().expect("SYN-ACK");
        assert_eq!(answer.flags, SYN | ACK);
        script.inject(". 1:1(0) ack 1");
        script.accept();
        script.inject("P. 1:101(100) ack 1");
        script.read(1, 100);
    }
}

/// Opens a connection from an address without a look at what it is told.
pub(super) fn open(
    host: &mut Host,
    listener: SocketId,
    from: SocketAddr,
    window: u16,
) -> Option<(SocketId, u32)> {
    let to = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), 80);
    let syn = Segment {
        flags: SYN,
        seq: 100,
        window,
        options: vec![TcpOption::Mss(1000)],
        ..Segment::default()
    };
    host.receive(&syn.encode(from, to));
    let (_, _, _, answer) = host.take_segment()?;
    let ack = answer.seq.wrapping_add(1);
    host.receive(
        &Segment {
            flags: ACK,
            seq: 101,
            ack,
            window,
            ..Segment::default()
        }
        .encode(from, to),
    );
    let (id, _) = host.engine.accept(listener).ok()?;
    Some((id, ack))
}

/// Sockstress: many connections with a window of zero, for which the server's data waits. The memory limit holds.
#[test]
fn sockstress_zero_windows() {
    let mut config = config();
    config.memory_bytes = 2 << 20;
    let mut host = Host::new(config);
    let listener = host.listen(80, 1000);
    let mut random = Random::new(3);
    let mut held = Vec::new();
    for _ in 0..500 {
        let from = anybody(&mut random);
        let Some((id, _)) = open(&mut host, listener, from, 0) else {
            continue;
        };
        let _ = host
            .engine
            .send(host.now, id, &[1; 16_384], SendFlags::default());
        held.push(id);
        host.pump();
        host.sent.clear();
        let (buffers, _) = host.engine.memory_bytes();
        assert!(
            buffers <= (2 << 20) + (64 << 10),
            "{buffers} bytes with {} connections",
            held.len()
        );
    }
    assert!(held.len() > 400, "{} connections", held.len());
    // What they hold is given back.
    for id in held {
        let _ = host.engine.abort(host.now, id);
        host.pump();
    }
    host.sent.clear();
    let (buffers, _) = host.engine.memory_bytes();
    assert!(buffers <= 64 << 10, "{buffers} bytes are still held");
    assert!(
        open(
            &mut host,
            listener,
            "10.0.0.250:9".parse().expect("an address"),
            1000
        )
        .is_some()
    );
}

/// Many connections that send one byte of each of many segments, never the first: bounded, too.
#[test]
fn out_of_order_data_is_bounded() {
    let mut config = config();
    config.memory_bytes = 4 << 20;
    let mut host = Host::new(config);
    let listener = host.listen(80, 1000);
    let to = SocketAddr::new(IpAddr::from([10, 0, 0, 1]), 80);
    let mut random = Random::new(4);
    let mut held = Vec::new();
    for _ in 0..200 {
        let from = anybody(&mut random);
        let Some((id, ack)) = open(&mut host, listener, from, 1000) else {
            continue;
        };
        held.push(id);
        for hole in 0..50_u32 {
            let seq = 101 + 2 + hole * 1_200;
            let segment = Segment {
                flags: PSH | ACK,
                seq,
                ack,
                window: 1000,
                payload: vec![7],
                ..Segment::default()
            };
            host.receive(&segment.encode(from, to));
            host.sent.clear();
        }
        let (buffers, _) = host.engine.memory_bytes();
        assert!(
            buffers <= (4 << 20) + (64 << 10),
            "{buffers} bytes with {} connections",
            held.len()
        );
    }
    // A well-behaved one beside them still gets its data across.
    let from = "10.0.0.250:9".parse().expect("an address");
    for id in held.drain(..100) {
        let _ = host.engine.abort(host.now, id);
    }
    host.pump();
    host.sent.clear();
    let (id, ack) = open(&mut host, listener, from, 1000).expect("a connection");
    let segment = Segment {
        flags: PSH | ACK,
        seq: 101,
        ack,
        window: 1000,
        payload: vec![7; 500],
        ..Segment::default()
    };
    host.receive(&segment.encode(from, to));
    let mut into = [0; 600];
    assert_eq!(
        host.engine
            .recv(host.now, id, &mut into, RecvFlags::default()),
        Ok(500)
    );
}
