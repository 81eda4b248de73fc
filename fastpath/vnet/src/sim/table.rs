//! Cells as a table, or as lines of JSON.
use super::{Costs, Defer, Load, Setup, SimResult, Suppression};
use crate::Ns;
use crate::policy::{BATCH_BUCKETS, PolicyCounts, PolicyKind};
use serde::Serialize;
use std::io::{self, Write};

pub fn head(out: &mut impl Write, setup: &Setup) -> io::Result<()> {
    let Costs {
        publish,
        kick,
        wake,
        serve,
        call,
        interrupt,
    } = setup.costs;
    writeln!(
        out,
        "{} packets a row, ring of {}, seed {}, suppression by {}; ns: publish {}, kick {}, wake {}, \
         serve {}, call {}, interrupt {}",
        setup.packets,
        setup.ring,
        setup.seed,
        match setup.suppression {
            Suppression::Flag => "flag",
            Suppression::Index => "index",
        },
        publish.0,
        kick.0,
        wake.0,
        serve.0,
        call.0,
        interrupt.0
    )?;
    if let Some(Defer { entries, time }) = setup.defer {
        let us = time.0 / 1_000;
        writeln!(out, "the device defers kicks: {entries} entries or {us} us")?;
    }
    writeln!(
        out,
        "{:>8} {:>5}  {:<16} {:<10} {:>9} {:>9} {:>10} {:>10} {:>9} {:>7}",
        "Mpps",
        "burst",
        "kicks",
        "calls",
        "kicks/pkt",
        "calls/pkt",
        "p50 us",
        "p99 us",
        "hold us",
        "Mpps"
    )
}

pub fn row(out: &mut impl Write, setup: &Setup, outcome: &SimResult) -> io::Result<()> {
    let us = |ns: Ns| ns.0 as f64 / 1e3;
    writeln!(
        out,
        "{:>8} {:>5}  {:<16} {:<10} {:>9.4} {:>9.4} {:>10.1} {:>10.1} {:>9.1} {:>7.3}",
        setup.load.mpps,
        setup.load.burst,
        setup.kick.to_string(),
        setup.call.to_string(),
        outcome.per_packet(outcome.kicks),
        outcome.per_packet(outcome.calls),
        us(outcome.p50),
        us(outcome.p99),
        us(outcome.kick_counts.hold_max),
        outcome.mpps()
    )
}

#[derive(Serialize)]
struct Cell<'a> {
    r#type: &'static str,
    schema: u32,
    #[serde(flatten)]
    load: Load,
    kick_policy: PolicyKind,
    call_policy: PolicyKind,
    packets: u64,
    reclaimed: u64,
    kicks: u64,
    calls: u64,
    kicks_per_packet: f64,
    calls_per_packet: f64,
    latency_p50_ns: u64,
    latency_p99_ns: u64,
    latency_max_ns: u64,
    lasted_ns: u64,
    achieved_mpps: f64,
    driver: &'a PolicyCounts,
    device: &'a PolicyCounts,
}

pub fn json(out: &mut impl Write, setup: &Setup, outcome: &SimResult) -> io::Result<()> {
    line(
        out,
        &Cell {
            r#type: "cell",
            schema: 1,
            load: setup.load,
            kick_policy: setup.kick,
            call_policy: setup.call,
            packets: outcome.packets,
            reclaimed: outcome.reclaimed,
            kicks: outcome.kicks,
            calls: outcome.calls,
            kicks_per_packet: outcome.per_packet(outcome.kicks),
            calls_per_packet: outcome.per_packet(outcome.calls),
            latency_p50_ns: outcome.p50.0,
            latency_p99_ns: outcome.p99.0,
            latency_max_ns: outcome.latency_max.0,
            lasted_ns: outcome.lasted.0,
            achieved_mpps: outcome.mpps(),
            driver: &outcome.kick_counts,
            device: &outcome.call_counts,
        },
    )
}

#[derive(Serialize)]
struct Summary {
    r#type: &'static str,
    schema: u32,
    cells: usize,
    seed: u64,
    ring: u32,
    suppression: Suppression,
    /// By how many entries, and nanoseconds, the device put kicks off; null: not at all.
    defer: Option<Defer>,
    cost_ns: Costs,
    /// Lower ends of the buckets of `batches`.
    batch_buckets: Vec<u64>,
    /// Loads at which `tam` kicked more often than `event-idx`, where both were run.
    tam_kicks_more_at: Vec<Load>,
    /// Loads at which `tam`'s median latency was longer than `event-idx`'s.
    tam_slower_at: Vec<Load>,
}

/// Where two-end aggregation does not win is part of the result.
pub fn end(
    out: &mut impl Write,
    first: &Setup,
    cells: &[(Setup, SimResult)],
    json: bool,
) -> io::Result<()> {
    let more = |worse: fn(&SimResult, &SimResult) -> bool| -> Vec<Load> {
        let of = |kick: fn(&PolicyKind) -> bool, load: Load| {
            let found = cells
                .iter()
                .find(|(setup, _)| setup.load == load && kick(&setup.kick));
            found.map(|(_, outcome)| outcome)
        };
        let mut loads: Vec<Load> = cells.iter().map(|(setup, _)| setup.load).collect();
        loads.dedup();
        loads.retain(|load| {
            let tam = of(|kick| matches!(kick, PolicyKind::Tam { .. }), *load);
            let index = of(|kick| *kick == PolicyKind::EventIdx, *load);
            tam.zip(index).is_some_and(|(tam, index)| worse(tam, index))
        });
        loads
    };
    let summary = Summary {
        r#type: "summary",
        schema: 1,
        cells: cells.len(),
        seed: first.seed,
        ring: first.ring,
        suppression: first.suppression,
        defer: first.defer,
        cost_ns: first.costs,
        batch_buckets: (0..BATCH_BUCKETS).map(|n| 1 << n).collect(),
        tam_kicks_more_at: more(|tam, index| tam.kicks > index.kicks),
        tam_slower_at: more(|tam, index| tam.p50 > index.p50),
    };
    if json {
        return line(out, &summary);
    }
    for (what, loads) in [
        ("tam kicks more than event-idx", &summary.tam_kicks_more_at),
        (
            "tam's median latency is above event-idx's",
            &summary.tam_slower_at,
        ),
    ] {
        if !loads.is_empty() {
            let names: Vec<String> = loads.iter().map(name).collect();
            writeln!(out, "{what} at {} Mpps", names.join(", "))?;
        }
    }
    Ok(())
}

fn name(load: &Load) -> String {
    match load.burst {
        1 => load.mpps.to_string(),
        burst => format!("{} (bursts of {burst})", load.mpps),
    }
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}
