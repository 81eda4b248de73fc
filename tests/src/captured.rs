//! Captured values: each is what the program passed, held or returned, in the very call that it is
//! recorded of; and no pointer, however wrong, is noticed by the program.
mod program;
mod values;

use crate::recording::{Recording, Report};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, scratch};
use program::Program;
use values::{Calls, expect_calls};

/// Nothing may be lost, however late the recorder gets a processor.
const BUFFER: &str = "512M";

const TAKE: &str = "take(frame->n, queue, id, small, five, six, frame->when, frame->next->port, \
                    frame->packets[3].seq, frame->packets[0..n].seq, frame->first[0..2].seq, i8(frame+8), return)";
const LOOK: &str = "look(id, frame->port, return)";

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Gcc, Requirement::Fsgsbase];
    suite.case("captured::optimised", needs, || every_value("-O2", "quiet"));
    suite.case("captured::unoptimised", needs, || {
        every_value("-O0", "quiet")
    });
    suite.case("captured::under_signals", needs, || {
        every_value("-O2", "signals")
    });
    suite.case("captured::unoptimised_under_signals", needs, || {
        every_value("-O0", "signals")
    });
    suite.case("captured::forked_children", needs, forked_children);
    suite.case("captured::pointers_to_nothing", needs, pointers_to_nothing);
    suite.case("captured::cycles", needs, cycles);
}

/// Calls at full rate.
fn every_value(level: &str, mode: &str) -> Result<()> {
    let calls = counts().pick(10_000, 200_000);
    let mut program = Program::start(level, mode)?;
    let file = scratch().join("captured.hop");
    let recording = Recording::start_keeping(program.pid(), &[TAKE, LOOK], &file, BUFFER)?;
    let done = program.command(&format!("run {calls}"))?;
    recording.stop()?;
    ensure!(done.own == calls && done.failures == 0, "{done:?}");
    Report::read(&file)?.expect_whole()?;
    let recorded = Calls::read(&file)?;
    let handled = expect_calls(&recorded, calls)?;
    if mode == "signals" {
        ensure!(handled > 0, "no signal came while it was measured");
        println!("{handled} calls of the handler");
    }
    Ok(())
}

/// They run the probes and record nothing; what the parent records stays whole.
fn forked_children() -> Result<()> {
    let mut program = Program::start("-O2", "quiet")?;
    let file = scratch().join("captured.hop");
    let recording = Recording::start_keeping(program.pid(), &[TAKE, LOOK], &file, BUFFER)?;
    let done = program.command("fork 5000")?;
    recording.stop()?;
    ensure!(done.failures == 0, "{done:?}");
    expect_calls(&Calls::read(&file)?, done.own)?;
    Ok(())
}

/// Absent values are recorded as such, readable ones with their value; the program runs on.
fn pointers_to_nothing() -> Result<()> {
    let calls = counts().pick(6_000, 60_000);
    let mut program = Program::start("-O2", "quiet")?;
    let file = scratch().join("captured.hop");
    let wild = "wild(u32(arg1), u8(u64(arg1+8)), where, id, u32(arg1+0)[0..2])";
    let many = "many(n, be32(arg1)[0..n], u32(arg1)[0..u32(arg1-0)])";
    let recording = Recording::start_keeping(program.pid(), &[wild, many], &file, BUFFER)?;
    let done = program.command(&format!("wild {calls}"))?;
    recording.stop()?;
    ensure!(done.failures == 0, "{done:?}");
    let recorded = Calls::read(&file)?;
    let unreadable = values::expect_wild(&recorded, calls)?;
    let left_out = values::expect_many(&recorded, calls)?;
    let report = Report::read(&file)?;
    let said = |field: &str| report.summary[field].as_u64();
    let counted = (said("values_unreadable"), said("values_left_out"));
    let expected = (Some(unreadable), Some(left_out));
    ensure!(counted == expected, "{expected:?}: {}", report.summary);
    Ok(())
}

/// Attached and detached again and again while the calls go on.
fn cycles() -> Result<()> {
    let rounds = counts().pick(4, 200);
    let mut program = Program::start("-O2", "signals")?;
    for round in 0..rounds {
        let file = scratch().join("captured.hop");
        let recording = Recording::start(program.pid(), &[TAKE, LOOK], &file)?;
        program.send("run 2000")?;
        recording.stop()?;
        let done = program.answer()?;
        ensure!(done.failures == 0, "round {round}: {done:?}");
        values::expect_right(&Calls::read(&file)?)?;
    }
    Ok(())
}
