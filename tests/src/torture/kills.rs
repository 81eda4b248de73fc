//! Killed recorders and killed targets.
use super::torturer::Torturer;
use crate::recording::{Recording, Report, command, command_checking};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Counts, Requirement, Suite, Target, counts, hopscope, scratch};
use nix::poll::poll;
use nix::sys::signal::Signal;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// As many as measure/process/src/fault.rs has in every recording; one more must not be reached.
pub(crate) const FAULT_POINTS: u32 = 22;
/// The target's thread is about to make the first call for us.
const CALL_SET: u32 = 4;
/// Probes go off and on, and nobody will switch them on again.
const SWITCHED_OFF: u32 = 23;
/// Between the first stop and the last, where it matters what the target's other threads do: `make test` kills at all
/// of them only where there is one thread. Stopped; a call set and entered; gs set; patched, resuming; restoring,
/// restored; gs cleared.
const OF_ALL_THREADS: [u32; 9] = [2, 4, 5, 14, 16, 17, 18, 19, 20];
/// Of those, with threads without number, whose stops take 7 s of a processor each.
const OF_MANY_THREADS: [u32; 4] = [4, 14, 17, 19];
/// After these of them the target runs with entries that are not its own, or, after the last, with
/// the gs base of its probes.
const CARRYING: [u32; 3] = [16, 18, 19];

pub(super) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    for mode in ["spinning", "signalling", "threading", "forking"] {
        let name = format!("torture::recorder_killed_at_every_fault_point_{mode}");
        suite.case(name, gcc, move || every_fault_point(mode));
    }
    suite.case(
        "torture::recorder_killed_and_restored_by_its_guardian",
        gcc,
        guardian,
    );
    for mode in ["spinning", "signalling", "raw_cloning"] {
        let name = format!("torture::recorder_killed_at_random_{mode}");
        suite.case(name, gcc, move || random(mode));
    }
    suite.case(
        "torture::recorder_killed_before_a_call_is_made",
        gcc,
        before_a_call,
    );
    suite.case("torture::target_killed", gcc, target_killed);
    for mode in [
        "spinning",
        "signalling",
        "threading",
        "forking",
        "raw_cloning",
    ] {
        let name = format!("torture::recorder_killed_while_probes_are_off_{mode}");
        let case = suite.case(name, gcc, move || switched_off(mode));
        if !["spinning", "threading"].contains(&mode) {
            case.soak();
        }
    }
}

/// A recorder that has no guardian to clean up after it: it takes this process for one.
fn unguarded(pid: i32, file: &Path) -> Command {
    unguarded_for(pid, "torture*!*work*", file)
}

pub(super) fn unguarded_for(pid: i32, pattern: &str, file: &Path) -> Command {
    let mut record = command(pid, &[pattern], file);
    record.env("HOPSCOPE_GUARDED_BY", std::process::id().to_string());
    record.stdout(Stdio::null()).stderr(Stdio::null());
    record
}

/// The guardian's part, done by hand: afterwards the target is as it was.
pub(super) fn clean_up(torturer: &Torturer, salvaged: &Path, when: &str) -> Result<()> {
    let pid = torturer.pid().to_string();
    let path = salvaged.to_str().context("path")?;
    let _ = std::fs::remove_file(salvaged);
    let out = hopscope(&["detach", "-p", &pid, "-o", path])?;
    out.expect_code(0).with_context(|| when.to_owned())?;
    torturer
        .text_is_original()
        .with_context(|| when.to_owned())?;
    torturer.no_descriptors().with_context(|| when.to_owned())?;
    let policy = scheduling_policy(torturer.pid())?;
    ensure!(policy == 0, "{when}: scheduling policy {policy}");
    if salvaged.exists() {
        let report = Report::read(salvaged).with_context(|| when.to_owned())?;
        // Only a part of the recording is in it.
        let recorder = &report.summary["recorder"];
        ensure!(
            recorder.is_object() && recorder["calls_unmeasured"].is_null(),
            "{when}: {}",
            report.summary
        );
        report.expect_balanced().with_context(|| when.to_owned())?;
    }
    Ok(())
}

