//! Blocking round trips over TCP between two processors, from one process to another: through a
//! cable between two network namespaces, or through loopback.
use crate::error::{Error, Result};
use crate::load::network::{Namespace, Server};
use crate::load::programs::{self as load, compiled};
use crate::program::{Compiler, run};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;

const SERVER: &str = "10.0.0.2";
const LOOPBACK: &str = "127.0.0.1";

/// Without timestamps in TCP's header, so that a frame can have 64 bytes: Ethernet 14, IP 20, TCP 20,
/// checksum 4.
pub(crate) const HEADERS: u32 = 58;

#[derive(Debug)]
pub(crate) struct Route {
    client: Namespace,
    server: Option<Namespace>,
    host: &'static str,
    device: &'static str,
}

/// The programs in C that talk to each other.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) ping: PathBuf,
    pub(crate) pong: PathBuf,
}

/// A standing connection. Both ends are gone with it.
#[derive(Debug)]
pub(crate) struct Connection {
    ping: Server,
    /// `None`: the asking program answers itself.
    pong: Option<Server>,
}

/// What the asking process says of a window.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(crate) struct Window {
    pub(crate) round_trips: f64,
    pub(crate) all_round_trips: f64,
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: f64,
    pub(crate) cpu_ns: f64,
}

impl Programs {
    pub(crate) fn build(dir: &Path, compiler: &Compiler) -> Result<Programs> {
        Ok(Programs {
            ping: compiled(&dir.join("slice"), compiler, "ping", include_str!("ping.c"))?,
            pong: load::Programs::build(dir, compiler)?.rr,
        })
    }
}

impl Route {
    pub(crate) fn cable() -> Result<Route> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        client.cable("c0", &server, "s0")?;
        client.address("c0", "10.0.0.1")?;
        server.address("s0", SERVER)?;
        for namespace in [&client, &server] {
            no_timestamps(namespace)?;
        }
        Ok(Route {
            client,
            server: Some(server),
            host: SERVER,
            device: "c0",
        })
    }

    pub(crate) fn loopback() -> Result<Route> {
        let client = Namespace::new()?;
        no_timestamps(&client)?;
        Ok(Route {
            client,
            server: None,
            host: LOOPBACK,
            device: "lo",
        })
    }

    /// A token bucket that never has to wait, in front of the client's device.
    pub(crate) fn with_tbf(self) -> Result<Route> {
        let mut tc = self.client.command("tc");
        let bucket = "rate 20gbit burst 4mb latency 50ms";
        tc.args(["qdisc", "add", "dev", self.device, "root", "tbf"]);
        run(tc.args(bucket.split(' ')))?;
        Ok(self)
    }

    /// `size` bytes each way.
    pub(crate) fn connect(&self, programs: &Programs, size: u32) -> Result<Connection> {
        let [first, second] = two_processors()?;
        let size = size.to_string();
        let there = self.server.as_ref().unwrap_or(&self.client);
        let mut pong = on(there, &second, &programs.pong);
        pong.args(["server", &size]);
        let pong = Server::start("the answering program", pong)?;
        let mut ping = on(&self.client, &first, &programs.ping);
        ping.args([self.host, &pong.port, &size]);
        let ping = Server::start("the asking program", ping)?;
        Ok(Connection {
            ping,
            pong: Some(pong),
        })
    }

    /// Both ends in one thread.
    pub(crate) fn connect_on_one_core(&self, programs: &Programs, size: u32) -> Result<Connection> {
        let [first, _] = two_processors()?;
        let there = self.server.as_ref().unwrap_or(&self.client).path();
        let mut ping = on(&self.client, &first, &programs.ping);
        ping.args([self.host, "0", &size.to_string(), &there]);
        let ping = Server::start("the program that asks itself", ping)?;
        Ok(Connection { ping, pong: None })
    }
}

impl Connection {
    pub(crate) fn port(&self) -> &str {
        &self.pong.as_ref().unwrap_or(&self.ping).port
    }

    pub(crate) fn run(&mut self, milliseconds: u64) -> Result<Window> {
        let line = self.ping.ask(&milliseconds.to_string())?;
        serde_json::from_str(&line).map_err(|_| Error::Answer {
            asked: format!("{milliseconds} ms of round trips"),
            answer: line,
        })
    }
}

fn no_timestamps(namespace: &Namespace) -> Result<()> {
    let mut shell = namespace.command("sh");
    run(shell.args(["-c", "echo 0 > /proc/sys/net/ipv4/tcp_timestamps"])).map(drop)
}

fn on(namespace: &Namespace, processor: &str, program: &Path) -> Command {
    let mut command = namespace.urgent("taskset");
    command.args(["-c", processor]).arg(program);
    command
}

/// The first two that this process may use.
fn two_processors() -> Result<[String; 2]> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let all = processors(list.unwrap_or_default());
    match all[..] {
        [first, second, ..] => Ok([first.to_string(), second.to_string()]),
        _ => Err(Error::Processors {
            wanted: 2,
            found: all.len(),
        }),
    }
}

/// Of a list as `0-1,4`.
fn processors(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::processors;

    #[test]
    fn lists_of_processors() {
        assert_eq!(processors("\t0-1\n"), [0, 1]);
        assert_eq!(processors("3"), [3]);
        assert_eq!(processors("0,4-6"), [0, 4, 5, 6]);
        assert!(processors("").is_empty());
    }
}
