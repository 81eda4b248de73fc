//! Programs as they are, over loopback: two of each, one of them joined with its clients, in turn under
//! the same load.
use super::Bench;
use super::request_rates::{Path, ratios};
use super::servers::{Accelerator, more};
use crate::error::{Error, Result};
use crate::not_measured::NotMeasured;
use crate::peers::installed;
use crate::program::{last_words, run_as};
use crate::said;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};

/// The same bytes come back; asyncio's own streams.
const ECHO: &str = "
import asyncio, logging, sys
# Clients end by RST, which it complains of; nobody reads that, and a full pipe stops it.
logging.disable()
async def serve(reader, writer):
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
";

/// The server above is a script, and asks no FIONREAD.
const ALLOW: &[&str] = &["--allow", "python3"];

/// Waits for a server to listen.
const LOOKS: u32 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    /// `redis-benchmark -P 1`, GET.
    Redis,
    /// In TCP mode before the plain echo server: two connections for each client.
    Haproxy,
    Asyncio,
}

const PROGRAMS: [Program; 3] = [Program::Redis, Program::Haproxy, Program::Asyncio];
const CONNECTIONS: [u32; 2] = [1, 50];

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Redis => "redis",
            Program::Haproxy => "haproxy",
            Program::Asyncio => "asyncio",
        }
    }

    fn needs(self) -> &'static [&'static str] {
        match self {
            Program::Redis => &["redis-server", "redis-benchmark"],
            Program::Haproxy => &["haproxy"],
            Program::Asyncio => &["python3"],
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) program: &'static str,
    pub(super) connections: u32,
    pub(super) plain_requests_per_s: Spread,
    pub(super) joined_requests_per_s: Spread,
    /// Of each round.
    pub(super) joined_vs_plain: Spread,
    pub(super) failures: f64,
    /// Of the joined one, all connections: messages that took the short cut, and that took TCP.
    pub(super) direct_messages: u64,
    pub(super) tcp_messages: u64,
}

/// A server, or two in a row, that ends with this.
struct Started {
    children: Vec<Child>,
    /// Where clients come.
    port: u16,
    ports: Vec<u16>,
}

impl Drop for Started {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Started {
    /// `first`: of the ports that it may use. The namespace is the bench's own.
    fn new(
        bench: &Bench<'_, '_>,
        path: &Path<'_>,
        program: Program,
        first: u16,
    ) -> Result<Started> {
        let mut started = Started {
            children: Vec::new(),
            port: first,
            ports: vec![first],
        };
        let port = first.to_string();
        match program {
            Program::Redis => {
                let mut command = path.server.in_its_network("redis-server");
                command.args(["--port", &port, "--bind", "127.0.0.1"]);
                command.args(["--save", "", "--appendonly", "no", "--dir"]);
                started.add(command.arg(&bench.files), first)?;
            }
            Program::Asyncio => {
                let mut command = path.server.in_its_network("python3");
                started.add(command.args(["-c", ECHO, &port]), first)?;
            }
            Program::Haproxy => {
                let behind = first + 1;
                let mut command = path.server.in_its_network(&bench.settings.hopscope);
                command.args(["splice", "echo", "--mode", "user", "--listen"]);
                command.arg(format!("127.0.0.1:{behind}"));
                started.add(&mut command, behind)?;
                started.ports.push(behind);
                let config = bench.files.join(format!("haproxy-{port}.cfg"));
                let text = format!(
                    "defaults\n  mode tcp\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
                     listen in\n  bind 127.0.0.1:{port}\n  server a 127.0.0.1:{behind}\n"
                );
                std::fs::write(&config, text).map_err(Error::file("write", &config))?;
                let mut command = path.server.in_its_network("haproxy");
                started.add(command.args(["-q", "-db", "-f"]).arg(&config), first)?;
            }
        }
        Ok(started)
    }

