//! However it ends, what was added goes with the rest.
use super::{call, expect, following, load, plug_in, start, sum};
use crate::recording::{Recording, Report};
use crate::torture::kills::FAULT_POINTS;
use anyhow::{Result, ensure};
use hopscope_tests::mapped::descriptors;
use hopscope_tests::{Requirement, Suite, hopscope, scratch};
use nix::sys::signal::{Signal, kill};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::Gcc;
    suite.case("dlopen::restored_by_the_guardian", &[Gcc], guardian);
    suite.case("dlopen::recorder_killed_while_it_adds", &[Gcc], killed);
    suite.case("dlopen::forked_children", &[Gcc], forked);
}

/// Names of what was added are with the records that were left.
fn guardian() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("killed.hop"));
    let record = following(target.pid(), &["own", "plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &plug_in)?;
    kill(recording.recorder()?, Signal::SIGSTOP)?;
    call(&mut target, 0, 100)?;
    target.told("own 1")?;
    kill(recording.recorder()?, Signal::SIGKILL)?;
    recording.ended()?;
    let report = Report::read(&file.with_file_name("killed.salvaged.hop"))?;
    report.expect_balanced()?;
    let counted = ["plug_step", "plug_run", "own"].map(|f| report.entries(f));
    ensure!(counted == [100, 1, 1], "{counted:?}");
    target.expect_clean()?;
    expect(&mut target, "original 0", "original")?;
    call(&mut target, 0, 10)
}

/// At each step of what is added, and of taking it away again: the points count from the moment on at which the recording
/// has begun.
fn killed() -> Result<()> {
    let (mut target, plug_in, dir) = (start()?, plug_in()?, scratch());
    let load = format!("load 0 {}", plug_in.display());
    // Threads have their contexts already.
    for point in (1..=FAULT_POINTS).filter(|point| *point != SET_GS) {
        let when = format!("killed at fault point {point}");
        let mut record = following(target.pid(), &["plug_*"], &dir.join("killed.hop"));
        record
            .env("HOPSCOPE_GUARDED_BY", std::process::id().to_string())
            .env("HOPSCOPE_FAULT_POINT", point.to_string())
            .env("HOPSCOPE_FAULT_AFTER_READY", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let ready = dir.join("ready");
        record.arg("--ready-file").arg(&ready);
        let recorder = hopscope_tests::Target::spawn_with_ready_file(&mut record, &ready)?;
        expect(&mut target, &load, "loaded")?;
        if AT_THE_END.contains(&point) {
            expect(&mut target, "measured 0", "measured")?;
            call(&mut target, 0, 10)?;
            recorder.signal(Signal::SIGINT)?;
        }
        let out = recorder.output()?;
        ensure!(out.status.signal() == Some(9), "not {when}: {}", out.status);
        let right = sum(100, 31, 0).to_string();
        expect(&mut target, "call 0 100", &right)?;
        let pid = target.pid().to_string();
        let salvaged = dir.join("salvaged.hop");
        let _ = std::fs::remove_file(&salvaged);
        let path = salvaged.to_string_lossy().into_owned();
        let out = hopscope(&["detach", "-p", &pid, "-o", &path])?;
        ensure!(out.code == Some(0), "{when}: {}", out.stderr);
        target.expect_clean()?;
        let open = descriptors(target.pid())?;
        ensure!(open.is_empty(), "{when}: {open:?}");
        expect(&mut target, "original 0", "original")?;
        call(&mut target, 0, 10)?;
        if salvaged.exists() {
            let report = Report::read(&salvaged)?;
            report.expect_balanced()?;
            let steps = report.entries("plug_step");
            ensure!(steps <= 110, "{when}: {steps}");
        }
        expect(&mut target, "unload 0", "unloaded")?;
    }
    Ok(())
}

const SET_GS: u32 = 14;
/// Restoring, restored; gs cleared, unmapped.
const AT_THE_END: std::ops::RangeInclusive<u32> = 18..=21;

/// Those that have what was added, and one from before that has not.
fn forked() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("forked.hop"));
    let mut record = following(target.pid(), &["own", "plug_*"], &file);
    record.arg("--follow-forks");
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &plug_in)?;
    let right = (sum(100, 31, 0) & 127).to_string();
    expect(&mut target, "fork 0 100", &right)?;
    call(&mut target, 0, 10)?;
    recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let steps = report.entries("plug_step");
    ensure!(steps == 110, "{steps}");
    target.expect_clean()
}
