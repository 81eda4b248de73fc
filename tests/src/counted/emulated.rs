//! Counters of a processor that has none: every count is what the program did, whatever way its calls end.
use super::program::{Program, WATCHDOG, rows};
use crate::recording::Recording;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use std::fs;
use std::os::unix::fs::FileExt;
use std::time::Instant;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Gcc, Requirement::Fsgsbase];
    suite.case("counted::every_count_is_the_program_s", needs, every_count);
    suite.case("counted::calls_that_lost_their_processor", needs, broken);
    suite.case("counted::pages_that_change_meanwhile", needs, disturbed);
    suite.case("counted::events_that_do_not_count", needs, stopped);
    suite.case("counted::threads_that_come_later", needs, threads);
    suite.case("counted::forked_children_count_nothing", needs, forked);
    suite.case("counted::followed_children_count_nothing", needs, followed);
}

/// What a call of `outer` counts, with 7 of a reading of its probes.
const OUTER: i64 = 122 + 7;
const TAIL: i64 = 5 + 7;
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

/// Between the look at the lock and the counter: it is read again, and the call counts as any other.
fn disturbed() -> Result<()> {
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let recording = program.record(&["disturbed(@instructions)"], &file)?;
    program.told("disturbed 200")?;
    recording.stop()?;
    let counted = rows(&file)?.row("disturbed")?.counter("instructions")?;
    // One of its own, 7 of a reading.
    counted.expect("", 200, [200 * (1 + 7); 2])?;
    program.expect_clean()
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

/// Pages of emulated events that were opened and have not changed since.
fn opened_pages(pid: i32) -> Result<usize> {
    const LOCK_AT: u64 = 8;
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let lines = maps.lines().filter(|line| {
        line.contains("memfd:hopscope-rings")
            && line.contains("rw-s")
            && !line.contains(" 00000000 ")
    });
    let memory = fs::File::open(format!("/proc/{pid}/mem"))?;
    let mut opened = 0;
    for line in lines {
        let range = line.split(' ').next().and_then(|range| {
            let (from, to) = range.split_once('-')?;
            let address = |text| u64::from_str_radix(text, 16).ok();
            Some(address(from)?..address(to)?)
        });
        for page in range.context("a line of the map")?.step_by(4096) {
            let mut lock = [0; 4];
            memory.read_exact_at(&mut lock, page + LOCK_AT)?;
            opened += usize::from(u32::from_le_bytes(lock) == 2);
        }
    }
    Ok(opened)
}

fn until_opened(program: &Program, pages: usize) -> Result<()> {
    let began = Instant::now();
    while opened_pages(program.pid())? < pages {
        ensure!(
            began.elapsed() < WATCHDOG,
            "the counters of some are not there"
        );
        std::thread::yield_now();
    }
    Ok(())
}

/// Each is counted from when its counters are there, also in the ring of one that has ended; what it called before is left out
/// and counted. (Their stacks stay, and on them what signals left of places in copies: those stay, too.)
fn threads() -> Result<()> {
    const THREADS: usize = 7;
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let functions = ["outer(@instructions)", "tail(@instructions)"];
    let mut command = program.command(&functions, &file);
    // The main thread's ring, and one for each.
    let rings = (THREADS + 1).to_string();
    command.args(["--no-calibration", "--threads", &rings]);
    let recording = Recording::start_command(command, &file)?;
    for call in ["threads", "tails"] {
        // All pages there are change.
        program.told("broken 1")?;
        program.told(&format!("{call} {THREADS}"))?;
        until_opened(&program, THREADS)?;
        program.told("join")?;
    }
    recording.stop()?;
    let rows = rows(&file)?;
    for (function, of_a_call) in [("outer", OUTER), ("tail", TAIL)] {
        let counted = rows.row(function)?.counter("instructions")?;
        let whole = counted.number("total_calls")?;
        let early = counted.left_out("not_opened");
        // By its first call a thread takes its ring.
        ensure!(
            whole > 0
                && early >= THREADS as i64
                && counted.number("total")? == whole * of_a_call
                && counted.number("calls")? == whole + early,
            "{function}: {counted:?}"
        );
    }
    Ok(())
}

/// Also when the recorder has looked at them: what it opens then is mapped in their parent.
fn followed() -> Result<()> {
    let mut program = Program::emulating()?;
    let file = scratch().join("counted.hop");
    let mut command = program.command(&["outer(@instructions)"], &file);
    command.args(["--no-calibration", "--follow-forks"]);
    let recording = Recording::start_command(command, &file)?;
    program.told("child 100")?;
    program.told("broken 1")?;
    program.told("threads 1")?;
    until_opened(&program, 1)?;
    ensure!(program.told("reap")? == "0", "the child was killed");
    let calls: i64 = program.told("join")?.parse()?;
    recording.stop()?;
    let counted = rows(&file)?.row("outer")?.counter("instructions")?;
    let (whole, early) = (
        counted.number("total_calls")?,
        counted.left_out("not_opened"),
    );
    ensure!(
        early > 200 && whole + early == 200 + calls && whole < calls,
        "{calls} calls of the thread: {counted:?}"
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
