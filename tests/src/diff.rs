//! `hopscope diff` as a user runs it, on recordings of which the truth is known.
use crate::made::{Made, record};
use anyhow::{Context, Result, ensure};
use hopscope_event::RecordKind;
use hopscope_tests::command::Output;
use hopscope_tests::{Suite, hopscope, scratch};
use serde_json::Value;
use std::path::Path;

const CALLS: u64 = 20_000;
const START: u64 = 1_000_000;

pub(crate) fn register(suite: &mut Suite) {
    suite.case("diff::equals_are_noise", &[], equals);
    suite.case("diff::a_shift_is_found_and_fails", &[], shifted);
    suite.case("diff::other_programs_are_refused", &[], others);
    suite.case("diff::functions_of_one_side_are_named", &[], one_side);
}

/// Numbers without a pattern (SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n ^ n >> 27
}

/// Calls of each function in turn: its length in ticks of 1 ns, with noise of 20 % and a slow
/// wandering of 3 %.
fn write(to: &Path, functions: &[(&str, u64)], seed: u64) -> Result<()> {
    let mut made = Made::begin(to, 1_000_000_000, START - 1_000, "nf")?;
    let in_module: Vec<_> = functions
        .iter()
        .map(|(name, _)| (*name, "/opt/nf"))
        .collect();
    made.process(&in_module)?;
    let mut records = Vec::new();
    let mut at = START;
    for n in 0..CALLS {
        let wander = 1.0 + 0.03 * (n as f64 / 2_000.0 + seed as f64).sin();
        for ((_, ticks), id) in functions.iter().zip(0..) {
            let noise =
                0.9 + 0.2 * (mixed(seed << 40 ^ n << 4 ^ u64::from(id)) % 1_000) as f64 / 1e3;
            let took = (*ticks as f64 * wander * noise) as u64;
            records.push(record(at, id, RecordKind::Entry, 0));
            records.push(record(at + took, id, RecordKind::Exit, 0));
            at += took + 500;
        }
    }
    made.records(&records)?;
    made.finish(at)
}

fn compare(a: &[(&str, u64)], b: &[(&str, u64)], more: &[&str]) -> Result<Output> {
    let dir = scratch();
    let (first, second) = (dir.join("a.hop"), dir.join("b.hop"));
    write(&first, a, 1)?;
    write(&second, b, 2)?;
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let words = ["diff", &first, &second];
    hopscope(&[&words[..], more].concat())
}

fn rows(out: &Output) -> Result<Vec<Value>> {
    let lines = out.stdout.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<Vec<Value>, _>>()?)
}

fn verdict<'a>(rows: &'a [Value], function: &str) -> Result<&'a Value> {
    let its = rows
        .iter()
        .find(|row| row["name"] == format!("nf!{function}"));
    Ok(&its.with_context(|| format!("no row of {function}: {rows:?}"))?["verdict"])
}

fn equals() -> Result<()> {
    let same = [("parse", 400), ("acl", 1_500)];
    let out = compare(&same, &same, &["--fail-above", "0"])?.expect_code(0)?;
    ensure!(
        out.stdout.contains("no difference beyond noise"),
        "{}",
        out.stdout
    );
    let out = compare(&same, &same, &["--fail-above", "0", "--json"])?.expect_code(0)?;
    let rows = rows(&out)?;
    for function in ["parse", "acl"] {
        ensure!(verdict(&rows, function)? == "same", "{}", out.stdout);
    }
    Ok(())
}

fn shifted() -> Result<()> {
    let (a, b) = (
        [("parse", 400), ("acl", 1_500)],
        [("parse", 400), ("acl", 1_800)],
    );
    let out = compare(&a, &b, &["--fail-above", "10", "--json"])?.expect_code(1)?;
    let found = rows(&out)?;
    ensure!(verdict(&found, "acl")? == "slower", "{}", out.stdout);
    ensure!(verdict(&found, "parse")? == "same", "{}", out.stdout);
    // 20 % are not above 30, and what became faster fails nothing.
    compare(&a, &b, &["--fail-above", "30"])?.expect_code(0)?;
    let out = compare(&b, &a, &["--fail-above", "0", "--json"])?.expect_code(0)?;
    ensure!(verdict(&rows(&out)?, "acl")? == "faster", "{}", out.stdout);
    // Without a limit nothing fails.
    compare(&a, &b, &[])?.expect_code(0)?;
    Ok(())
}

fn others() -> Result<()> {
    let out = compare(&[("parse", 400)], &[("draw", 400)], &[])?;
    out.expect_refusal(&["no function in common", "other programs"])
}

fn one_side() -> Result<()> {
    let (a, b) = (
        [("parse", 400), ("old", 900)],
        [("parse", 400), ("new", 900)],
    );
    let out = compare(&a, &b, &[])?.expect_code(0)?;
    for name in ["nf!old", "nf!new"] {
        ensure!(out.stdout.contains(name), "no {name} in {}", out.stdout);
    }
    Ok(())
}
