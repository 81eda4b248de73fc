//! Attaches that fail, or are killed, while threads stand in the bytes that change: such a thread
//! must be moved into a copy, and a copy reads through gs.
use super::kills::{clean_up, unguarded_for};
use super::torturer::Torturer;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts, scratch};
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

const FUNCTION: &str = "first_bytes";
/// measure/process/src/fault.rs
const SET_GS: u32 = 14;
const STATE_PATCHED: u32 = 15;
const PATCHED: u32 = 16;

pub(super) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("torture::first_bytes_recorder_killed", gcc, killed);
    suite.case("torture::first_bytes_attach_fails", gcc, || {
        failing(STATE_PATCHED)
    });
    suite.case("torture::first_bytes_attach_fails_for_good", gcc, || {
        failing(PATCHED)
    });
}

/// Between the first thread's gs and the last one's: none of them may be in a copy yet.
fn killed() -> Result<()> {
    let torturer = Torturer::start_program("first_bytes.c", FUNCTION)?;
    let dir = scratch();
    for n in 0..counts().pick(2, 100) {
        let mut record = unguarded_for(torturer.pid(), FUNCTION, &dir.join("killed.hop"));
        let status = record
            .args(["-d", "20ms"])
            .env("HOPSCOPE_FAULT_POINT", SET_GS.to_string())
            .status()?;
        ensure!(
            status.signal() == Some(Signal::SIGKILL as i32),
            "not killed, kill {n}: {status}"
        );
        clean_up(&torturer, &dir.join("salvaged.hop"), &format!("kill {n}"))?;
    }
    torturer.finish()
}

/// Threads are in copies, and with [`PATCHED`] entries lead there: both need gs until `detach`.
fn failing(point: u32) -> Result<()> {
    let torturer = Torturer::start_program("first_bytes.c", FUNCTION)?;
    let dir = scratch();
    for n in 0..counts().pick(2, 100) {
        let when = format!("failure {n}");
        let mut record = unguarded_for(torturer.pid(), FUNCTION, &dir.join("failed.hop"));
        record
            .args(["-d", "20ms"])
            .env("HOPSCOPE_FAILURE_POINT", point.to_string())
            .stderr(Stdio::piped());
        let out = run(&mut record)?.expect_code(2)?;
        let advised = out.stderr.contains("run: hopscope detach -p");
        ensure!(
            advised == (point == PATCHED),
            "what to do is said wrongly: {}",
            out.stderr
        );
        ensure!(
            torturer.text_is_original().is_err() == (point == PATCHED),
            "{when}: the entries are not as this failure leaves them"
        );
        clean_up(&torturer, &dir.join("salvaged.hop"), &when)?;
    }
    torturer.finish()
}
