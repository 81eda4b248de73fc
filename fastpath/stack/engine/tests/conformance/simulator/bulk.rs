//! A transfer of many bytes, verified.
use super::network::Network;
use super::path::{Path, PathCounters};
use crate::support::host::{Host, config};
use hopscope_stack_engine::config::{Address, Config};
use hopscope_stack_engine::{
    Counters, HowToShut, Ns, RecvFlags, SendFlags, SocketError, SocketId, SocketKind,
};
use std::net::SocketAddr;

/// Not a multiple of anything that segments are cut by.
const PERIOD: usize = 65_521;

/// Bytes of a stream: whatever place, a slice.
pub struct Stream(Vec<u8>);

impl Stream {
    pub fn new(salt: u8) -> Stream {
        let byte = |i: usize| ((i % PERIOD).wrapping_mul(0x9e37_79b1) >> 16) as u8 ^ salt;
        Stream((0..2 * PERIOD).map(byte).collect())
    }

    /// At most 65,521 bytes.
    pub fn at(&self, place: u64, length: usize) -> &[u8] {
        let start = (place % PERIOD as u64) as usize;
        &self.0[start..start + length.min(PERIOD)]
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub finished: bool,
    /// From connect to the last byte.
    pub time: Ns,
    pub bytes: u64,
    pub sender: Counters,
    pub forward: PathCounters,
}

impl Outcome {
    pub fn mbit_per_s(&self) -> f64 {
        self.bytes as f64 * 8_000.0 / self.time.0 as f64
    }
}

/// A host whose last byte of both addresses is `number`.
pub fn host(mut config: Config, number: u8) -> Host {
    let address = |text: String, prefix_bits| Address {
        address: text.parse().expect("an address"),
        prefix_bits,
    };
    config.addresses = vec![
        address(format!("10.0.0.{number}"), 24),
        address(format!("fd00::{number}"), 64),
    ];
    config.seed = [number; 32];
    Host::new(config)
}

pub fn plain() -> Config {
    let mut config = config();
    // No use of segments that the device cuts.
    config.offload = Default::default();
    config
}

/// Both hosts connected, from host 0 to port 80 of host 1, over a path that may lose anything.
pub fn connect(network: &mut Network, ipv6: bool) -> [SocketId; 2] {
    connect_to(network, ipv6, 80)
}

pub fn connect_to(network: &mut Network, ipv6: bool, port: u16) -> [SocketId; 2] {
    let address = if ipv6 { "fd00::2" } else { "10.0.0.2" };
    let end = SocketAddr::new(address.parse().expect("an address"), port);
    let [client_host, server_host] = &mut network.hosts;
    let listener = server_host
        .engine
        .socket(SocketKind::Tcp, ipv6)
        .expect("a socket");
    server_host.engine.bind(listener, end).expect("bind");
    server_host.engine.listen(listener, 16).expect("listen");
    let client = client_host
        .engine
        .socket(SocketKind::Tcp, ipv6)
        .expect("a socket");
    let started = client_host.engine.connect(network.now, client, Some(end));
    assert_eq!(started, Err(SocketError::InProgress));
    let mut server = None;
    let end = network.now + Ns::from_ms(100_000);
    let accepted = network.run(end, |network| {
        server = network.hosts[1]
            .engine
            .accept(listener)
            .ok()
            .map(|(id, _)| id);
        server.is_some()
    });
    assert!(accepted, "no connection within 100 s");
    network.hosts[1]
        .engine
        .close(network.now, listener)
        .expect("close");
    [client, server.expect("accepted")]
}

/// Sends so many bytes from host 0 to host 1, which reads them; then, where `ends`, the end of the stream.
pub fn transfer(
    network: &mut Network,
    sockets: [SocketId; 2],
    bytes: u64,
    limit: Ns,
    ends: bool,
) -> Outcome {
    let stream = Stream::new(0);
    let begin = network.now;
    let (mut written, mut read, mut shut, mut ended) = (0, 0, false, false);
    let mut into = vec![0; PERIOD];
    let finished = network.run(begin + limit, |network| {
        let now = network.now;
        let [sender, receiver] = &mut network.hosts;
        while written < bytes {
            let some = stream.at(written, (bytes - written).min(65_000) as usize);
            match sender
                .engine
                .send(now, sockets[0], some, SendFlags::default())
            {
                Ok(count) => written += count as u64,
                Err(SocketError::WouldBlock) => break,
                Err(error) => panic!("send: {error} after {written} bytes"),
            }
        }
        if ends && written == bytes && !shut {
            sender
                .engine
                .shutdown(now, sockets[0], HowToShut::Write)
                .expect("shutdown");
            shut = true;
        }
        while !ended {
            match receiver
                .engine
                .recv(now, sockets[1], &mut into, RecvFlags::default())
            {
                Ok(0) => ended = true,
                Ok(count) => {
                    assert!(
                        into[..count] == *stream.at(read, count),
                        "other bytes at {read}"
                    );
                    read += count as u64;
                }
                Err(SocketError::WouldBlock) => break,
                Err(error) => panic!("recv: {error} after {read} bytes"),
            }
        }
        ended |= !ends && read == bytes;
        ended
    });
    if finished {
        assert_eq!(read, bytes, "bytes until the end of the stream");
    }
    Outcome {
        finished,
        time: network.now.since(begin),
        bytes: read,
        sender: *network.hosts[0].engine.counters(),
        forward: network.directions[0].counters,
    }
}

/// A whole experiment: both hosts of one configuration, one path, one seed.
pub fn bulk(config: Config, path: &Path, seed: u64, bytes: u64) -> Outcome {
    let hosts = [host(config.clone(), 1), host(config, 2)];
    let mut network = Network::new(hosts, path, seed);
    let sockets = connect(&mut network, false);
    transfer(&mut network, sockets, bytes, Ns::from_ms(600_000), true)
}
