//! With probes on, a call changes nothing but what the bare function changes: every general
//! register, every combination of the flags, vectors, x87, mxcsr, and the stack above and below.
use crate::recording::{Report, command, command_checking, expect_checked, summary};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, counts, scratch};
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

const FUNCTIONS: [&str; 9] = [
    "clobber_nothing",
    "clobber_rax",
    "clobber_flags",
    "clobber_tail",
    "clobber_tail_if",
    "clobber_tail_memory",
    "clobber_table",
    "clobber_out_of_table",
    "clobber_calls",
];

pub(crate) fn register(suite: &mut Suite) {
    suite.case("clobber::probes", &[Requirement::Gcc], || clobber(&[]));
    suite.case("clobber::switched_probes", &[Requirement::Gcc], switched);
    suite.case("clobber::empty_probes", &[Requirement::Gcc], || {
        clobber(&["--empty-probes"])
    });
    suite.case("clobber::stamp_probes", &[Requirement::Gcc], || {
        clobber(&["--stamp-probes"])
    });
}

/// While probes go off and on, and threads are in the middle of them.
fn switched() -> Result<()> {
    let program = compile_c(&["clobber/clobber.c", "clobber/call.S"], &["-O2"])?;
    let mut start = Command::new(program);
    let target = Target::spawn(start.stdout(Stdio::piped()))?;
    let file = scratch().join("clobber.hop");
    for _ in 0..counts().pick(1, 50) {
        let time = counts().pick("400ms", "2s");
        let mut record = command_checking(target.pid(), &FUNCTIONS, &file, time);
        let out = run(&mut record)?.expect_code(0)?;
        expect_checked(&summary(&out.stdout)?)?;
        Report::read(&file)?.expect_balanced()?;
    }
    ended(target)
}

fn clobber(extra: &[&str]) -> Result<()> {
    let program = compile_c(&["clobber/clobber.c", "clobber/call.S"], &["-O2"])?;
    let mut start = Command::new(program);
    let target = Target::spawn(start.stdout(Stdio::piped()))?;
    let file = scratch().join("clobber.hop");
    // Several times: each attach finds the program elsewhere.
    for _ in 0..counts().pick(5, 100) {
        let mut record = command(target.pid(), &FUNCTIONS, &file);
        record.args(extra);
        // Such probes count nothing, so only time can end them.
        match extra.is_empty() {
            true => record.args(["--count", "50000"]),
            false => record.args(["-d", "100ms"]),
        };
        run(&mut record)?.expect_code(0)?;
        let report = Report::read(&file)?;
        for name in FUNCTIONS {
            let reason = report.refused.get(name);
            ensure!(reason.is_none(), "{name} is refused: {reason:?}");
            ensure!(
                !extra.is_empty() || report.entries(name) > 0,
                "{name} was never seen"
            );
        }
        report.expect_balanced()?;
    }
    ended(target)
}

fn ended(target: Target) -> Result<()> {
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(
        out.status.success() && said.ends_with(" 0 wrong\n"),
        "{}: {said}",
        out.status
    );
    Ok(())
}