    fn add(&mut self, command: &mut Command, port: u16) -> Result<()> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::piped()).spawn();
        self.children.push(child.map_err(Error::start("nsenter"))?);
        let child = self.children.last_mut().expect("just pushed");
        // nsenter becomes the program: the table is that of its namespace (proc(5)).
        let table = format!("/proc/{}/net/tcp", child.id());
        let wanted = format!(":{port:04X} 00000000:0000 0A");
        for _ in 0..LOOKS {
            if std::fs::read_to_string(&table).is_ok_and(|text| text.contains(&wanted)) {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                let mut said = String::new();
                if let Some(mut stderr) = child.stderr.take() {
                    let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
                }
                return Err(Error::failed("a server", status, last_words(&said)));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Err(Error::failed(
            "a server",
            "it does not listen",
            format!("port {port}"),
        ))
    }

    /// Requests a second, and how many failed.
    fn ask(
        &self,
        bench: &Bench<'_, '_>,
        path: &Path<'_>,
        program: Program,
        connections: u32,
    ) -> Result<(f64, f64)> {
        let (port, count) = (self.port.to_string(), connections.to_string());
        if program == Program::Redis {
            let each = bench.settings.pick(500, 4_000, 15_000);
            let requests = each * connections.min(8);
            let mut command = path.client.in_its_network("redis-benchmark");
            command.args(["-p", &port, "-c", &count, "-P", "1", "-t", "get", "--csv"]);
            let said = run_as(
                "redis-benchmark",
                command.args(["-n", &requests.to_string()]),
            )?;
            let rate = rate_of(&said)
                .ok_or_else(|| Error::no_field("redis-benchmark", "GET", last_words(&said)))?;
            // It ends with an error at the first answer that is none.
            return Ok((rate, 0.0));
        }
        let mut command = path.client.in_its_network(&bench.ask);
        let milliseconds = bench.milliseconds.to_string();
        command.args([path.host, &port, &count, "64", &milliseconds]);
        let said = run_as("the client", &mut command)?;
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let number = |at| said::number("the client", &said, at);
        let rate = number("/requests")? / number("/seconds")?;
        Ok((rate, number("/failed")? + number("/wrong")?))
    }
}

/// `"GET","12345.67",…`
fn rate_of(csv: &str) -> Option<f64> {
    let line = csv
        .lines()
        .find_map(|line| line.strip_prefix("\"GET\",\""))?;
    line.split('"').next()?.parse().ok()
}

/// What could be measured, and why the rest could not.
pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    missing: &mut Vec<NotMeasured>,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    std::fs::create_dir_all(&bench.files).map_err(Error::file("create", &bench.files))?;
    for (at, program) in (0u16..).zip(PROGRAMS) {
        let what = || format!("{} joined and plain", program.name());
        let needs = program.needs().iter();
        if let Some(reason) = needs.filter_map(|name| installed(name).err()).next() {
            let what = what();
            missing.push(NotMeasured::new(what, reason));
            continue;
        }
        match one(bench, path, program, 7100 + 10 * at) {
            Ok(found) => rows.extend(found),
            Err(error) => missing.push(NotMeasured::new(what(), error)),
        }
    }
    Ok(rows)
}

fn one(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    program: Program,
    first: u16,
) -> Result<Vec<Row>> {
    let plain = Started::new(bench, path, program, first)?;
    let joined = Started::new(bench, path, program, first + 5)?;
    let ports: Vec<String> = joined.ports.iter().map(u16::to_string).collect();
    let hopscope = &bench.settings.hopscope;
    let accelerator = Accelerator::start(hopscope, &bench.files, &ports, ALLOW)?;
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        let (mut plain_rates, mut joined_rates, mut failures) = (Vec::new(), Vec::new(), 0.0);
        let before = accelerator.stat()?;
        for round in 0..bench.rounds {
            bench.say(
                &format!("{} of {connections} clients", program.name()),
                round,
            );
            // The first one finds the machine in the state that the second one left.
            for turn in 0..2 {
                let is_joined = (turn + round) % 2 == 1;
                let (server, rates) = if is_joined {
                    (&joined, &mut joined_rates)
                } else {
                    (&plain, &mut plain_rates)
                };
                let (rate, failed) = server.ask(bench, path, program, connections)?;
                rates.push(rate);
                failures += failed;
                bench.sample(json!({
                    "what": "program", "program": program.name(), "round": round,
                    "connections": connections, "joined": is_joined, "requests_per_s": rate,
                    "failures": failed,
                }))?;
            }
        }
        let after = accelerator.stat()?;
        let (Some(plain), Some(joined), Some(ratio)) = (
            Spread::of(&plain_rates),
            Spread::of(&joined_rates),
            ratios(&joined_rates, &plain_rates),
        ) else {
            continue;
        };
        rows.push(Row {
            program: program.name(),
            connections,
            plain_requests_per_s: plain,
            joined_requests_per_s: joined,
            joined_vs_plain: ratio,
            failures,
            direct_messages: more(&before, &after, "direct_messages")?,
            tcp_messages: more(&before, &after, "tcp_messages")?,
        });
    }
    Ok(rows)
}

/// Of a program at its most clients.
pub(super) fn headline(rows: &[Row], program: &str) -> Option<Spread> {
    let most = CONNECTIONS.into_iter().max()?;
    let row = rows
        .iter()
        .find(|row| row.program == program && row.connections == most)?;
    // Of programs that were not joined there is no such ratio.
    (row.direct_messages > row.tcp_messages).then_some(row.joined_vs_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_in_the_second_column() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\"\n\"GET\",\"81234.50\",\"0.3\"\n";
        assert_eq!(rate_of(csv), Some(81234.5));
        assert_eq!(rate_of("nothing"), None);
    }
}
