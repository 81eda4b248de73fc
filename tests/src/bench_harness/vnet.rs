//! `bench vnet` from outside: every policy under every load, in turn, and both ends of one opinion.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "bench_harness::vnet_gives_its_figures",
            &[Requirement::Root, Requirement::Netns],
            figures,
        )
        .alone()
        .watchdog(900);
}

fn figures() -> Result<()> {
    let out = bench("vnet", &[])?.expect_code(0)?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    for field in [
        "adaptive_vs_best_fixed",
        "adaptive_latency_vs_plain_1kpps",
        "ahc_latency_vs_plain_1kpps",
    ] {
        ensure!(summary[field].is_number(), "no {field} in the summary");
    }
    let samples = |what: &str| {
        let samples = lines.iter().filter(|line| line["what"] == what);
        samples.map(|line| &line["run"]).collect::<Vec<_>>()
    };
    // Two rounds: three loads of seven policies; seven loads of six, with and without offloads.
    let (rings, networks) = (samples("rings"), samples("network"));
    ensure!(
        rings.len() == 2 * 3 * 7 && networks.len() == 2 * 2 * 7 * 6,
        "{} and {} samples",
        rings.len(),
        networks.len()
    );
    for run in rings {
        ensure!(run["ends_agree"] == true, "{run}");
        ensure!(run["packets_per_s"].as_f64() > Some(0.0), "{run}");
    }
    for run in networks {
        ensure!(run["value"].as_f64() > Some(0.0), "{run}");
    }
    // What `plain` is, to the unit: its front end kicks for each packet, its back end calls for each.
    for per_packet in ["kicks_per_packet", "calls_per_packet"] {
        let loads = summary[per_packet]["plain"].as_object();
        let loads = loads.with_context(|| format!("no {per_packet} of plain"))?;
        ensure!(
            loads.len() == 3 && loads.values().all(|n| *n == 1.0),
            "{per_packet}: {loads:?}"
        );
    }
    let does_not_win = summary["tam_does_not_win"].as_array();
    ensure!(
        does_not_win.is_some_and(|rows| rows.iter().all(|row| row["ratio"].is_number())),
        "{does_not_win:?}"
    );
    Ok(())
}
