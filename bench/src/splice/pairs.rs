//! What `--pair` is worth: the same two programs in C, by plain TCP with a processor for each end, redirected, and
//! redirected with `--pair`, in turn. One connection is wake-ups; many are work for both ends at the same time, which
//! must not be slower.
use super::request_rates::{Found, Path, ratios};
use super::servers::{Accelerator, more};
use super::{Bench, a_processor_each};
use crate::error::Result;
use crate::load::network::Server;
use crate::not_measured::NotMeasured;
use crate::program::run_as;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};

const CONNECTIONS: [u32; 2] = [1, 64];
const SIZE: u32 = 64;
/// Until both ends are placed: two tenths of a second in which they take turns, and the looks around these.
const WARM_UP_MS: u64 = 700;
const MILLISECONDS: u64 = 300;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// Plain TCP, a processor for each end.
    Apart,
    Redirected,
    Paired,
}

const WAYS: [Way; 3] = [Way::Apart, Way::Redirected, Way::Paired];

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) connections: u32,
    pub(super) apart_per_s: Spread,
    pub(super) redirected_per_s: Spread,
    pub(super) paired_per_s: Spread,
    pub(super) apart_p50_us: f64,
    pub(super) redirected_p50_us: f64,
    pub(super) paired_p50_us: f64,
    /// Of each round: requests a second, and how many times shorter the median is.
    pub(super) paired_vs_apart: Spread,
    pub(super) apart_p50_vs_paired: Spread,
    pub(super) paired_vs_redirected: Spread,
    pub(super) failures: f64,
    /// Times that both ends were placed.
    pub(super) placed: u64,
}

struct Ends {
    /// In the order of [`WAYS`].
    servers: [Server; 3],
    accelerators: [Accelerator; 2],
    last: String,
}

pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    missing: &mut Vec<NotMeasured>,
) -> Result<Vec<Row>> {
    let Some((first, last)) = a_processor_each("--pair", missing) else {
        return Ok(Vec::new());
    };
    let answer = bench.program("answer", include_str!("answer.c"))?;
    let both = format!("{first},{last}");
    let start = |processors: &str| {
        let mut command = path.server.in_its_network_urgent_on(processors, &answer);
        command.arg("tcp");
        Server::start("the server", command)
    };
    let servers = [start(&first)?, start(&both)?, start(&both)?];
    let accelerator = |server: &Server, more: &[&str]| {
        let port = std::slice::from_ref(&server.port);
        Accelerator::start(&bench.settings.hopscope, &bench.files, port, more)
    };
    let accelerators = [
        accelerator(&servers[1], &[])?,
        accelerator(&servers[2], &["--pair"])?,
    ];
    let ends = Ends {
        servers,
        accelerators,
        last,
    };
    let mut rows = Vec::new();
    for connections in CONNECTIONS {
        rows.extend(one(bench, path, &ends, connections, &both)?);
    }
    Ok(rows)
}

fn one(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    ends: &Ends,
    connections: u32,
    both: &str,
) -> Result<Option<Row>> {
    let mut found = [Found::default(), Found::default(), Found::default()];
    let before = ends.accelerators[1].stat()?;
    for round in 0..bench.rounds {
        bench.say(&format!("{connections} connections, --pair"), round);
        for turn in 0..WAYS.len() {
            let at = (turn + round) % WAYS.len();
            let processors = match WAYS[at] {
                Way::Apart => &ends.last,
                Way::Redirected | Way::Paired => both,
            };
            let mut command = path.client.in_its_network_urgent_on(processors, &bench.ask);
            let words = [
                u64::from(connections),
                u64::from(SIZE),
                MILLISECONDS,
                WARM_UP_MS,
            ];
            command.args([path.host, &ends.servers[at].port]);
            let line = run_as("the client", command.args(words.map(|n| n.to_string())))?;
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            found[at].add(&said)?;
            bench.sample(json!({
                "what": "pairs", "round": round, "way": WAYS[at], "connections": connections,
                "said": said,
            }))?;
        }
    }
    let after = ends.accelerators[1].stat()?;
    let placed = more(&before, &after, "pairs_placed")?;
    Ok(row(connections, &found, placed))
}

fn row(connections: u32, found: &[Found; 3], placed: u64) -> Option<Row> {
    let [apart, redirected, paired] = found;
    let us = |found: &Found| Some(Spread::of(found.p50_ns())?.median / 1e3);
    Some(Row {
        connections,
        apart_per_s: Spread::of(apart.rates())?,
        redirected_per_s: Spread::of(redirected.rates())?,
        paired_per_s: Spread::of(paired.rates())?,
        apart_p50_us: us(apart)?,
        redirected_p50_us: us(redirected)?,
        paired_p50_us: us(paired)?,
        paired_vs_apart: ratios(paired.rates(), apart.rates())?,
        apart_p50_vs_paired: ratios(apart.p50_ns(), paired.p50_ns())?,
        paired_vs_redirected: ratios(paired.rates(), redirected.rates())?,
        failures: found.iter().map(|one| one.failures).sum(),
        placed,
    })
}

/// Of one connection, if its ends were placed.
pub(super) fn headline(rows: &[Row]) -> Option<&Row> {
    let row = rows.iter().find(|row| row.connections == 1)?;
    (row.placed > 0).then_some(row)
}

pub(super) fn line(row: &Row) -> String {
    format!(
        "{:>4} connections  apart {:>9.0}/s p50 {:>7.1} us  redirected {:>9.0}/s {:>7.1} us  --pair {:>9.0}/s {:>7.1} us  \
         x {:.2} of apart, {:.2} of redirected; placed {} times",
        row.connections,
        row.apart_per_s.median,
        row.apart_p50_us,
        row.redirected_per_s.median,
        row.redirected_p50_us,
        row.paired_per_s.median,
        row.paired_p50_us,
        row.paired_vs_apart.median,
        row.paired_vs_redirected.median,
        row.placed
    )
}
