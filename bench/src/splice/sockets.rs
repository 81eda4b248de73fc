//! The same two programs in C over redirected connections, over AF_UNIX sockets and over plain TCP, in turn: what is
//! left of a socket's way when there is no protocol below it is AF_UNIX, and redirected connections can be no faster
//! than the calls that they are made of. Each end has a processor of its own, and nothing else runs there.
use super::request_rates::{Found, Load, Path, ratios};
use super::servers::{Accelerator, more};
use super::{Bench, a_processor_each};
use crate::error::Result;
use crate::load::network::Server;
use crate::not_measured::NotMeasured;
use crate::program::run_as;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};

/// The first one is the headline.
const LOADS: [Load; 3] = [
    Load {
        connections: 64,
        size: 64,
    },
    Load {
        connections: 1,
        size: 64,
    },
    Load {
        connections: 64,
        size: 4096,
    },
];
/// A round of these is short: more of them, for a ratio that is to be told from its goal.
const ROUNDS_EACH: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Redirected,
    Unix,
    Tcp,
}

const WAYS: [Way; 3] = [Way::Redirected, Way::Unix, Way::Tcp];

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) connections: u32,
    pub(super) size: u32,
    pub(super) redirected_per_s: Spread,
    pub(super) unix_per_s: Spread,
    pub(super) tcp_per_s: Spread,
    /// Of each round.
    pub(super) redirected_vs_unix: Spread,
    pub(super) redirected_vs_tcp: Spread,
    pub(super) unix_vs_tcp: Spread,
    pub(super) failures: f64,
    /// Messages of the redirected one that were redirected, and that took TCP.
    pub(super) direct_messages: u64,
    pub(super) tcp_messages: u64,
}

struct Servers {
    /// In the order of [`WAYS`], with where clients go.
    servers: [(Server, String); 3],
    accelerator: Accelerator,
}

pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    missing: &mut Vec<NotMeasured>,
) -> Result<Vec<Row>> {
    let Some((first, last)) = a_processor_each("redirected connections beside AF_UNIX", missing)
    else {
        return Ok(Vec::new());
    };
    let servers = start(bench, path, &first)?;
    let mut rows = Vec::new();
    for load in LOADS {
        rows.extend(one(bench, path, &servers, load, &last)?);
    }
    Ok(rows)
}

fn start(bench: &Bench<'_, '_>, path: &Path<'_>, processor: &str) -> Result<Servers> {
    let answer = bench.program("answer", include_str!("answer.c"))?;
    let place = bench.files.join("unix").display().to_string();
    let start = |at: &str| {
        let mut command = path.server.in_its_network_urgent_on(processor, &answer);
        command.arg(at);
        Server::start("the server", command)
    };
    std::fs::create_dir_all(&bench.files)
        .map_err(crate::error::Error::file("create", &bench.files))?;
    let (redirected, unix, tcp) = (start("tcp")?, start(&place)?, start("tcp")?);
    let port = std::slice::from_ref(&redirected.port);
    let accelerator = Accelerator::start(&bench.settings.hopscope, &bench.files, port, &[])?;
    let host = || path.host.to_owned();
    Ok(Servers {
        servers: [(redirected, host()), (unix, place), (tcp, host())],
        accelerator,
    })
}

fn one(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    servers: &Servers,
    load: Load,
    processor: &str,
) -> Result<Option<Row>> {
    let mut found = [Found::default(), Found::default(), Found::default()];
    let before = servers.accelerator.stat()?;
    for round in 0..bench.rounds * ROUNDS_EACH {
        bench.say(
            &format!("{} sockets in three ways", load.connections),
            round,
        );
        for turn in 0..WAYS.len() {
            let at = (turn + round) % WAYS.len();
            let (server, host) = &servers.servers[at];
            let port = if server.port.is_empty() {
                "0"
            } else {
                &server.port
            };
            let mut command = path.client.in_its_network_urgent_on(processor, &bench.ask);
            let words = [
                u64::from(load.connections),
                u64::from(load.size),
                bench.milliseconds,
            ];
            command
                .args([host, port])
                .args(words.map(|n| n.to_string()));
            let line = run_as("the client", &mut command)?;
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            found[at].add(&said)?;
            bench.sample(json!({
                "what": "sockets", "round": round, "way": WAYS[at],
                "connections": load.connections, "size": load.size, "said": said,
            }))?;
        }
    }
    let after = servers.accelerator.stat()?;
    let counts = (
        more(&before, &after, "direct_messages")?,
        more(&before, &after, "tcp_messages")?,
    );
    Ok(row(load, &found, counts))
}

fn row(load: Load, found: &[Found; 3], counts: (u64, u64)) -> Option<Row> {
    let [redirected, unix, tcp] = [found[0].rates(), found[1].rates(), found[2].rates()];
    Some(Row {
        connections: load.connections,
        size: load.size,
        redirected_per_s: Spread::of(redirected)?,
        unix_per_s: Spread::of(unix)?,
        tcp_per_s: Spread::of(tcp)?,
        redirected_vs_unix: ratios(redirected, unix)?,
        redirected_vs_tcp: ratios(redirected, tcp)?,
        unix_vs_tcp: ratios(unix, tcp)?,
        failures: found.iter().map(|one| one.failures).sum(),
        direct_messages: counts.0,
        tcp_messages: counts.1,
    })
}

/// Of connections that were redirected; others say nothing of it.
pub(super) fn headline(rows: &[Row]) -> Option<&Row> {
    let is_it = |row: &&Row| (row.connections, row.size) == (LOADS[0].connections, LOADS[0].size);
    let row = rows.iter().find(is_it)?;
    (row.direct_messages > row.tcp_messages).then_some(row)
}

pub(super) fn line(row: &Row) -> String {
    format!(
        "{:>6} B x {:<4} redirected {:>9.0}/s  AF_UNIX {:>9.0}/s  TCP {:>9.0}/s  x of AF_UNIX {:.2} ({:.2} .. {:.2}), \
         of TCP {:.2}; AF_UNIX of TCP {:.2}",
        row.size,
        row.connections,
        row.redirected_per_s.median,
        row.unix_per_s.median,
        row.tcp_per_s.median,
        row.redirected_vs_unix.median,
        row.redirected_vs_unix.p10,
        row.redirected_vs_unix.p90,
        row.redirected_vs_tcp.median,
        row.unix_vs_tcp.median
    )
}
