//! A proof that must run here and cannot is a failure, not a skip.
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope_bin, scratch};
use std::process::{Command, Output};

/// Skipped wherever there is no python3.
const SAMPLE: &str = "check::record_cannot_do_without_ptrace";

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "house::a_required_skip_fails",
        &[Requirement::Root],
        required_skip,
    );
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

/// This runner on a machine where no program can be found.
fn run_without_programs(required: &str) -> Result<Output> {
    let list = scratch().join("required");
    std::fs::write(&list, required)?;
    Ok(Command::new(std::env::current_exe()?)
        .args(["--exact", SAMPLE])
        .env_remove("HOPSCOPE_CASE")
        .env("HOPSCOPE_BIN", hopscope_bin())
        .env("HOPSCOPE_REQUIRED", list)
        .env("HOPSCOPE_REPORT", "/dev/null")
        .env("PATH", "/nonexistent")
        .output()?)
}
