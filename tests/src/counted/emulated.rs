//! Counters of a processor that has none: every count is what the program did, whatever way its calls end.
use super::program::{Program, WATCHDOG, rows};
use crate::recording::Recording;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use std::fs;
use std::time::Instant;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Gcc, Requirement::Fsgsbase];
    suite.case("counted::every_count_is_the_program_s", needs, every_count);
    suite.case("counted::calls_that_lost_their_processor", needs, broken);
    suite.case("counted::events_that_do_not_count", needs, stopped);
    suite.case("counted::threads_that_come_later", needs, threads);
    suite.case("counted::forked_children_count_nothing", needs, forked);
}

/// What a call of `outer` counts, with 7 of a reading of its probes.
const OUTER: i64 = 122 + 7;
const BOTH: &str = "(@instructions,@cycles)";

fn with(functions: &[&str]) -> Vec<String> {
    functions.iter().map(|f| format!("{f}{BOTH}")).collect()
}

/// Nested calls, tail calls by jumps of both kinds, recursion; one counter wraps meanwhile.
fn every_count() -> Result<()> {
    let n = counts().pick(2_000, 100_000);
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let functions = with(&["outer", "inner", "tail", "chosen", "deep"]);
    let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
    let recording = program.record_calibrated(&functions, &file)?;
    program.told(&format!("run {n}"))?;
    recording.stop()?;
    let (rows, n) = (rows(&file)?, n as i64);
    for (function, calls, total, own) in [
        ("outer", 1, 122, 102),
        ("inner", 4, 40, 40),
        ("tail", 1, 5, 5),
        ("chosen", 1, 3, 3),
        ("deep", 4, 4, 4),
    ] {
        let row = rows.row(function)?;
        for (counter, times) in [("instructions", 1), ("cycles", 2)] {
            let counted = row.counter(counter)?;
            let sums = [total, own].map(|sum| sum * times * n);
            let expected = counted.expect("_corrected", calls * n, sums);
            expected.with_context(|| function.to_owned())?;
        }
    }
    program.expect_clean()
}

/// Neither they nor their callers are counted.
fn broken() -> Result<()> {
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let functions = [
        "broken(@instructions)",
        "around(@instructions)",
        "outer(@instructions)",
    ];
    let recording = program.record(&functions, &file)?;
    program.told("broken 300")?;
    program.told("run 50")?;
    recording.stop()?;
    let rows = rows(&file)?;
    for function in ["broken", "around"] {
        let counted = rows.row(function)?.counter("instructions")?;
        ensure!(
            counted.left_out("rescheduled") == 300 && counted.number("total_calls")? == 0,
            "{function}: {counted:?}"
        );
    }
    rows.row("outer")?
        .counter("instructions")?
        .expect("", 50, [OUTER * 50; 2])
}

/// `rdpmc` is not executed where the page names no counter.
fn stopped() -> Result<()> {
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let recording = program.record(&["stopped(@instructions)", "outer(@instructions)"], &file)?;
    program.told("stopped 200")?;
    program.told("run 50")?;
    recording.stop()?;
    let rows = rows(&file)?;
    let counted = rows.row("stopped")?.counter("instructions")?;
    ensure!(counted.left_out("not_counting") == 200, "{counted:?}");
    rows.row("outer")?
        .counter("instructions")?
        .expect("", 50, [OUTER * 50; 2])
}

/// Writable pages of emulated events.
fn emulated_pages(pid: i32) -> Result<u64> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let lines = maps.lines().filter(|line| {
        line.contains("memfd:hopscope-rings")
            && line.contains("rw-s")
            && !line.contains(" 00000000 ")
    });
    let bytes = lines.map(|line| {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        let address = |text| u64::from_str_radix(text, 16).ok();
        Some(address(to)? - address(from)?)
    });
    let bytes: Option<u64> = bytes.sum();
    Ok(bytes.context("a line of the map")? / 4096)
}

/// Each is counted from when its counters are there; what it called before is left out and counted. (Their stacks stay, and on
/// them what signals left of places in copies: those stay, too.)
fn threads() -> Result<()> {
    const THREADS: u64 = 7;
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let recording = program.record(&["outer(@instructions)"], &file)?;
    for _ in 0..2 {
        program.told(&format!("threads {THREADS}"))?;
        let began = Instant::now();
        while emulated_pages(program.pid())? < THREADS + 1 {
            ensure!(
                began.elapsed() < WATCHDOG,
                "the counters of some are not there"
            );
            std::thread::yield_now();
        }
        program.told("join")?;
    }
    recording.stop()?;
    let counted = rows(&file)?.row("outer")?.counter("instructions")?;
    let whole = counted.number("total_calls")?;
    ensure!(
        whole > 0
            && counted.number("total")? == whole * OUTER
            && counted.number("calls")? == whole + counted.left_out("not_opened"),
        "{counted:?}"
    );
    Ok(())
}

/// Their parent's pages are not theirs: they do not touch them.
fn forked() -> Result<()> {
    for follow in [false, true] {
        let mut program = Program::emulating()?;
        let file = scratch().join("counted.hop");
        let mut command = program.command(&["outer(@instructions)"], &file);
        command.arg("--no-calibration");
        if follow {
            command.arg("--follow-forks");
        }
        let recording = Recording::start_command(command, &file)?;
        ensure!(program.told("fork 100")? == "0", "a child was killed");
        program.told("run 100")?;
        recording.stop()?;
        let counted = rows(&file)?.row("outer")?.counter("instructions")?;
        let of_child = if follow { 100 } else { 0 };
        ensure!(
            counted.left_out("not_opened") == of_child
                && counted.number("total_calls")? == 100
                && counted.number("total")? == 100 * OUTER,
            "{counted:?}"
        );
        program.expect_clean()?;
    }
    Ok(())
}