fn every_fault_point(mode: &'static str) -> Result<()> {
    let torturer = Torturer::start(mode)?;
    let dir = scratch();
    let mut salvaged = 0;
    let is_chosen = |point: &u32| {
        let all = mode == "spinning" || counts() == Counts::Full;
        let chosen = match mode {
            "threading" => &OF_MANY_THREADS[..],
            _ => &OF_ALL_THREADS,
        };
        all || chosen.contains(point)
    };
    for point in (1..=FAULT_POINTS).filter(is_chosen) {
        let when = format!("killed at fault point {point}");
        let mut record = unguarded(torturer.pid(), &dir.join("killed.hop"));
        record
            .args(["-d", "20ms"])
            .env("HOPSCOPE_FAULT_POINT", point.to_string());
        record.stderr(Stdio::piped());
        let out = record.output()?;
        let said = String::from_utf8_lossy(&out.stderr);
        ensure!(
            out.status.signal() == Some(9),
            "not {when}: {}\n{said}",
            out.status
        );
        if CARRYING.contains(&point) {
            let mut again = unguarded(torturer.pid(), &dir.join("again.hop"));
            again.args(["-d", "20ms"]).stderr(Stdio::piped());
            let again = hopscope_tests::command::run(&mut again)?.expect_code(2)?;
            ensure!(
                again.stderr.contains("still carries"),
                "{when}, and refused for another reason: {}",
                again.stderr
            );
        }
        let file = dir.join("salvaged.hop");
        clean_up(&torturer, &file, &when)?;
        salvaged += usize::from(file.exists());
    }
    let mut record = unguarded(torturer.pid(), &dir.join("whole.hop"));
    let beyond = (FAULT_POINTS + 1).to_string();
    let status = record
        .args(["-d", "20ms"])
        .env("HOPSCOPE_FAULT_POINT", beyond)
        .status()?;
    ensure!(
        status.success(),
        "after all the killing a recording no longer works: {status}"
    );
    ensure!(salvaged > 0, "records were never salvaged");
    torturer.finish()
}

/// The thread that is to make the call gets no processor before everything is cleaned up: the call
/// must not be made afterwards. A job-control stop holds it here; a busy machine does it too.
fn before_a_call() -> Result<()> {
    let torturer = Torturer::start("spinning")?;
    torturer.target.signal(Signal::SIGSTOP)?;
    let file = scratch().join("killed.hop");
    let mut record = unguarded(torturer.pid(), &file);
    record.env("HOPSCOPE_FAULT_POINT", CALL_SET.to_string());
    let status = record.status()?;
    ensure!(status.signal() == Some(9), "not killed: {status}");
    clean_up(&torturer, &file, "stopped, its recorder killed")?;
    let before = processor_ticks(torturer.pid())?;
    torturer.target.signal(Signal::SIGCONT)?;
    // It has run by then: what it was about to do is done.
    while processor_ticks(torturer.pid())? == before {
        poll(&mut [], 1u8)?;
    }
    torturer.no_descriptors()?;
    torturer.finish()
}

/// Of its main thread, as the scheduler counted them so far (proc_pid_stat(5), utime).
fn processor_ticks(pid: i32) -> Result<u64> {
    stat(pid, 14)
}

/// 0: as ordinary threads have it.
fn scheduling_policy(pid: i32) -> Result<u64> {
    stat(pid, 41)
}

/// A field of its main thread, as proc_pid_stat(5) numbers them.
fn stat(pid: i32, field: usize) -> Result<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat"))?;
    let (_, behind_name) = stat.rsplit_once(") ").context("stat")?;
    let value = behind_name.split(' ').nth(field - 3).context("a field")?;
    Ok(value.parse()?)
}

/// Less than `below_us`, another one each time.
pub(super) fn random_wait(seed: &mut u64, below_us: u64) -> Duration {
    *seed = seed
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    Duration::from_micros((*seed >> 33) % below_us)
}

