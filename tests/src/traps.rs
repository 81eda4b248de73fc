//! The four traps that every relocator of whole functions has fallen into, by name.
use crate::awkward::{Awkward, Build};
use crate::recording::{Recording, Report, command};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::{Requirement, Suite, Target, command::run, compile, counts, scratch};
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    let clang = &[Requirement::Clang];
    suite.case("traps::own_labels_as_data_gcc", gcc, || own_labels("gcc"));
    suite.case("traps::own_labels_as_data_clang", clang, || {
        own_labels("clang")
    });
    suite.case(
        "traps::unwind_entry_shorter_than_the_code",
        gcc,
        unwind_entry,
    );
    suite.case("traps::jump_tables_keep_their_exits_gcc", gcc, || {
        jump_tables("gcc")
    });
    suite.case("traps::jump_tables_keep_their_exits_clang", clang, || {
        jump_tables("clang")
    });
    suite.case("traps::throws_gcc", &[Requirement::Gxx], || throws("g++"));
    suite.case("traps::throws_clang", clang, || throws("clang++"));
}

/// 64 million records: more than any test here makes, so that a recorder that comes late loses none.
const BUFFER: &str = "1G";

/// Runs `checks` of the awkward program `rounds` times while all of it is measured.
fn measured(build: &Build, checks: &[&str], rounds: u64) -> Result<(Report, Awkward)> {
    let mut program = Awkward::start_checks(build, checks)?;
    let file = scratch().join("traps.hop");
    program.all_right("run 3", checks.len())?;
    let pid = program.target.pid();
    let recording = Recording::start_keeping(pid, &[&program.pattern], &file, BUFFER)?;
    program.all_right(&format!("run {rounds}"), checks.len())?;
    recording.stop()?;
    program.all_right("run 3", checks.len())?;
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    Ok((report, program))
}

fn expect_counted(report: &Report, program: &mut Awkward, rounds: u64) -> Result<()> {
    for (name, a_round) in program.calls()? {
        let reason = report.refused.get(&name);
        ensure!(reason.is_none(), "{name} is refused: {reason:?}");
        let b = report
            .functions
            .get(&name)
            .with_context(|| format!("no calls of {name}"))?;
        let calls = a_round * rounds;
        ensure!(
            b["entries"] == calls && b["exits"] == calls,
            "{name}: {b:?}, {calls} calls"
        );
    }
    Ok(())
}

/// A function's addresses of its own labels stay what they were: label tables, get-address.
fn own_labels(compiler: &'static str) -> Result<()> {
    for flags in ["-O0", "-O2", "-O2 -fno-pie -no-pie"] {
        let build = Build::new("own_labels", compiler, flags);
        let checks = ["interpreter", "own_address", "table_of_addresses"];
        let (report, mut program) = measured(&build, &checks, 100)?;
        report.expect_whole()?;
        expect_counted(&report, &mut program, 100)?;
        program.finish()?;
    }
    Ok(())
}

/// Without symbols the unwind entry is all that says where the function ends.
fn unwind_entry() -> Result<()> {
    let checks = ["unwind_entry_too_short"];
    let (report, mut program) = measured(&Build::new("unwind_entry", "gcc", "-O2"), &checks, 100)?;
    expect_counted(&report, &mut program, 100)?;
    program.finish()?;
    let (report, program) = measured(&Build::new("unwind_entry", "gcc", "-O2 -s"), &checks, 100)?;
    report.expect_whole()?;
    program.finish()
}

fn jump_tables(compiler: &'static str) -> Result<()> {
    // 11 + 6 + 4 dispatches a round
    let rounds = counts().pick(6_000, 600_000);
    let checks = ["dense_switch", "table_of_offsets", "table_of_addresses"];
    let (report, mut program) = measured(&Build::new("tables", compiler, "-O2"), &checks, rounds)?;
    let lost = report.summary["lost"].as_u64();
    let escaped = report.summary["balance"]["declared_lost"].as_u64();
    ensure!(lost == Some(0) && escaped == Some(0), "{}", report.summary);
    expect_counted(&report, &mut program, rounds)?;
    program.finish()
}

/// A recording of all that is asked for. An unwinder keeps places in functions that it passes, so that a stop within it may find one
/// in the bytes that a jump replaces: that function is left out then, and the user told to try again.
fn whole(pid: i32, pattern: &str) -> Result<Report> {
    let file = scratch().join("throws.hop");
    for _ in 0..TRIES {
        let mut record = command(pid, &[pattern], &file);
        run(record.args(["-d", "200ms"]))?.expect_code(0)?;
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        if !report
            .refused
            .values()
            .any(|why| why.ends_with("try again"))
        {
            return Ok(report);
        }
    }
    bail!("a function was left out of each of {TRIES} recordings")
}

const TRIES: usize = 5;

/// Exceptions pass where they passed before, also through what is measured.
fn throws(compiler: &str) -> Result<()> {
    for flags in [&["-O0"][..], &["-O2"], &["-O2", "-static"]] {
        let program = compile(compiler, &["traps/throw.cc"], flags)?;
        let mut start = Command::new(&program);
        let target = Target::spawn(start.stdout(Stdio::piped()))?;
        let name = program.file_name().context("a name")?.to_string_lossy();
        let report = whole(target.pid(), &format!("{name}!*"))?;
        for function in [
            "throw_number",
            "throw_through",
            "throw_and_catch",
            "throw_again",
        ] {
            let mut measured = report.functions.iter();
            let found = measured.find(|(name, _)| name.starts_with(&format!("{function}(")));
            let (_, calls) = found.with_context(|| format!("{function}: {:?}", report.refused))?;
            ensure!(calls["entries"] > 0, "{function}: {calls:?}");
        }
        target.signal(Signal::SIGTERM)?;
        let out = target.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        ensure!(
            out.status.success() && said.ends_with(" 0 wrong\n"),
            "{}: {said}",
            out.status
        );
    }
    Ok(())
}
