//! `bench case-density` from outside: three network functions at work, measured at the densities that
//! were asked for, and gone afterwards.
use super::{bench, demo};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Dpdk, Fsgsbase, Gcc, Netns, Root};
    suite
        .case(
            "bench_harness::case_density_gives_its_figures",
            &[Root, Netns, Fsgsbase, Gcc, Dpdk],
            figures,
        )
        .soak()
        .in_turn();
}

fn figures() -> Result<()> {
    let dir = scratch().join("results");
    let saved = dir.display().to_string();
    let demo = demo()?;
    let out = bench("case-density", &["--demo", &demo, "--save", &saved])?;
    let last = out.stdout.lines().last().context("nothing was printed")?;
    let summary: Value = serde_json::from_str(last)?;
    ensure!(summary["type"] == "summary" && summary["bench"] == "case-density");
    for field in [
        "loss_vs_model",
        "throughput_lost_percent",
        "latency_mean_off_percent",
        "latency_rank_correlation",
    ] {
        ensure!(summary[field].is_number(), "no {field} in {summary}");
    }
    let levels = summary["levels"].as_array().context("no levels")?;
    let names: BTreeSet<_> = levels
        .iter()
        .filter_map(|l| l["network_function"].as_str())
        .collect();
    let all: &[&str] = counts().pick(&["firewall"], &["firewall", "ipsec", "nat"]);
    let missing: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| !names.contains(name))
        .collect();
    let why = &summary["not_measured"];
    ensure!(
        missing.is_empty() && out.code == Some(0),
        "{missing:?} missing, {:?}: {why}",
        out.code
    );
    for level in levels {
        let number = |key: &str| level[key].as_f64().context(key.to_owned());
        ensure!(
            number("bare_ns")? > 0.0 && number("probe_pairs_per_packet")? > 0.0,
            "{level}"
        );
        // What was asked in executions is measured in pairs: the choice was right, roughly.
        let density = level["density"].as_str().context("density")?;
        let executions: f64 = density.split(' ').next().unwrap_or_default().parse()?;
        let batch = if density.ends_with("batch") {
            32.0
        } else {
            1.0
        };
        let ratio = number("probe_pairs_per_packet")? * 2.0 * batch / executions;
        ensure!(
            (0.5..2.0).contains(&ratio),
            "{ratio} times the density asked: {level}"
        );
    }
    ensure!(dir.join("case-density.md").exists() && dir.join("case-density.jsonl").exists());
    Ok(())
}
