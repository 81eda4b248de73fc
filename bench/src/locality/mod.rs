//! `bench case-locality`: the same packets in another order. Five-tuple filter, 3,000 rules, packets of
//! a flow back to back in ever longer rows (spatial locality factor). After Fig. 14 of the source
//! paper: what a packet costs falls with it, and so do the misses of the first-level data cache;
//! instructions and loads do not.
mod cachegrind;
mod report;

use crate::Settings;
use crate::error::{Error, Result};
use crate::function::{BATCH, Processors, Running, firewall};
use crate::hopscope::Hopscope;
use crate::not_measured::NotMeasured;
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use report::{Figures, Order, Round};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Packets of a flow back to back.
const FACTORS: [&str; 7] = ["1", "2", "4", "8", "16", "32", "64"];
const FACTORS_LEAST: [&str; 2] = ["1", "64"];
/// 1,024 flows, each decided by one of so many rules.
const RULES: [&str; 2] = ["--rules-count", "3000"];
/// The module that looks packets up in the rules, and the whole pass of a batch.
const MEASURED: [&str; 2] = ["acl_match", "pipeline_run"];

pub fn run(settings: &Settings, demo: Option<&PathBuf>, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let processors = Processors::divide()?;
    let hopscope = Hopscope::of(settings);
    let start = |factor: &'static str| {
        let options = [&RULES[..], &["--slf", factor]].concat();
        let nf = firewall::on_packets_from_memory(settings, &processors, demo, factor, &options)?;
        nf.hold(true)?;
        Ok::<_, Error>(nf)
    };
    let factors = settings.pick(&FACTORS_LEAST[..], &FACTORS, &FACTORS);
    let mut all = factors
        .iter()
        .map(|f| start(f))
        .collect::<Result<Vec<_>>>()?;
    let (rounds, milliseconds) = settings.pick((1, 20), (5, 100), (21, 300));
    let mut orders: Vec<Order> = factors.iter().map(|factor| Order::new(factor)).collect();
    for round in 0..rounds {
        settings.say(&format!("round {} of {rounds}", round + 1));
        // Upwards, then downwards: a drift of the machine meets all alike.
        for step in 0..all.len() {
            let at = if round % 2 == 0 {
                step
            } else {
                all.len() - 1 - step
            };
            let measured = measure(&hopscope, &mut all[at], milliseconds)?;
            output.sample(json!({"slf": factors[at], "round": round, "measured": measured}))?;
            orders[at].rounds.push(measured);
        }
    }
    drop(all);
    let mut not_measured = vec![counters(&hopscope)?];
    for order in &mut orders {
        settings.say(&format!(
            "instructions and misses by cachegrind, SLF {}",
            order.slf
        ));
        match cachegrind::count(
            settings,
            demo,
            &[&RULES[..], &["--slf", order.slf]].concat(),
        ) {
            Ok(counts) => order.counts = Some(counts),
            Err(error) => not_measured.push(NotMeasured::new(
                format!("cachegrind's counts at SLF {}", order.slf),
                error,
            )),
        }
    }
    let summary = Figures {
        orders,
        not_measured,
    }
    .summary();
    Ok(output.summary(&host, summary)?)
}

/// Bare first, then with two functions measured.
fn measure(hopscope: &Hopscope, nf: &mut Running, milliseconds: u64) -> Result<Round> {
    nf.hold(false)?;
    let bare_ns = nf.ns_per_packet(milliseconds)?;
    let patterns = MEASURED.map(|function| format!("*!{function}"));
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let recording = hopscope.record(nf.pid(), &patterns, &[])?;
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    let recorded = recording.stop()?;
    nf.hold(true)?;
    let path = recorded.file.display().to_string();
    let rows = hopscope.ask(&["report", &path, "--by", "function", "--json"])?;
    recorded.discard()?;
    let p50 = |function: &str| {
        let row = rows
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .find(|row| row["function"] == function);
        let corrected = |row: &Value| row["total_corrected_p50_ns"].as_f64();
        row.as_ref().and_then(corrected).ok_or_else(|| {
            Error::no_field(
                "hopscope report --json",
                format!("total_corrected_p50_ns of {function}"),
                rows.lines().next().unwrap_or_default(),
            )
        })
    };
    Ok(Round {
        bare_ns,
        lookup_ns: p50(MEASURED[0])? / f64::from(BATCH),
        batch_ns: p50(MEASURED[1])?,
    })
}

/// The counters of the processor, which no recording holds: why not.
fn counters(hopscope: &Hopscope) -> Result<NotMeasured> {
    let said = hopscope.ask(&["check", "--json"])?;
    let pmu = said
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find(|line| line["name"] == "pmu");
    let reason = match pmu {
        Some(pmu) if pmu["state"] == "ok" => "recordings hold no counters yet".to_owned(),
        Some(pmu) => pmu["found"].as_str().unwrap_or("no PMU").to_owned(),
        None => "hopscope check does not say whether there is a PMU".to_owned(),
    };
    Ok(NotMeasured::new(
        "instructions, loads and misses of the processor itself",
        reason,
    ))
}
