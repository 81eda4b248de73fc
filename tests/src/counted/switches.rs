//! `@context-switches`, which any machine has: in each call as many as the kernel accounts to the thread.
use super::program::{Program, rows};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope, scratch};
use serde_json::Value;
use std::path::Path;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Root, Requirement::Gcc, Requirement::Fsgsbase];
    suite.case(
        "counted::context_switches_of_each_call",
        needs,
        of_each_call,
    );
    suite.case("counted::with_the_recorder_s_rights", needs, without_rights);
}

/// At the entry and at the end of each call, in order.
fn readings(file: &Path) -> Result<Vec<[u64; 2]>> {
    let path = file.to_str().context("a path")?;
    let out = hopscope(&["report", path, "--events", "--json"])?.expect_code(0)?;
    let (mut entries, mut calls) = (Vec::new(), Vec::new());
    for line in out.stdout.lines() {
        let event: Value = serde_json::from_str(line)?;
        if event["name"] != "@context-switches" {
            continue;
        }
        let count = event["count"].as_u64().with_context(|| event.to_string())?;
        match entries.pop() {
            Some(entry) => calls.push([entry, count]),
            None => entries.push(count),
        }
    }
    Ok(calls)
}

fn sleeps(program: &mut Program, file: &Path) -> Result<()> {
    const TIMES: u64 = 3;
    let n = counts().pick(200, 5_000);
    let recording = program.record(&["sleeper(@context-switches)"], file)?;
    let said = program.told(&format!("sleep {TIMES} {n}"))?;
    recording.stop()?;
    let accounted: Vec<u64> = said
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let calls = readings(file)?;
    ensure!(
        calls.len() == accounted.len(),
        "{} of {n} calls",
        calls.len()
    );
    let mut sum = 0;
    for ([entry, end], most) in calls.iter().zip(&accounted) {
        let count = end - entry;
        // What lies between the program's look and the call is a few instructions.
        ensure!((TIMES..=*most).contains(&count), "{count} of {most}");
        sum += count;
    }
    ensure!(sum * 20 >= accounted.iter().sum::<u64>() * 19, "{sum}");
    let counted = rows(file)?.row("sleeper")?.counter("context-switches")?;
    counted.expect("", n as i64, [sum as i64; 2])?;
    program.expect_clean()
}

fn of_each_call() -> Result<()> {
    sleeps(&mut Program::start()?, &scratch().join("counted.hop"))
}

/// The target itself may open no event.
fn without_rights() -> Result<()> {
    let mut program = Program::start()?;
    program.told("drop")?;
    sleeps(&mut program, &scratch().join("counted.hop"))
}
