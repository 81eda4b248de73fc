//! `@context-switches`, which any machine has: in each call as many as the kernel accounts to the thread.
use super::program::{Program, WATCHDOG, events, rows};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope, scratch};
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Root, Requirement::Gcc, Requirement::Fsgsbase];
    suite.case(
        "counted::context_switches_of_each_call",
        needs,
        of_each_call,
    );
    suite.case("counted::events_of_threads", needs, threads);
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
        let count = event["value"].as_u64().with_context(|| event.to_string())?;
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

/// Each thread has its own event, in the ring of one that has ended, too; none is left.
fn threads() -> Result<()> {
    const THREADS: usize = 7;
    let mut program = Program::start()?;
    let file = scratch().join("counted.hop");
    let recording = program.record(&["outer(@context-switches)"], &file)?;
    let mut calls = 0;
    for _ in 0..3 {
        program.told(&format!("threads {THREADS}"))?;
        let began = Instant::now();
        while events(program.pid())? < THREADS + 1 {
            ensure!(
                began.elapsed() < WATCHDOG,
                "the events of some are not there"
            );
            std::thread::yield_now();
        }
        calls += program.told("join")?.parse::<i64>()?;
    }
    recording.stop()?;
    let counted = rows(&file)?.row("outer")?.counter("context-switches")?;
    let whole = counted.number("total_calls")?;
    ensure!(
        whole > 0
            && counted.number("calls")? == calls
            && calls == whole + counted.left_out("not_opened"),
        "{calls} calls: {counted:?}"
    );
    program.expect_clean()
}

/// The target itself may open no event.
fn without_rights() -> Result<()> {
    let mut program = Program::start()?;
    program.told("drop")?;
    sleeps(&mut program, &scratch().join("counted.hop"))
}
