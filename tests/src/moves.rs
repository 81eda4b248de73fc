//! Coroutines that move between threads: no call is stated of which it is not certain where it ended, in any view.
use crate::called::Conversation;
use crate::recording::{Recording, Report, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile, hopscope, scratch};
use serde_json::Value;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("moves::calls_end_on_another_thread", gcc, between_threads);
    suite.case("moves::stolen_coroutines", gcc, stolen);
}

const CALLS: u64 = 1000;

fn between_threads() -> Result<()> {
    let program = compile("gcc", &["moves.c"], &["-O1", "-pthread"])?;
    let mut program = Conversation::start(&mut Command::new(program))?;
    run_calls(&mut program)?;
    let file = scratch().join("moves.hop");
    let pid = program.process.pid();
    let record = command(pid, &["moves-*!moving", "moves-*!staying"], &file);
    let recording = Recording::start_command(record, &file)?;
    run_calls(&mut program)?;
    let summary = recording.stop()?;
    ensure!(summary["lost"] == 0, "{summary}");
    program.end()?;

    let report = Report::read(&file)?;
    report.expect_whole()?;
    let moving = &report.functions["moving"];
    ensure!(moving["entries"] == CALLS, "{moving:?}");
    ensure!(
        moving["exits"] == 0 && moving["unwound"] == 0,
        "calls are stated: {moving:?}"
    );
    ensure!(
        moving["ends_moved"] == CALLS && moving["ends_open_at_start"] == 0,
        "{moving:?}"
    );
    // A thread that never comes back to the stack leaves its last call open.
    ensure!(
        moving["moved"] + moving["open_at_end"] == CALLS && moving["open_at_end"] <= 2,
        "{moving:?}"
    );
    let staying = &report.functions["staying"];
    ensure!(
        staying["entries"] == CALLS && staying["exits"] == CALLS,
        "{staying:?}"
    );

    let path = file.to_str().context("a path")?;
    let text = hopscope(&["report", path])?.expect_code(0)?.stdout;
    ensure!(
        text.contains("calls moved between threads with their stack"),
        "{text}"
    );
    let balance = &report.summary["balance"];
    for by in ["tree", "thread"] {
        let said = hopscope(&["report", path, "--by", by, "--json"])?.expect_code(0)?;
        let last = said.stdout.lines().last().context("a summary")?;
        let summary: Value = serde_json::from_str(last)?;
        ensure!(summary["balance"] == *balance, "by {by}: {summary}");
    }
    exported(path, moving["moved"])?;
    let runs = hopscope(&["report", path, "--by", "run", "--root", "moving", "--json"])?;
    let runs = runs.expect_code(0)?.stdout;
    let last: Value = serde_json::from_str(runs.lines().last().context("a summary")?)?;
    ensure!(last["complete"] == 0 && last["runs"] == CALLS, "{last}");
    let page = file.with_extension("html");
    let to = page.to_str().context("a path")?;
    hopscope(&["report", path, "--html", to])?.expect_code(0)?;
    let page = std::fs::read_to_string(&page)?;
    ensure!(page.contains("calls moved between threads, not paired"));
    Ok(())
}

/// Each row of `moving` is an entry or an end alone.
fn exported(path: &str, moved: u64) -> Result<()> {
    let rows = hopscope(&["export", path, "--format", "json"])?.expect_code(0)?;
    let (mut calls, mut ends) = (0, 0);
    for line in rows.stdout.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row["function"] != "moving" {
            continue;
        }
        ensure!(row["total_raw_ns"].is_null(), "{row}");
        calls += u64::from(row["type"] == "call" && row["fate"] == "moved");
        ends += u64::from(row["type"] == "end" && row["fate"] == "moved");
    }
    ensure!(
        calls == moved && ends == CALLS,
        "{calls} calls and {ends} ends"
    );
    Ok(())
}

fn run_calls(program: &mut Conversation) -> Result<()> {
    program.tell(&CALLS.to_string())?;
    let line = program.line()?;
    ensure!(line == CALLS.to_string(), "{line}");
    Ok(())
}

/// A call of `outer`, by the program's own clock.
struct Truth {
    tid: i64,
    begin: u64,
    end: u64,
    moved: bool,
}

const COROUTINES: usize = 7;

/// Each call that is stated is one that the program made on that thread, and ended where the program says.
fn stolen() -> Result<()> {
    let calls_each = hopscope_tests::counts().pick(400, 4000);
    let program = compile("gcc", &["stealing.c"], &["-O1", "-pthread"])?;
    let mut program = Conversation::start(&mut Command::new(program))?;
    truths(&mut program, 1)?;
    let file = scratch().join("stealing.hop");
    let pid = program.process.pid();
    let record = command(pid, &["stealing-*!outer", "stealing-*!inner"], &file);
    let recording = Recording::start_command(record, &file)?;
    let truths = truths(&mut program, calls_each)?;
    let summary = recording.stop()?;
    ensure!(summary["lost"] == 0, "{summary}");
    program.end()?;

    let report = Report::read(&file)?;
    report.expect_whole()?;
    let inner = &report.functions["inner"];
    ensure!(inner["entries"] == inner["exits"], "{inner:?}");
    let outer = &report.functions["outer"];
    let stayed = truths.iter().filter(|t| !t.moved).count() as u64;
    ensure!(outer["entries"] == truths.len() as u64, "{outer:?}");
    ensure!(stayed < outer["entries"], "nothing moved: {outer:?}");
    ensure!(outer["exits"] == stayed, "{stayed} stayed: {outer:?}");

    let path = file.to_str().context("a path")?;
    let rows = hopscope(&["export", path, "--format", "json"])?.expect_code(0)?;
    let mut stated = 0;
    for line in rows.stdout.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row["function"] != "outer" || row["fate"] != "exit" {
            continue;
        }
        stated += 1;
        let number = |field: &str| {
            row[field]
                .as_u64()
                .with_context(|| format!("{field} of {row}"))
        };
        let entry = number("entry_tsc")?;
        let exit = entry + number("total_raw_tsc")?;
        let of_thread = || truths.iter().filter(|t| Some(t.tid) == row["tid"].as_i64());
        let began = of_thread()
            .filter(|t| t.begin >= entry)
            .min_by_key(|t| t.begin);
        // One that moved has its end on another thread than it began on.
        let ended = of_thread()
            .filter(|t| t.end <= exit && !t.moved)
            .max_by_key(|t| t.end);
        let (began, ended) = began.zip(ended).context("no such call")?;
        ensure!(began.begin == ended.begin && !began.moved, "{row}");
    }
    ensure!(stated == stayed, "{stated} rows of {stayed} calls");
    Ok(())
}

fn truths(program: &mut Conversation, calls_each: usize) -> Result<Vec<Truth>> {
    program.tell(&calls_each.to_string())?;
    let mut truths = Vec::new();
    for _ in 0..calls_each * COROUTINES {
        let line = program.line()?;
        let of: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [tid, begin, end, moved] = of[..] else {
            anyhow::bail!("{line:?}");
        };
        let moved = moved != 0;
        let tid = tid as i64;
        truths.push(Truth {
            tid,
            begin,
            end,
            moved,
        });
    }
    ensure!(program.line()? == ".", "more than was asked for");
    Ok(truths)
}
