//! `bench case-propagation` from outside: who waited for a planted slow packet is found.
use super::{bench, demo};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Gcc, Netns, Root};
    suite
        .case(
            "bench_harness::case_propagation_gives_its_figures",
            &[Root, Netns, Fsgsbase, Gcc],
            figures,
        )
        .soak()
        .in_turn();
}

fn figures() -> Result<()> {
    let demo = demo()?;
    let out = bench("case-propagation", &["--demo", &demo])?.expect_code(0)?;
    let last = out.stdout.lines().last().context("nothing was printed")?;
    let summary: Value = serde_json::from_str(last)?;
    let (natural, planted) = (&summary["unplanted"], &summary["planted"]);
    let modules = natural["modules"].as_array().context("no modules")?;
    ensure!(modules.len() == 10, "{natural}");
    ensure!(natural["runs"].as_f64() > Some(0.0), "{natural}");
    // Two in three packets of this rule set are passed on, and each 997th of those is slow.
    let slow = planted["slow_runs"].as_u64().context("slow runs")?;
    ensure!((10..=40).contains(&slow), "{planted}");
    let behind = planted["propagated_packets"].as_u64();
    ensure!(behind >= Some(slow), "{planted}");
    let ratio = summary["propagated_latency_ratio"].as_f64();
    ensure!(ratio > Some(1.0), "{summary}");
    let window = planted["window"].as_array().context("no window")?;
    ensure!(window.len() == 15, "{planted}");
    ensure!(window[3]["length_ns"].as_f64() >= Some(1e6), "{planted}");
    Ok(())
}
