//! Commands that hopscope starts itself, from their first call on, and programs that become others.
use crate::called::{self, CALLS, Called};
use crate::recording::{Recording, Report};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c, hopscope_bin, scratch};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("launched::dynamic", gcc, || measured("gcc", &[]));
    suite.case("launched::static_glibc", gcc, || {
        measured("gcc", &["-static"])
    });
    suite.case("launched::static_pie_glibc", gcc, || {
        measured("gcc", &["-static-pie"])
    });
    suite.case("launched::static_musl", &[Requirement::Musl], || {
        measured("musl-gcc", &["-static"])
    });
    suite.case("launched::begins_as_any_program", gcc, begins);
    let under_nohup = begins_with_signals_ignored;
    suite.case("launched::begins_with_signals_ignored", gcc, under_nohup);
    suite.case("launched::environment_is_as_given", gcc, environment);
    suite.case("launched::every_end_is_passed_on", gcc, every_end);
    suite.case("launched::exec_is_no_exit", gcc, exec);
    suite.case("launched::another_program_first", gcc, another_first);
    suite.case(
        "launched::before_the_entry_point",
        gcc,
        before_the_entry_point,
    );
}

/// Each call is there, the command's exit code is passed on.
fn measured(compiler: &'static str, flags: &[&str]) -> Result<()> {
    let program = called::build(compiler, flags)?;
    let file = scratch().join("launched.hop");
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "-f", "work", "-o"]);
    record.arg(&file).arg("--").arg(program);
    record.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = record.stderr(Stdio::piped()).spawn()?;
    let mut to = child.stdin.take().context("was piped")?;
    writeln!(to, "{CALLS}")?;
    drop(to);
    let done = child.wait_with_output()?;
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    ensure!(done.status.success(), "{}: {err}", done.status);
    ensure!(out.contains(&format!("{CALLS} right")), "{out}");
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let entries = report.entries("work");
    ensure!(entries == CALLS, "{entries} calls");
    Ok(())
}

/// Its signals, as the kernel has them, and its environment.
fn begins() -> Result<()> {
    begins_under(&[])
}

/// As under nohup(1), and in the background of a shell script.
fn begins_with_signals_ignored() -> Result<()> {
    begins_under(&["sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh"])
}

fn begins_under(starter: &[&str]) -> Result<()> {
    let program = compile_c(&["launched/begins.c"], &["-O1"])?;
    let lines = |out: &str| -> Vec<String> { out.lines().map(str::to_owned).collect() };
    let under = |program: &Path| match starter {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    let plain = run(&mut under(&program))?.expect_code(0)?;
    let mut record = under(&hopscope_bin());
    record.args(["record", "--no-calibration", "-f", "look", "-o"]);
    record
        .arg(scratch().join("begins.hop"))
        .arg("--")
        .arg(program);
    let measured = run(&mut record)?.expect_code(0)?;
    // Our own start left glibc's two ignored.
    let mut plain = plain.stdout;
    for signal in ["signal 32: ", "signal 33: "] {
        plain = plain.replace(&format!("{signal}1\n"), &format!("{signal}0\n"));
    }
    let (plain, measured) = (lines(&plain), lines(&measured.stdout));
    ensure!(plain.len() > 64, "{plain:?}");
    let other = |a: &[String], b: &[String]| -> Vec<String> {
        a.iter().filter(|line| !b.contains(line)).cloned().collect()
    };
    let differ = [other(&plain, &measured), other(&measured, &plain)];
    ensure!(differ.iter().all(Vec::is_empty), "{differ:?}");
    ensure!(plain == measured, "{plain:?} {measured:?}");
    Ok(())
}

/// Entry by entry, whatever they are.
fn environment() -> Result<()> {
    let odd = compile_c(&["launched/odd_environment.c"], &["-O1"])?;
    begins_under(&[odd.to_str().context("path")?])
}

/// All codes and signals that may mean something to somebody: 101 is that of a Rust program that panicked, from 124 on
/// those of shells and timeout(1).
fn every_end() -> Result<()> {
    let program = compile_c(&["launched/ends.c"], &["-O1"])?;
    let codes = [0, 1, 2, 3, 100, 101, 102, 124, 125, 126, 127, 128, 134, 255];
    let signals = [-1, -2, -6, -9, -11, -13, -15, -34];
    for how in codes.into_iter().chain(signals) {
        let mut record = Command::new(hopscope_bin());
        record.args(["record", "--no-calibration", "-f", "ends_work", "-o"]);
        record.arg(scratch().join("ends.hop")).arg("--");
        let out = run(record.arg(&program).arg(how.to_string()))?;
        let expected = if how < 0 { 128 - how } else { how };
        let out = out.expect_code(expected).with_context(|| how.to_string())?;
        ensure!(!out.stderr.contains("restoring its targets"), "{out:?}");
    }
    Ok(())
}

/// It replaces itself before its entry point, and takes its own breakpoints there.
fn another_first() -> Result<()> {
    let file = scratch().join("again.hop");
    let mut record = Command::new(hopscope_bin());
    record
        .args(["record", "--no-calibration", "-f", "called_once", "-o"])
        .arg(&file)
        .arg("--")
        .arg(compile_c(&["hostile/again.c"], &["-O1"])?);
    let out = run(&mut record)?.expect_code(0)?;
    ensure!(out.stdout.trim() == "2 traps", "{out:?}");
    let report = Report::read(&file)?;
    let entries = report.entries("called_once");
    ensure!(entries == 1, "{entries} calls: {out:?}");
    Ok(())
}

/// The process runs on: it is not said to have exited.
fn exec() -> Result<()> {
    let mut called = Called::start(&[])?;
    let file = scratch().join("exec.hop");
    let recording = Recording::start(called.pid(), &["work"], &file)?;
    called.program.call()?;
    called.program.tell("-1")?;
    let summary = recording.finished()?;
    let (ended, notes) = (&summary["ended_because"], summary["notes"].to_string());
    ensure!(
        ended.as_str().is_some_and(|e| e.contains("exec")),
        "{ended}"
    );
    let note = format!("process {} has replaced its program", called.pid());
    ensure!(notes.contains(&note), "{notes}");
    called.program.tell("here")?;
    ensure!(called.program.line()? == "here", "`cat` does not answer");
    called.program.end()?;
    let report = Report::read(&file)?;
    ensure!(report.entries("work") == CALLS, "{}", report.summary);
    Ok(())
}

/// What a library's constructor calls is not recorded, and that is said.
fn before_the_entry_point() -> Result<()> {
    let library = compile_c(&["launched/library.c"], &["-O1", "-fPIC", "-shared"])?;
    let library = library.to_str().context("path")?;
    let program = compile_c(&["launched/uses_library.c"], &["-O1", library])?;
    let said = |function: &str, calls| -> Result<bool> {
        let file = scratch().join("before-the-entry-point.hop");
        let mut record = Command::new(hopscope_bin());
        record.args(["record", "--no-calibration", "-f", function, "-o"]);
        let out = run(record.arg(&file).arg("--").arg(&program))?.expect_code(0)?;
        let entries = Report::read(&file)?.entries(function);
        ensure!(entries == calls, "{entries} calls of {function}");
        Ok(out.stderr.contains("constructors") || out.stdout.contains("constructors"))
    };
    ensure!(said("library_work", 5)?, "what ran before is not said");
    ensure!(!said("main", 1)?, "nothing of the program ran before");
    Ok(())
}
