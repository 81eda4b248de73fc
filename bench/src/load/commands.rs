//! `hopscope load`, as the bench starts it, and what is read from its last line.
use super::network::{Namespace, Server};
use crate::error::{Error, Result};
use crate::program::run_as;
use crate::said::last_line;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary under test.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    binary: PathBuf,
}

/// Between which ports packets go: from `p0` to `p1` of the namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ports {
    Packet { receives: bool },
    Xdp { receives: bool },
    Memory { threads: u8 },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Packets {
    pub(crate) sent: f64,
    /// `None` where nothing receives.
    pub(crate) matched: Option<f64>,
    pub(crate) seconds: f64,
    /// Of all its threads, start-up included.
    pub(crate) cpu_s: f64,
    pub(crate) latency_p50_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RoundTrips {
    /// On average, as the C client has it.
    pub(crate) mean_ns: f64,
    pub(crate) p50_ns: f64,
}

/// The last line of stdout.
struct Said {
    program: String,
    object: Value,
    /// Of the process, from its start to its end.
    cpu_s: f64,
}

impl Said {
    fn number(&self, path: &str) -> Result<f64> {
        self.maybe(path)
            .ok_or_else(|| Error::no_field(&self.program, path, &self.object))
    }

    fn maybe(&self, path: &str) -> Option<f64> {
        let at = |object, name: &str| Value::get(object, name);
        path.split('.').try_fold(&self.object, at)?.as_f64()
    }
}

/// Of the children that have ended: ours run one after the other.
fn children_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|source| Error::System {
        doing: "ask for the CPU time of children",
        source,
    })?;
    let seconds = |t: TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

impl Load {
    pub(crate) fn new(binary: &Path) -> Load {
        // Those who enter a namespace start at its root.
        let absolute = std::path::absolute(binary);
        Load {
            binary: absolute.unwrap_or_else(|_| binary.into()),
        }
    }

    fn ask(&self, mut command: Command, words: &[&str]) -> Result<Said> {
        let program = format!("hopscope load {} --json", words.join(" "));
        let before = children_cpu_s()?;
        let printed = run_as(&program, command.arg("load").args(words).arg("--json"))?;
        let cpu_s = children_cpu_s()? - before;
        Ok(Said {
            object: last_line(&program, &printed)?,
            program,
            cpu_s,
        })
    }

    /// 64 bytes each, as fast as it goes.
    pub(crate) fn packets(
        &self,
        namespace: &Namespace,
        ports: Ports,
        milliseconds: u64,
    ) -> Result<Packets> {
        let command = namespace.urgent(&self.binary);
        self.send(command, ports, "max", milliseconds, &[])
    }

    /// So many a second, by a thread that spins.
    pub(crate) fn paced(
        &self,
        namespace: &Namespace,
        ports: Ports,
        packets_per_s: f64,
        milliseconds: u64,
    ) -> Result<Packets> {
        let command = namespace.urgent(&self.binary);
        // One thread: with the forwarder that makes two that spin.
        let exact = ["--spin", "--threads", "1"];
        self.send(
            command,
            ports,
            &packets_per_s.to_string(),
            milliseconds,
            &exact,
        )
    }

    fn send(
        &self,
        command: Command,
        ports: Ports,
        rate: &str,
        milliseconds: u64,
        more: &[&str],
    ) -> Result<Packets> {
        let (from, to) = match ports {
            Ports::Packet { receives } => ("packet:p0", receives.then_some("packet:p1")),
            Ports::Xdp { receives } => ("xdp:p0", receives.then_some("xdp:p1")),
            Ports::Memory { .. } => ("mem:", Some("mem:")),
        };
        let duration = format!("{milliseconds}ms");
        let mut words = vec!["packets", "--tx", from, "--size", "64"];
        words.extend(["--rate", rate, "--duration", &duration]);
        match to {
            Some(to) => words.extend(["--rx", to]),
            // Nobody is there whose address could be asked.
            None => words.extend(["--dst-mac", "02:00:00:00:00:02"]),
        }
        if let Ports::Memory { threads } = ports {
            words.extend(["--threads", if threads == 1 { "1" } else { "2" }]);
        }
        words.extend(more);
        let said = self.ask(command, &words)?;
        Ok(Packets {
            sent: said.number("sent")?,
            matched: said.maybe("matched"),
            seconds: said.number("seconds")?,
            cpu_s: said.cpu_s,
            latency_p50_ns: said.maybe("latency.p50_ns"),
        })
    }

    /// Takes whatever is sent.
    pub(crate) fn sink(&self, namespace: &Namespace, host: &str) -> Result<Server> {
        let listen = format!("{host}:0");
        let words = ["tcp", "serve", "--service", "sink", "--listen", &listen];
        let mut command = namespace.urgent(&self.binary);
        command.arg("load").args(words);
        command.args(["--until-stdin-ends", "--json"]);
        Server::start("hopscope load tcp serve", command)
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// By `program`, which is this binary somewhere: one connection, one request under way, as the C client.
    pub(crate) fn round_trips(
        &self,
        program: Command,
        host: &str,
        server: &Server,
        size: u32,
        milliseconds: u64,
    ) -> Result<RoundTrips> {
        let to = format!("{host}:{}", server.port);
        let (size, duration) = (size.to_string(), format!("{milliseconds}ms"));
        let words = [
            "tcp",
            "rr",
            &to,
            "--closed",
            "--size",
            &size,
            "--duration",
            &duration,
        ];
        let said = self.ask(program, &words)?;
        Ok(RoundTrips {
            mean_ns: said.number("elapsed_s")? * 1e9 / said.number("done")?,
            p50_ns: said.number("latency.p50_ns")?,
        })
    }

    pub(crate) fn stream_bits_per_s(
        &self,
        namespace: &Namespace,
        host: &str,
        sink: &Server,
        milliseconds: u64,
    ) -> Result<f64> {
        let to = format!("{host}:{}", sink.port);
        let duration = format!("{milliseconds}ms");
        let words = [
            "tcp",
            "stream",
            &to,
            "--size",
            "128K",
            "--duration",
            &duration,
        ];
        Ok(self
            .ask(namespace.command(&self.binary), &words)?
            .number("sent_mbit_per_s")?
            * 1e6)
    }
}
