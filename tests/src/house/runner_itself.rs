//! The runner fails what fails: a required skip, a wrong answer, a panic, a hang.
use anyhow::{Result, bail, ensure};
use hopscope_tests::{Requirement, Suite, Target, hopscope_bin, scratch};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Skipped wherever there is no python3.
const SAMPLE: &str = "check::record_cannot_do_without_ptrace";
/// Set for a runner that is run by a test: it then has cases that are to fail.
const TO_FAIL: &str = "HOPSCOPE_CASES_TO_FAIL";

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "house::a_required_skip_fails",
        &[Requirement::Root],
        required_skip,
    );
    suite.case(
        "house::a_requirement_is_looked_at_once",
        &[],
        looked_at_once,
    );
    suite
        .case("house::failing_cases_fail", &[], failing_cases)
        .watchdog(60);
    if std::env::var_os(TO_FAIL).is_some() {
        suite.case("to_fail::error", &[], || bail!("a wrong answer"));
        suite.case("to_fail::panic", &[], || panic!("a broken test"));
        suite.case("to_fail::hang", &[], hang).watchdog(1);
        suite.case("to_fail::leak", &[], || {
            std::mem::forget(sleeper()?);
            Ok(())
        });
    }
}

fn sleeper() -> Result<Target> {
    let target = Target::spawn_now(Command::new("sleep").arg("100000"))?;
    println!("sleeper {}", target.pid());
    Ok(target)
}

fn hang() -> Result<()> {
    sleeper()?.wait_at_most(std::time::Duration::MAX)?;
    Ok(())
}

fn failing_cases() -> Result<()> {
    let out = itself("to_fail::", "").env(TO_FAIL, "1").output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.code() == Some(1), "{}: {said}", out.status);
    for words in [
        "FAIL  to_fail::error",
        "a wrong answer",
        "FAIL  to_fail::panic",
        "a broken test",
        "FAIL  to_fail::hang",
        "hung: killed after 1 s",
        "ok    to_fail::leak",
        "1 passed, 3 failed, 0 skipped",
    ] {
        ensure!(said.contains(words), "no `{words}` in: {said}");
    }
    let hung = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("sleeper "));
    let Some(pid) = hung else {
        bail!("the hanging case did not say whom it started: {said}");
    };
    // Killed; whoever inherited it may not have reaped it yet. The watchdog ends a vain wait.
    let stat = format!("/proc/{pid}/stat");
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::yield_now();
    }
    Ok(())
}

fn required_skip() -> Result<()> {
    let free = run_without_programs("")?;
    let said = String::from_utf8_lossy(&free.stdout);
    ensure!(free.status.success(), "{said}");
    ensure!(said.contains(&format!("SKIP  {SAMPLE}")), "{said}");
    ensure!(said.ends_with("0 passed, 0 failed, 1 skipped\n"), "{said}");
    for line in ["@python3", "check::", "@root # or\n@python3"] {
        let bound = run_without_programs(line)?;
        let said = String::from_utf8_lossy(&bound.stdout);
        ensure!(bound.status.code() == Some(1), "{line}: {said}");
        ensure!(said.contains("required on this machine"), "{line}: {said}");
    }
    Ok(())
}

/// Some start programs that take seconds to say.
fn looked_at_once() -> Result<()> {
    let dir = scratch();
    let (readers, asked) = (dir.join("readers"), dir.join("asked"));
    let script = format!("#!/bin/sh\necho once >> {}\nexit 1\n", asked.display());
    std::fs::write(&readers, script)?;
    std::fs::set_permissions(&readers, Permissions::from_mode(0o755))?;
    let mut command = itself_in(&dir, "export::parquet_", "");
    let out = command.env("HOPSCOPE_READERS", &readers).output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(said.ends_with("0 passed, 0 failed, 2 skipped\n"), "{said}");
    let asked = std::fs::read_to_string(asked)?;
    ensure!(asked.lines().count() == 1, "asked: {asked}");
    Ok(())
}

/// On a machine where no program can be found.
fn run_without_programs(required: &str) -> Result<Output> {
    Ok(itself(SAMPLE, required)
        .env("PATH", "/nonexistent")
        .output()?)
}

/// This runner, over the cases that `filter` names.
fn itself(filter: &str, required: &str) -> Command {
    itself_in(&scratch(), filter, required)
}

pub(super) fn itself_in(dir: &Path, filter: &str, required: &str) -> Command {
    let list = dir.join("required");
    std::fs::write(&list, required).expect("writing to the scratch directory");
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command
        .arg(filter)
        .env_remove("HOPSCOPE_CASE")
        .env("HOPSCOPE_BIN", hopscope_bin())
        .env("HOPSCOPE_REQUIRED", list)
        .env("HOPSCOPE_REPORT", dir.join("report.tsv"));
    command
}
