//! Other tools at work in a measured process: uprobes of perf and bpftrace in a measured entry, a
//! time stamp counter that is switched off. The target runs on and computes the same.
use crate::called::{CALLS, Called, Conversation};
use crate::recording::{Recording, Report, command};
use anyhow::{Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c, scratch};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let uprobes = &[Requirement::Root, Requirement::Gcc, Requirement::Uprobes];
    suite.case(
        "breakpoints::uprobe_set_while_measured",
        uprobes,
        set_while_measured,
    );
    suite.case("breakpoints::uprobe_set_before", uprobes, set_before);
    suite.case(
        "breakpoints::time_stamp_counter_off",
        &[Requirement::Gcc],
        counter_off,
    );
}

fn uprobe(called: &Called) -> Result<Conversation> {
    ensure!(called.original[0] == 0x55, "it does not begin with push");
    let setter = compile_c(&["uprobe.c"], &["-O1"])?;
    let mut command = Command::new(setter);
    command.arg(&called.file);
    command.args([called.offset.to_string(), called.pid().to_string()]);
    let mut uprobe = Conversation::start(&mut command)?;
    let answer = uprobe.line()?;
    ensure!(answer == "set", "the uprobe: {answer}");
    let bytes = called.bytes()?;
    ensure!(bytes[0] == 0xcc, "no breakpoint: {bytes:x?}");
    Ok(uprobe)
}

/// Returns when nothing of our jump is behind the breakpoint.
fn wait_until_given_back(called: &Called) -> Result<()> {
    for _ in 0..4_000 {
        if called.bytes()?[1..] == called.original[1..] {
            return Ok(());
        }
        nix::poll::poll(&mut [], 5u8)?;
    }
    bail!("still {:x?}", called.bytes()?)
}

fn expect_original(called: &Called) -> Result<()> {
    let bytes = called.bytes()?;
    ensure!(bytes == called.original, "{bytes:x?}");
    Ok(())
}

fn set_while_measured() -> Result<()> {
    let mut called = Called::start(&[])?;
    let file = scratch().join("uprobe.hop");
    let recording = Recording::start(called.pid(), &["work"], &file)?;
    called.program.call()?;
    let uprobe = uprobe(&called)?;
    wait_until_given_back(&called)?;
    called.program.call()?;
    uprobe.end()?;
    expect_original(&called)?;
    called.program.call()?;
    let summary = recording.stop()?;
    let notes = summary["notes"].to_string();
    ensure!(
        notes.contains("work: measured only until another tool set a breakpoint"),
        "{notes}"
    );
    expect_original(&called)?;
    called.program.call()?;
    called.program.end()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let entries = report.entries("work");
    ensure!(entries == CALLS, "{entries} calls");
    Ok(())
}

fn set_before() -> Result<()> {
    let mut called = Called::start(&[])?;
    let uprobe = uprobe(&called)?;
    expect_refused(&called, "a breakpoint is set at")?;
    called.program.call()?;
    uprobe.end()?;
    called.program.call()?;
    called.program.end()
}

fn counter_off() -> Result<()> {
    let mut called = Called::start(&["no-tsc"])?;
    expect_refused(&called, "rdtsc is disabled")?;
    expect_original(&called)?;
    called.program.call()?;
    called.program.end()
}

fn expect_refused(called: &Called, why: &str) -> Result<()> {
    let mut record = command(called.pid(), &["work"], &scratch().join("refused.hop"));
    let refused = run(record.args(["-d", "1s"]))?.expect_code(2)?;
    ensure!(refused.stderr.contains(why), "{}", refused.stderr);
    Ok(())
}
