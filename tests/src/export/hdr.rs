//! An interval log, read by the HdrHistogram project's own reader, holds every call and packet.
use super::{export, of_kind, packets, rows, tricky};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::{programs, readers_python};
use hopscope_tests::{Requirement, Suite, hopscope, scratch};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Readers];
    suite.case("export::hdr_log_holds_every_call", needs, calls);
    suite.case("export::hdr_log_holds_every_packet", needs, latencies);
    suite.case(
        "export::hgrm_is_what_the_official_library_says",
        needs,
        table,
    );
    suite.case("export::hgrm_of_no_such_tag_is_refused", &[], no_tag);
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

/// Values, percentiles and counts of each row, without the lines that are comments.
fn numbers(text: &str) -> Vec<Vec<f64>> {
    let rows = text.lines().filter(|l| !l.starts_with('#'));
    let cells = rows.map(|l| l.split_whitespace().map_while(|c| c.parse().ok()).collect());
    cells.filter(|row: &Vec<f64>| row.len() >= 3).collect()
}

/// Each row, looked up by the official library in the histogram that the log holds.
fn table() -> Result<()> {
    let tag = "packets_of_stream_0";
    let dir = scratch();
    let path = |name: &str| dir.join(name).display().to_string();
    let (log, table) = (path("out.hlog"), path("out.hgrm"));
    export(&packets(), &["--format", "hdr", "-o", &log])?;
    export(
        &packets(),
        &["--format", "hgrm", "--tag", tag, "-o", &table],
    )?;
    let out = run(Command::new(readers_python())
        .arg(programs().join("readers/hdr_table.py"))
        .args([&log, tag, &table]))?
    .expect_code(0)?;
    let theirs: Value = serde_json::from_str(&out.stdout)?;
    let text = std::fs::read_to_string(&table)?;
    let ours = numbers(&text);
    let rows = theirs["rows"].as_array().context("rows")?;
    ensure!(ours.len() == rows.len() && rows.len() > 10, "{text}");
    for (row, own) in rows.iter().zip(&ours) {
        let [value, percentile, count] = [own[0], own[1], own[2]];
        let same = |v: &Value| v.as_f64() == Some(value);
        let values = row["values"].as_array().context("values")?;
        ensure!(
            values.iter().any(same) && row["count"].as_f64() == Some(count),
            "at {percentile}: {value} of {count}, and by the library {row}"
        );
    }
    // Five steps to each halving of what is left.
    let steps: Vec<f64> = ours.iter().take(8).map(|row| row[1]).collect();
    ensure!(
        steps == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6],
        "{steps:?}"
    );
    let number = |key: &str| theirs[key].as_f64().with_context(|| key.to_owned());
    let (mean, deviation, max) = (number("mean")?, number("deviation")?, number("max")?);
    for line in [
        format!("#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]"),
        format!(
            "#[Max     = {max:>12.3}, Total count    = {:>12}]",
            ours[ours.len() - 1][2]
        ),
    ] {
        ensure!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
    Ok(())
}

fn no_tag() -> Result<()> {
    let file = packets().display().to_string();
    hopscope(&["export", &file, "--format", "hgrm", "--tag", "none"])?
        .expect_refusal(&["no tag", "packets_of_stream_0"])
}
