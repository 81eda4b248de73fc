//! `hopscope load tcp`: latency without coordinated omission, every byte checked, every request
//! accounted for, the kernel's counters said.
use anyhow::{Context, Result};
use hopscope_tests::{Suite, hopscope};
use serde_json::Value;

mod bytes;
mod counts;
mod datagrams;
mod interrupted;
mod omission;
mod overflow;
mod refusals;
mod servers;

pub(crate) fn register(suite: &mut Suite) {
    bytes::register(suite);
    counts::register(suite);
    datagrams::register(suite);
    interrupted::register(suite);
    omission::register(suite);
    overflow::register(suite);
    refusals::register(suite);
}

/// `hopscope load tcp ARGUMENTS --json`, with the code it must end with: its summary.
fn summary(arguments: &[&str], code: i32) -> Result<Value> {
    let words = [&["load", "tcp"], arguments, &["--json"]].concat();
    let out = hopscope(&words)?.expect_code(code)?;
    let last = out.stdout.lines().last().context("no line")?;
    Ok(serde_json::from_str(last)?)
}

fn number(value: &Value, path: &str) -> Result<u64> {
    let found = value.pointer(path).and_then(Value::as_u64);
    found.with_context(|| format!("no number {path} in {value}"))
}

/// Every request that was asked ended in exactly one way.
fn balance(summary: &Value) -> Result<()> {
    let ends = ["/done", "/corrupt", "/failed", "/unsent"];
    let ends: Result<Vec<u64>> = ends.iter().map(|end| number(summary, end)).collect();
    let (asked, ended) = (number(summary, "/asked")?, ends?.iter().sum::<u64>());
    anyhow::ensure!(asked == ended, "asked {asked}, ended {ended}: {summary}");
    Ok(())
}
