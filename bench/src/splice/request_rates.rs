//! Standing connections: requests a second, and how long each takes.
use super::Bench;
use super::servers::{Running, ServerKind};
use crate::error::Result;
use crate::load::network::Namespace;
use crate::program::run_as;
use crate::said;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Load {
    pub(super) connections: u32,
    pub(super) size: u32,
}

/// Of one server under one load, over all rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    rates: Vec<f64>,
    p50_ns: Vec<f64>,
    p99_ns: Vec<f64>,
    pub(super) failures: f64,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) path: &'static str,
    pub(super) server: ServerKind,
    pub(super) connections: u32,
    pub(super) size: u32,
    pub(super) requests_per_s: Spread,
    pub(super) mbit_per_s: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Medians of the ratios of each round to one thread with epoll; none where in no round both answered anything.
    pub(super) rate_vs_user: Option<Spread>,
    pub(super) p50_vs_user: Option<Spread>,
    pub(super) failures: f64,
    /// Windows in which nothing was answered: the machine was busy with others.
    pub(super) idle_rounds: usize,
}

pub(super) struct Path<'a> {
    pub(super) name: &'static str,
    pub(super) client: &'a Namespace,
    pub(super) server: &'a Namespace,
    pub(super) host: &'static str,
}

pub(super) fn loads(quick: bool) -> Vec<Load> {
    let (connections, sizes): (&[u32], &[u32]) = if quick {
        (&[1, 64], &[64, 4096])
    } else {
        (&[1, 16, 64, 256], &[64, 4096, 131_072])
    };
    let of = |size: &u32| {
        let size = *size;
        let loads = connections.iter();
        loads.map(move |connections| Load {
            connections: *connections,
            size,
        })
    };
    sizes.iter().flat_map(of).collect()
}

pub(super) type All = BTreeMap<(Load, ServerKind), Found>;

/// Every server in each round, in an order that changes.
pub(super) fn measure(
    bench: &mut Bench<'_, '_>,
    path: &Path<'_>,
    servers: &[Running],
) -> Result<(Vec<Row>, All)> {
    let mut all = All::new();
    for round in 0..bench.rounds {
        bench.say(&format!("{}: standing connections", path.name), round);
        for load in loads(bench.settings.quick) {
            for at in 0..servers.len() {
                let server = &servers[(at + round) % servers.len()];
                let said = ask(bench, path, server, load)?;
                all.entry((load, server.kind)).or_default().add(&said)?;
                bench.sample(json!({
                    "what": "standing", "path": path.name, "round": round,
                    "server": server.kind, "connections": load.connections,
                    "size": load.size, "said": said,
                }))?;
            }
        }
    }
    Ok((rows(path.name, &all), all))
}

pub(super) fn rows(path: &'static str, all: &All) -> Vec<Row> {
    let row = |((load, kind), found): (&(Load, ServerKind), &Found)| {
        let base = all.get(&(*load, ServerKind::User))?;
        row(path, *load, *kind, found, base)
    };
    all.iter().filter_map(row).collect()
}

impl Found {
    pub(super) fn p50_ns(&self) -> &[f64] {
        &self.p50_ns
    }

    pub(super) fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// What the client said of one window.
    pub(super) fn add(&mut self, said: &Value) -> Result<()> {
        let number = |at| said::number("the client", said, at);
        self.rates.push(number("/requests")? / number("/seconds")?);
        self.p50_ns.push(number("/p50_ns")?);
        self.p99_ns.push(number("/p99_ns")?);
        self.failures += number("/failed")? + number("/wrong")?;
        Ok(())
    }
}

fn ask(bench: &Bench<'_, '_>, path: &Path<'_>, server: &Running, load: Load) -> Result<Value> {
    let mut command = path.client.in_its_network(&bench.ask);
    let (connections, size) = (load.connections.to_string(), load.size.to_string());
    let milliseconds = bench.milliseconds.to_string();
    command.args([path.host, &server.port, &connections, &size, &milliseconds]);
    let line = run_as("the client", &mut command)?;
    Ok(serde_json::from_str(&line).unwrap_or_default())
}

pub(super) fn ratios(of: &[f64], to: &[f64]) -> Option<Spread> {
    // A window in which nothing was answered has no ratio; it is in `idle_rounds`.
    let pairs = of
        .iter()
        .zip(to)
        .filter(|(of, to)| **of > 0.0 && **to > 0.0);
    let ratios: Vec<f64> = pairs.map(|(of, to)| of / to).collect();
    Spread::of(&ratios)
}

fn row(
    path: &'static str,
    load: Load,
    kind: ServerKind,
    found: &Found,
    base: &Found,
) -> Option<Row> {
    let rates = Spread::of(&found.rates)?;
    Some(Row {
        path,
        server: kind,
        connections: load.connections,
        size: load.size,
        requests_per_s: rates,
        mbit_per_s: rates.median * f64::from(load.size) * 8.0 / 1e6,
        p50_us: Spread::of(&found.p50_ns)?.median / 1e3,
        p99_us: Spread::of(&found.p99_ns)?.median / 1e3,
        rate_vs_user: ratios(&found.rates, &base.rates),
        p50_vs_user: ratios(&found.p50_ns, &base.p50_ns),
        failures: found.failures,
        idle_rounds: found.rates.iter().filter(|rate| **rate == 0.0).count(),
    })
}

/// Requests a second of one server to those of another, median of the rounds.
pub(super) fn rate_ratio(all: &All, load: Load, of: ServerKind, to: ServerKind) -> Option<f64> {
    let (of, to) = (all.get(&(load, of))?, all.get(&(load, to))?);
    Some(ratios(&of.rates, &to.rates)?.median)
}

pub(super) fn p50_ratio(all: &All, load: Load, of: ServerKind, to: ServerKind) -> Option<f64> {
    let (of, to) = (all.get(&(load, of))?, all.get(&(load, to))?);
    Some(ratios(&of.p50_ns, &to.p50_ns)?.median)
}
