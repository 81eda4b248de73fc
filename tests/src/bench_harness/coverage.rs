//! `bench coverage` from outside: what programs do is the same with everything in them measured.
use super::bench;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Gxx, Perl};
    suite
        .case(
            "bench_harness::coverage_gives_its_figures",
            &[Fsgsbase, Gxx, Perl],
            figures,
        )
        .in_turn()
        .soak();
    suite
        .case(
            "bench_harness::coverage_of_large_programs",
            &[Fsgsbase, Gxx],
            large,
        )
        .in_turn()
        .soak();
}

/// Samples and the summary.
fn covered(more: &[&str]) -> Result<(Vec<Value>, Value)> {
    let out = bench("coverage", more)?.expect_code(0)?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    let mut lines: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let summary = lines.pop().context("nothing was printed")?;
    for row in &lines {
        ensure!(row["identical"] == true && row["unbalanced"] == 0, "{row}");
    }
    Ok((lines, summary))
}

fn figures() -> Result<()> {
    let (rows, summary) = covered(&["--program", "cc1plus", "--program", "perl"])?;
    let names: Vec<_> = rows
        .iter()
        .filter_map(|row| row["program"].as_str())
        .collect();
    ensure!(names == ["cc1plus", "perl"], "{names:?}");
    for row in &rows {
        let number = |key: &str| row[key].as_f64().with_context(|| format!("{key}: {row}"));
        ensure!(number("own_percent")? > 99.0, "{row}");
        ensure!(number("own_accepted")? < number("accepted")?, "{row}");
        ensure!(
            number("records")? > 0.0 && number("attach_s")? > 0.0,
            "{row}"
        );
        ensure!(number("recorder_peak_rss_mib")? > 0.0, "{row}");
    }
    // Twenty are wanted.
    let goals = summary["goals"].as_array().context("no goals")?;
    let programs = goals.iter().find(|g| g["name"] == "programs");
    ensure!(programs.is_some_and(|g| g["met"] == false), "{summary}");
    Ok(())
}

/// All that are installed; the others are named in the results.
fn large() -> Result<()> {
    let (rows, summary) = covered(&[])?;
    for row in &rows {
        let least = match row["program"].as_str() {
            // V8's own built-in functions.
            Some("node") => 96.0,
            _ => 99.0,
        };
        ensure!(
            row["own_percent"].as_f64().is_some_and(|p| p >= least),
            "{row}"
        );
    }
    eprintln!("not measured: {}", summary["not_measured"]);
    ensure!(rows.len() >= counts().pick(2, 8), "{summary}");
    Ok(())
}
