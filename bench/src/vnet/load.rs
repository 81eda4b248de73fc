//! What goes over the queues: netperf's TCP_STREAM, TCP_RR and TCP_CRR, ping, and datagrams; who sends it and who
//! answers.
use super::process::number;
use crate::error::{Error, Result};
use crate::load::network::{Namespace, Server};
use crate::program::last_words;
use crate::said::last_line;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Load {
    /// TCP_STREAM, bytes of a message.
    Stream(u32),
    /// TCP_MAERTS: the server sends.
    Maerts(u32),
    /// TCP_RR and TCP_CRR, one byte each way.
    Rr,
    Crr,
    /// ICMP echo, bytes of payload.
    Ping(u32),
    /// Datagrams of 64 bytes, as fast as the socket takes them.
    Udp,
    /// The same, so many a second.
    Steady(u32),
}

impl Load {
    pub(super) fn name(self) -> String {
        match self {
            Load::Stream(size) => format!("TCP_STREAM {size} B"),
            Load::Maerts(size) => format!("TCP_MAERTS {size} B"),
            Load::Rr => "TCP_RR".into(),
            Load::Crr => "TCP_CRR".into(),
            Load::Ping(size) => format!("ping {size} B"),
            Load::Udp => "UDP 64 B".into(),
            Load::Steady(rate) => format!("UDP 64 B {rate}/s"),
        }
    }

    /// What its value is. More of it is better.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Load::Stream(_) | Load::Maerts(_) => "10^6 bit/s",
            Load::Rr | Load::Crr => "transactions/s",
            Load::Ping(_) => "round trips/s",
            Load::Udp | Load::Steady(_) => "datagrams/s",
        }
    }

    pub(super) fn is_tcp(self) -> bool {
        !matches!(self, Load::Ping(_) | Load::Udp | Load::Steady(_))
    }

    /// What `hopscope load` is told, for those who answer at the address `at`.
    pub(super) fn client(self, servers: &Servers, at: &str, milliseconds: u64) -> Vec<String> {
        let to = |server: &Server| format!("{at}:{}", server.port);
        let (words, size, target) = match self {
            Load::Stream(size) => ("tcp stream", size, to(&servers.sink)),
            Load::Maerts(size) => ("tcp stream --reverse", size, to(&servers.source)),
            Load::Rr => ("tcp rr --closed", 1, to(&servers.echo)),
            Load::Crr => ("tcp crr --closed", 1, to(&servers.echo)),
            Load::Ping(size) => ("ping -i 1ms", size, at.to_owned()),
            Load::Udp => ("udp stream --closed", 64, to(&servers.datagrams)),
            Load::Steady(rate) => {
                let words = format!("udp stream --rate {rate}");
                return self.words(&words, 64, to(&servers.datagrams), milliseconds);
            }
        };
        self.words(words, size, target, milliseconds)
    }

    /// The same to a server of another place.
    pub(super) fn words(self, fixed: &str, size: u32, to: String, ms: u64) -> Vec<String> {
        let fixed = fixed.split(' ').map(String::from);
        let more = ["--size".into(), size.to_string(), to];
        let last = ["--duration".into(), format!("{ms}ms"), "--json".into()];
        fixed.chain(more).chain(last).collect()
    }

    /// Of what the client said, and of the packets that came through from it.
    pub(super) fn value(self, said: &Value, through: f64) -> Result<f64> {
        Ok(match self {
            Load::Stream(_) => number(said, "sent_mbit_per_s")?,
            Load::Maerts(_) => number(said, "received_mbit_per_s")?,
            Load::Rr | Load::Crr => number(said, "achieved_per_s")?,
            Load::Ping(_) => microseconds(said, "p50_ns").map_or(0.0, |us| 1e6 / us),
            // A socket also takes what a full device drops.
            Load::Udp | Load::Steady(_) => through / number(said, "elapsed_s")?,
        })
    }
}

/// Of the latencies in a summary; streams in have none, and those of which nothing came back within the window.
pub(super) fn microseconds(said: &Value, percentile: &str) -> Option<f64> {
    said["latency"][percentile].as_f64().map(|ns| ns / 1e3)
}

/// Requests or connections that failed, answers with other bytes, and one where nothing went in the window.
pub(super) fn failed(said: &Value, value: f64) -> Result<f64> {
    let nothing = f64::from(u8::from(value == 0.0));
    Ok(number(said, "failed")? + number(said, "corrupt")? + nothing)
}

/// Who answers, in a namespace of theirs, on every address of it.
pub(super) struct Servers {
    pub(super) echo: Server,
    pub(super) sink: Server,
    pub(super) source: Server,
    pub(super) datagrams: Server,
}

impl Servers {
    pub(super) fn start(hopscope: &Path, namespace: &Namespace) -> Result<Servers> {
        let serve = |protocol: &str, service: &str| {
            let mut command = namespace.in_its_network_on_one_processor(hopscope);
            command.args(["load", protocol, "serve", "--service", service]);
            command.args(["--listen", "0.0.0.0:0", "--until-stdin-ends", "--json"]);
            Server::start("hopscope load serve", command)
        };
        Ok(Servers {
            echo: serve("tcp", "echo")?,
            sink: serve("tcp", "sink")?,
            source: serve("tcp", "source")?,
            datagrams: serve("udp", "sink")?,
        })
    }
}

/// Runs a client on this machine; its summary.
pub(super) fn run(mut client: Command) -> Result<Value> {
    let done = client.output().map_err(Error::start("hopscope load"))?;
    // Code 1: some requests failed. The summary has how many, and this one's too.
    if !matches!(done.status.code(), Some(0 | 1)) {
        return Err(Error::failed(
            "hopscope load",
            done.status,
            last_words(&String::from_utf8_lossy(&done.stderr)),
        ));
    }
    last_line("hopscope load", &String::from_utf8_lossy(&done.stdout))
}
