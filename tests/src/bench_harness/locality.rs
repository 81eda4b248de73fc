//! `bench case-locality` from outside. What the caches are asked and miss is simulated and the same on
//! every machine; times are the machine's own affair.
use super::{bench, demo};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Gcc, Root, Valgrind};
    suite
        .case(
            "bench_harness::case_locality_gives_its_figures",
            &[Root, Fsgsbase, Gcc, Valgrind],
            figures,
        )
        .in_turn();
}

fn figures() -> Result<()> {
    let demo = demo()?;
    let out = bench("case-locality", &["--demo", &demo])?.expect_code(0)?;
    let last = out.stdout.lines().last().context("nothing was printed")?;
    let summary: Value = serde_json::from_str(last)?;
    let number = |key: &str| {
        summary[key]
            .as_f64()
            .with_context(|| format!("{key}: {summary}"))
    };
    for times in ["lookup_ratio", "batch_ratio", "bare_ratio"] {
        ensure!(number(times)? > 0.0, "{summary}");
    }
    // The same lookups in another order: as many instructions and loads, far fewer misses.
    for same in ["simulated_instructions_ratio", "simulated_loads_ratio"] {
        ensure!((0.98..1.02).contains(&number(same)?), "{summary}");
    }
    ensure!(number("simulated_load_misses_ratio")? < 0.1, "{summary}");
    let orders = summary["orders"].as_array().context("no orders")?;
    let factors: Vec<_> = orders.iter().filter_map(|o| o["slf"].as_u64()).collect();
    let all = counts().pick(&[1, 64][..], &[1, 2, 4, 8, 16, 32, 64]);
    ensure!(factors == all, "{factors:?}");
    Ok(())
}
