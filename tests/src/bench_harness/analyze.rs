//! `bench analyze` from outside, on a small recording.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Gcc, Root};
    suite
        .case(
            "bench_harness::analyze_gives_its_figures",
            &[Root, Fsgsbase, Gcc],
            figures,
        )
        .in_turn();
}

fn figures() -> Result<()> {
    let out = bench("analyze", &[])?.expect_code(0)?;
    let last = out.stdout.lines().last().context("nothing was printed")?;
    let summary: Value = serde_json::from_str(last)?;
    let bytes = summary["recording"]["bytes"].as_f64().context("bytes")?;
    let least = counts().pick(20e6, 250e6);
    ensure!(bytes >= least, "{summary}");
    ensure!(summary["records_per_s"].as_f64() > Some(0.0), "{summary}");
    // A reader that holds the whole of the larger recording takes more than its bytes.
    let peak = summary["peak_rss_mib"].as_f64().context("peak")?;
    ensure!((1.0..240.0).contains(&peak), "{summary}");
    let views = summary["views"].as_array().context("no views")?;
    let names: Vec<_> = views.iter().filter_map(|v| v["view"].as_str()).collect();
    ensure!(names == ["function", "tree", "run"], "{names:?}");
    Ok(())
}
