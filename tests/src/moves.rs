//! Coroutines that move between threads: each call has its own entry and exit, and its own time.
use crate::called::Conversation;
use crate::recording::{Recording, Report, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile, hopscope, scratch};
use serde_json::Value;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("moves::calls_end_on_another_thread", gcc, between_threads);
}

const CALLS: u64 = 1000;

fn between_threads() -> Result<()> {
    let program = compile("gcc", &["moves.c"], &["-O1", "-pthread"])?;
    let mut program = Conversation::start(&mut Command::new(program))?;
    run_calls(&mut program)?;
    let file = scratch().join("moves.hop");
    let (ticks, summary) = {
        let pid = program.process.pid();
        let record = command(pid, &["moves-*!moving", "moves-*!leave"], &file);
        let recording = Recording::start_command(record, &file)?;
        let ticks = run_calls(&mut program)?;
        (ticks, recording.stop()?)
    };
    ensure!(summary["lost"] == 0, "{summary}");
    let report = Report::read(&file)?;
    report.expect_whole()?;
    for (function, moved) in [("moving", CALLS), ("leave", CALLS)] {
        let b = &report.functions[function];
        ensure!(
            b["entries"] - b["exits"] <= 1 && b["exits"] >= moved,
            "{function}: {b:?}"
        );
        ensure!(
            b["unwound"] == 0 && b["ends_cut_by_loss"] == 0,
            "{function}: {b:?}"
        );
    }
    let moving = &report.functions["moving"];
    ensure!(
        moving["entries"] == CALLS && moving["exits"] == CALLS,
        "{moving:?}"
    );
    ensure!(moving["ends_open_at_start"] == 0, "{moving:?}");
    let moved = report.summary["moved"].as_u64();
    ensure!(
        moved.is_some_and(|moved| moved >= 2 * CALLS),
        "{}",
        report.summary
    );

    // The program read the clock around each call: what is said of all cannot be more.
    let path = file.to_str().context("a path")?;
    let rows = hopscope(&["report", path, "--json", "--time", "tsc"])?
        .expect_code(0)?
        .stdout;
    let rows: Vec<Value> = rows
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let row = rows
        .iter()
        .find(|row| row["function"] == "moving")
        .context("moving")?;
    let total = row["total_raw_tsc"].as_u64().context("ticks")?;
    ensure!(total <= ticks, "{total} ticks of {ticks}: {row}");
    // One of two calls by pairs of one thread's records, each as long as two and what lies between.
    ensure!(total * 2 > ticks, "{total} ticks of {ticks}: {row}");

    let text = hopscope(&["report", path])?.expect_code(0)?.stdout;
    ensure!(text.contains("calls moved between threads"), "{text}");
    // Rows of threads hold each by itself: a call counts where it began.
    let by_thread = hopscope(&["report", path, "--by", "thread", "--json"])?.expect_code(0)?;
    for line in by_thread.stdout.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row["function"] == "moving" {
            let b = &row["balance"];
            ensure!(
                b["entries"] == CALLS / 2 && b["exits"] == CALLS / 2,
                "{row}"
            );
        }
    }
    program.end()
}

fn run_calls(program: &mut Conversation) -> Result<u64> {
    program.tell(&CALLS.to_string())?;
    let line = program.line()?;
    let (calls, ticks) = line.split_once(' ').context("calls and ticks")?;
    ensure!(calls == CALLS.to_string(), "{line}");
    Ok(ticks.parse()?)
}
