//! Clients released together: connect, send, read the echo. What the published table of such servers
//! measures, with what the kernel counted beside it.
use super::Bench;
use super::request_rates::Path;
use super::servers::{Running, ServerKind};
use crate::error::{Error, Result};
use crate::load::network::Namespace;
use crate::program::{last_words, run};
use crate::said;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};

/// As in the published table.
pub(super) const SIZE: u32 = 13;

#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    mean_ns: Vec<f64>,
    p50_ns: Vec<f64>,
    p99_ns: Vec<f64>,
    max_ns: Vec<f64>,
    pub(super) failures: f64,
    pub(super) listen_overflows: f64,
    pub(super) timeouts: f64,
    pub(super) descriptors: Option<u64>,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) path: &'static str,
    pub(super) server: ServerKind,
    /// Of the accept queue.
    pub(super) backlog: u32,
    pub(super) clients: u32,
    pub(super) one_processor: bool,
    /// Medians of the rounds.
    pub(super) mean_us: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
    pub(super) failures: f64,
    pub(super) listen_overflows: f64,
    /// Retransmission time-outs.
    pub(super) timeouts: f64,
    /// To which the client's limit was raised.
    pub(super) descriptors: Option<u64>,
}

pub(super) struct Shape {
    pub(super) clients: u32,
    pub(super) backlog: u32,
    pub(super) one_processor: bool,
    pub(super) rounds: usize,
}

pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    servers: &[Running],
    shape: &Shape,
) -> Result<Vec<Row>> {
    let mut found = vec![Found::default(); servers.len()];
    for round in 0..shape.rounds {
        let what = format!("{}: {} clients released together", path.name, shape.clients);
        bench.say(&what, round);
        for at in 0..servers.len() {
            let at = (at + round) % servers.len();
            let before = listen_overflows(path.server)?;
            let said = release(bench, path, &servers[at], shape)?;
            let overflows = listen_overflows(path.server)? - before;
            add(&mut found[at], &said, overflows)?;
            bench.sample(json!({
                "what": "released", "path": path.name, "round": round,
                "server": servers[at].kind, "backlog": shape.backlog,
                "clients": shape.clients, "one_processor": shape.one_processor,
                "latency": said["latency"], "failed": said["failed"], "kernel": said["kernel"],
                "listen_overflows": overflows,
            }))?;
        }
    }
    let rows = servers.iter().zip(&found);
    Ok(rows
        .filter_map(|(server, found)| row(path.name, server.kind, shape, found))
        .collect())
}

fn release(
    bench: &Bench<'_, '_>,
    path: &Path<'_>,
    server: &Running,
    shape: &Shape,
) -> Result<Value> {
    let binary = &bench.settings.hopscope;
    let mut command = if shape.one_processor {
        path.client.in_its_network_on_one_processor(binary)
    } else {
        path.client.in_its_network(binary)
    };
    let to = format!("{}:{}", path.host, server.port);
    let (clients, size) = (shape.clients.to_string(), SIZE.to_string());
    command.args(["load", "tcp", "echo", &to, "-n", &clients, "--size", &size]);
    // RST at the end: the ports of one round are free for the next.
    command.args(["--close", "reset", "--timeout", "10s", "--json"]);
    let program = "hopscope load tcp echo";
    let done = command.output().map_err(Error::start(program))?;
    // 1: some clients failed, which the summary counts.
    if !matches!(done.status.code(), Some(0 | 1)) {
        return Err(Error::failed(
            program,
            done.status,
            last_words(&String::from_utf8_lossy(&done.stderr)),
        ));
    }
    said::last_line(program, &String::from_utf8_lossy(&done.stdout))
}

/// Of the server's namespace: a client in another one does not see them.
fn listen_overflows(server: &Namespace) -> Result<f64> {
    let mut command = server.in_its_network("cat");
    let text = run(command.arg("/proc/self/net/netstat"))?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(name, _)| *name == "ListenOverflows");
    let count = found.and_then(|(_, value)| value.parse().ok());
    count.ok_or_else(|| Error::no_field("/proc/net/netstat", "ListenOverflows", names))
}

/// What `hopscope load` said of one release, and what the kernel counted meanwhile.
pub(super) fn add(found: &mut Found, said: &Value, overflows: f64) -> Result<()> {
    let number = |at: &str| said::number("hopscope load tcp echo", said, at);
    found.mean_ns.push(number("/latency/mean_ns")?);
    found.p50_ns.push(number("/latency/p50_ns")?);
    found.p99_ns.push(number("/latency/p99_ns")?);
    found.max_ns.push(number("/latency/max_ns")?);
    found.failures += number("/failed")? + number("/corrupt")? + number("/unsent")?;
    // Counters that never moved are not in the list.
    let kernel = |name: &str| said["kernel"][name].as_f64().unwrap_or(0.0);
    found.listen_overflows += overflows;
    found.timeouts += kernel("TcpExt.TCPTimeouts");
    found.descriptors = found
        .descriptors
        .max(said["descriptors_raised_to"].as_u64());
    Ok(())
}

pub(super) fn row(
    path: &'static str,
    server: ServerKind,
    shape: &Shape,
    found: &Found,
) -> Option<Row> {
    let us = |values: &[f64]| Some(Spread::of(values)?.median / 1e3);
    Some(Row {
        path,
        server,
        backlog: shape.backlog,
        clients: shape.clients,
        one_processor: shape.one_processor,
        mean_us: us(&found.mean_ns)?,
        p50_us: us(&found.p50_ns)?,
        p99_us: us(&found.p99_ns)?,
        max_us: us(&found.max_ns)?,
        failures: found.failures,
        listen_overflows: found.listen_overflows,
        timeouts: found.timeouts,
        descriptors: found.descriptors,
    })
}
