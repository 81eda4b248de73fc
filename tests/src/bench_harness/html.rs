//! `bench html` from outside. How long the browser took is the machine's own affair.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope, scratch};
use serde_json::Value;

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "bench_harness::html_gives_its_figures",
            &[Requirement::Chromium],
            figures,
        )
        .in_turn();
}

fn figures() -> Result<()> {
    let dir = scratch();
    let name = dir.display().to_string();
    let arguments = [
        "bench",
        "html",
        super::size(),
        "--json",
        "--build-dir",
        &name,
    ];
    let out = hopscope(&arguments)?.expect_code(0)?;
    let lines: Vec<Value> = (out.stdout.lines())
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let (summary, samples) = lines.split_last().context("nothing was printed")?;
    ensure!(
        samples.len() == counts().pick(1, 3),
        "{} rounds",
        samples.len()
    );
    let number = |row: &Value, key: &str| {
        row[key]
            .as_f64()
            .with_context(|| format!("no number {key}: {row}"))
    };
    for sample in samples {
        let measured = &sample["measured"];
        let paint = number(measured, "first_paint_ms")?;
        ensure!(
            paint > 0.0 && number(measured, "ready_ms")? > 0.0,
            "a page that took no time: {sample}"
        );
        ensure!(measured["packets"] == 100_000, "{sample}");
        ensure!(number(measured, "runs")? > 20_000.0, "{sample}");
    }
    // The median of one or three is one of them.
    let paints = samples.iter().map(|s| &s["measured"]["first_paint_ms"]);
    let median = &summary["first_paint_ms"]["median"];
    ensure!(paints.into_iter().any(|p| p == median), "{summary}");
    let page = dir.join("html/page.html");
    let page = std::fs::metadata(&page)
        .with_context(|| page.display().to_string())?
        .len();
    ensure!(
        summary["page_bytes"] == page && page > 1_000_000,
        "the page has {page} bytes: {summary}"
    );
    let goals = summary["goals"].as_array().context("no goals")?;
    let goal = goals.iter().find(|g| g["name"] == "first_paint_ms");
    let goal = goal.context("no goal of the first paint")?;
    ensure!(
        goal["at_most"] == 2000.0 && goal["measured"] == *median && goal["met"].is_boolean(),
        "{goal}"
    );
    Ok(())
}
