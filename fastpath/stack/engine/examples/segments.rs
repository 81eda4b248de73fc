//! CPU time of a segment, and memory of an idle connection, by the number of connections:
//!
//! ```text
//! cargo run --release -p hopscope-stack-engine --example segments -- CONNECTIONS ROUNDS
//! ```
//!
//! Two engines in one thread; each round, on another connection, is a request of 100 bytes and a reply of 600.
use hopscope_stack_engine::config::{Address, Medium};
use hopscope_stack_engine::frame::RxMeta;
use hopscope_stack_engine::{
    Config, Engine, Ns, RecvFlags, SendFlags, SocketId, SocketKind, SocketOption,
};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const REQUEST_BYTES: usize = 100;
const REPLY_BYTES: usize = 600;

struct Pair {
    now: Ns,
    client: Engine,
    server: Engine,
    slot: Vec<u8>,
    segments: u64,
}

fn engine(host: u8) -> Result<Engine, Box<dyn Error>> {
    let mut config = Config::new(Medium::Ip, [host; 32]);
    for net in 0..8 {
        config.addresses.push(Address {
            address: IpAddr::V4(Ipv4Addr::new(10, 0, net, host)),
            prefix_bits: 24,
        });
    }
    config.tcp.syn_backlog = 1 << 20;
    Ok(Engine::new(config)?)
}

impl Pair {
    /// Until neither has a frame.
    fn exchange(&mut self) {
        loop {
            let to_server = pass(&mut self.client, &mut self.server, self.now, &mut self.slot);
            let to_client = pass(&mut self.server, &mut self.client, self.now, &mut self.slot);
            self.segments += to_server + to_client;
            if to_server + to_client == 0 {
                return;
            }
        }
    }

    fn advance(&mut self, ns: u64) {
        self.now = self.now + Ns(ns);
        self.client.advance(self.now);
        self.server.advance(self.now);
    }
}

fn pass(from: &mut Engine, to: &mut Engine, now: Ns, slot: &mut [u8]) -> u64 {
    let mut frames = 0;
    while let Some(frame) = from.transmit(now, slot) {
        to.receive(now, &slot[..frame.len], RxMeta::default());
        frames += 1;
    }
    frames
}

/// Of this thread, on its processor (proc(5), schedstat).
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

/// VmRSS (proc(5), statm).
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn connect(pair: &mut Pair, count: u32) -> Result<Vec<(SocketId, SocketId)>, Box<dyn Error>> {
    let listener = pair.server.socket(SocketKind::Tcp, false)?;
    pair.server
        .bind(listener, SocketAddr::new([0, 0, 0, 0].into(), 80))?;
    pair.server.listen(listener, 4096)?;
    let mut connections = Vec::new();
    for i in 0..count {
        let client = pair.client.socket(SocketKind::Tcp, false)?;
        let no_delay = SocketOption::NoDelay(true);
        pair.client.set_option(pair.now, client, no_delay)?;
        let server = IpAddr::V4(Ipv4Addr::new(10, 0, (i % 8) as u8, 1));
        // InProgress.
        let _ = pair
            .client
            .connect(pair.now, client, Some(SocketAddr::new(server, 80)));
        pair.exchange();
        let (accepted, _) = pair.server.accept(listener)?;
        connections.push((client, accepted));
        pair.advance(10_000);
    }
    Ok(connections)
}

fn round(pair: &mut Pair, client: SocketId, server: SocketId) -> Result<(), Box<dyn Error>> {
    let mut bytes = [7; REPLY_BYTES];
    let now = pair.now;
    pair.client
        .send(now, client, &bytes[..REQUEST_BYTES], SendFlags::default())?;
    pair.exchange();
    let got = pair
        .server
        .recv(now, server, &mut bytes, RecvFlags::default())?;
    assert_eq!(got, REQUEST_BYTES);
    pair.server
        .send(now, server, &bytes, SendFlags::default())?;
    pair.exchange();
    let got = pair
        .client
        .recv(now, client, &mut bytes, RecvFlags::default())?;
    assert_eq!(got, REPLY_BYTES);
    pair.exchange();
    while pair.client.next_event().is_some() || pair.server.next_event().is_some() {}
    pair.advance(20_000);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let count = arguments.next().transpose()?.unwrap_or(10).max(1);
    let rounds = arguments.next().transpose()?.unwrap_or(1_000_000);
    let mut pair = Pair {
        now: Ns::from_ms(1_000),
        client: engine(2)?,
        server: engine(1)?,
        slot: vec![0; 2_048],
        segments: 0,
    };
    let resident = resident_bytes();
    let connections = connect(&mut pair, count)?;
    for (client, server) in &connections {
        round(&mut pair, *client, *server)?;
    }
    pair.advance(1_000_000_000);
    pair.exchange();
    let (buffers, tables) = pair.server.memory_bytes();
    // Of both ends, and what names them here.
    let names = 16 * u64::from(count);
    let resident = resident_bytes().saturating_sub(resident + names) / (2 * u64::from(count));
    let segments = pair.segments;
    let start = cpu_ns();
    // Coprime to the count: each round finds its connection where the cache has forgotten it.
    let mut at = 0;
    for _ in 0..rounds {
        at = (at + 7_919) % connections.len();
        let (client, server) = connections[at];
        round(&mut pair, client, server)?;
    }
    let ns = cpu_ns() - start;
    println!(
        "connections {count} rounds {rounds} segments {} ns_per_segment {:.0} buffer_bytes {buffers} table_bytes_per_connection {:.0} resident_bytes_per_connection {resident}",
        pair.segments - segments,
        ns as f64 / (pair.segments - segments).max(1) as f64,
        tables as f64 / f64::from(count),
    );
    Ok(())
}
