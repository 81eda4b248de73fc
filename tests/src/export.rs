//! `hopscope export`: what it writes, other people's programs read, and they see the same calls.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, hopscope, repository};
use serde_json::Value;
use std::path::{Path, PathBuf};

mod hdr;
mod pcapng;
mod perfetto;
mod recording;
mod refused;
mod runs;
mod tables;

pub(crate) fn register(suite: &mut Suite) {
    hdr::register(suite);
    pcapng::register(suite);
    perfetto::register(suite);
    refused::register(suite);
    runs::register(suite);
    tables::register(suite);
}

/// A small recording with every trap: losses, torn slots, a signal handler, a coroutine's stack.
fn tricky() -> PathBuf {
    repository().join("measure/trace/tests/golden/v1.hop")
}

fn packets() -> PathBuf {
    repository().join("measure/trace/tests/golden/v1.1-stamps.hop")
}

fn export(file: &Path, words: &[&str]) -> Result<hopscope_tests::command::Output> {
    let mut all = vec!["export", file.to_str().context("a path")?];
    all.extend(words);
    hopscope(&all)?.expect_code(0)
}

/// The rows of `--format json`, and its last line.
fn rows(file: &Path, words: &[&str]) -> Result<(Vec<Value>, Value)> {
    let out = export(file, &[&["--format", "json"], words].concat())?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    let mut lines = lines.collect::<Result<Vec<Value>, _>>()?;
    let summary = lines.pop().context("no line")?;
    ensure!(summary["type"] == "summary", "the last line: {summary}");
    Ok((lines, summary))
}

fn of_kind<'a>(rows: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    rows.iter().filter(move |row| row["type"] == kind)
}
