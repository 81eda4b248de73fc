//! An interval log, read by the HdrHistogram project's own reader, holds every call and packet.
use super::{export, of_kind, packets, rows, tricky};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::{programs, readers_python};
use hopscope_tests::{Requirement, Suite, scratch};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Readers];
    suite.case("export::hdr_log_holds_every_call", needs, calls);
    suite.case("export::hdr_log_holds_every_packet", needs, latencies);
}

fn read(file: &Path) -> Result<Value> {
    let log = scratch().join("out.hlog");
    export(file, &["--format", "hdr", "-o", &log.display().to_string()])?;
    let out = run(Command::new(readers_python())
        .arg(programs().join("readers/hdr_log.py"))
        .arg(&log))?
    .expect_code(0)?;
    Ok(serde_json::from_str(&out.stdout)?)
}

/// Within the 3 digits that a histogram keeps, and the nanosecond that a value is rounded to.
fn check(tag: &Value, values: &[f64]) -> Result<()> {
    let (max, sum) = (tag["max"].as_f64(), tag["sum"].as_f64());
    let (max, sum) = (max.context("max")?, sum.context("sum")?);
    let expected_max = values.iter().copied().fold(0.0, f64::max);
    let expected: f64 = values.iter().sum();
    ensure!(tag["n"] == values.len(), "{tag} for {}", values.len());
    ensure!(
        (max - expected_max).abs() <= 1.0 + expected_max / 500.0,
        "{tag} for {expected_max}"
    );
    let off = values.len() as f64 + expected / 500.0;
    ensure!((sum - expected).abs() <= off, "{tag} for {expected}");
    Ok(())
}

fn calls() -> Result<()> {
    let (rows, _) = rows(&tricky(), &[])?;
    let tags = read(&tricky())?;
    let tags = tags.as_object().context("tags")?;
    ensure!(tags.len() == 3, "{tags:?}");
    for (tag, held) in tags {
        let its = |row: &&Value| row["function"].as_str().is_some_and(|f| tag.ends_with(f));
        let times = of_kind(&rows, "call").filter(its);
        let times: Vec<f64> = times
            .filter_map(|r| r["own_corrected_ns"].as_f64())
            .collect();
        check(held, &times).with_context(|| tag.clone())?;
    }
    Ok(())
}

fn latencies() -> Result<()> {
    let (rows, _) = rows(&packets(), &["--what", "packets"])?;
    let tags = read(&packets())?;
    let times = of_kind(&rows, "packet").filter_map(|r| r["latency_ns"].as_f64());
    let times: Vec<f64> = times.collect();
    ensure!(times.len() > 10, "{} packets", times.len());
    let (negative, rest): (Vec<f64>, Vec<f64>) = times.iter().partition(|t| **t < 0.0);
    ensure!(negative.is_empty(), "{negative:?}");
    check(&tags["packets_of_stream_0"], &rest)
}