/// At the first switch; and at instants between switches, which differ from run to run.
fn switched_off(mode: &'static str) -> Result<()> {
    let torturer = Torturer::start(mode)?;
    let dir = scratch();
    let file = dir.join("killed.hop");
    let record = |time: &str| {
        let mut record = command_checking(torturer.pid(), &["torture*!*work*"], &file, time);
        record.env("HOPSCOPE_GUARDED_BY", std::process::id().to_string());
        record.stdout(Stdio::null()).stderr(Stdio::null());
        record
    };
    let salvaged = dir.join("salvaged.hop");
    let point = SWITCHED_OFF.to_string();
    let status = record("200ms")
        .env("HOPSCOPE_FAULT_POINT", point)
        .status()?;
    ensure!(status.signal() == Some(9), "not killed: {status}");
    clean_up(&torturer, &salvaged, "killed while probes were off")?;
    let mut seed = u64::from(std::process::id());
    for n in 0..counts().pick(1, 100) {
        let wait = random_wait(&mut seed, 200_000);
        let ready = dir.join(format!("ready-{n}"));
        let mut record = record("10s");
        record.arg("--ready-file").arg(&ready);
        let mut recorder = Target::spawn_with_ready_file(&mut record, &ready)?;
        // What is random is when; nothing is concluded from the time.
        std::thread::sleep(wait);
        recorder.child().kill()?;
        recorder.child().wait()?;
        let when = format!("kill {n}, {wait:?} after it was ready");
        clean_up(&torturer, &salvaged, &when)?;
    }
    torturer.finish()
}

/// The recorder dies, its parent lives: the user sees one line, and nobody has to clean up.
fn guardian() -> Result<()> {
    let torturer = Torturer::start("spinning")?;
    let file = scratch().join("killed.hop");
    let mut record = command(torturer.pid(), &["torture*!*work*"], &file);
    // When it has recorded, and is about to detach.
    record
        .args(["-d", "20ms"])
        .env("HOPSCOPE_FAULT_POINT", "18");
    let out = hopscope_tests::command::run(&mut record)?.expect_code(2)?;
    ensure!(out.stderr.contains("recorder was killed"), "{}", out.stderr);
    torturer.text_is_original()?;
    let report = Report::read(&file.with_extension("salvaged.hop"))?;
    report.expect_balanced()?;
    // What the recorder had drained before is in its own file, which lacks its end.
    let begun = hopscope_tests::hopscope(&["info", file.to_str().context("path")?])?;
    ensure!(begun.stdout.contains("torture"), "{begun:?}");
    let salvaged = report.summary["records"].as_u64();
    ensure!(
        salvaged > Some(0),
        "no record was salvaged: {}",
        report.summary
    );
    torturer.finish()
}

/// At instants that differ from run to run, from the first system call to the middle of recording.
fn random(mode: &'static str) -> Result<()> {
    let torturer = Torturer::start(mode)?;
    let dir = scratch();
    let mut seed = u64::from(std::process::id());
    for n in 0..counts().pick(6, 300) {
        let mut recorder =
            Target::spawn_now(&mut unguarded(torturer.pid(), &dir.join("killed.hop")))?;
        let wait = random_wait(&mut seed, 120_000);
        // What is random is when; nothing is concluded from the time.
        std::thread::sleep(wait);
        recorder.child().kill()?;
        recorder.child().wait()?;
        clean_up(
            &torturer,
            &dir.join("salvaged.hop"),
            &format!("kill {n}, after {wait:?}"),
        )?;
    }
    torturer.finish()
}

/// What was recorded before the target died is in the file.
fn target_killed() -> Result<()> {
    for n in 0..counts().pick(2, 100) {
        let torturer = Torturer::start("spinning")?;
        let file = scratch().join("killed.hop");
        let recording = Recording::start(torturer.pid(), &["torture*!*work*"], &file)?;
        torturer.target.signal(Signal::SIGKILL)?;
        let summary = recording
            .finished()
            .with_context(|| format!("target {n}"))?;
        ensure!(
            summary["torn"].as_u64().is_some(),
            "torn slots are not counted: {summary}"
        );
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        let records = report.summary["records"].as_u64();
        ensure!(
            records == summary["recorded"].as_u64(),
            "{records:?} records of {summary}"
        );
        let out = hopscope(&["info", file.to_str().context("path")?])?.expect_code(0)?;
        ensure!(
            out.stdout.contains("torn"),
            "info says nothing of torn records: {}",
            out.stdout
        );
    }
    Ok(())
}
