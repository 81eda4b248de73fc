//! Copies that cannot be taken away: how much of them may gather, and how they go.
use crate::recording::command;
use anyhow::{Result, ensure};
use hopscope_tests::mapped::mapped;
use hopscope_tests::{Requirement, Suite, Target, command::run, compile, hopscope, scratch};
use std::process::Command;

/// 8 MiB of copies each.
const UNTIL_REFUSED: usize = 12;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "torture::leftovers_are_limited",
        &[Requirement::Gcc],
        limited,
    );
}

/// KiB of copies in the process.
fn left_kib(pid: i32) -> Result<u64> {
    let ours = mapped(pid)?;
    let copies = ours.iter().filter(|m| m.executable).map(|m| m.bytes);
    Ok(copies.sum::<u64>() >> 10)
}

fn limited() -> Result<()> {
    let program = compile("gcc", &["torture/leaving.c"], &["-O1"])?;
    let target = Target::spawn(&mut Command::new(program))?;
    let file = scratch().join("leaving.hop");
    let record = || run(command(target.pid(), &["large_*"], &file).args(["-d", "1ms"]));
    let mut stayed = 0;
    let refused = loop {
        let out = record()?;
        if out.code != Some(0) {
            break out.expect_code(2)?;
        }
        ensure!(
            out.stdout.contains("more than 16 MiB of memory"),
            "why the copies stay is not said: {}",
            out.stdout
        );
        stayed += 1;
        ensure!(
            stayed < UNTIL_REFUSED,
            "{} KiB gathered",
            left_kib(target.pid())?
        );
    };
    let kib = left_kib(target.pid())?;
    ensure!(
        refused.stderr.contains("more than 64 MiB") && refused.stderr.contains("--search-all"),
        "{}",
        refused.stderr
    );
    ensure!(kib > 64 << 10, "refused with {kib} KiB");
    let pid = target.pid().to_string();
    let searched = hopscope(&["detach", "-p", &pid])?.expect_code(0)?;
    ensure!(
        searched.stdout.contains(" of 0 recordings (") && left_kib(target.pid())? == kib,
        "{}",
        searched.stdout
    );
    let searched = hopscope(&["detach", "-p", &pid, "--search-all"])?.expect_code(0)?;
    ensure!(
        searched
            .stdout
            .contains(&format!(" of {stayed} recordings (")),
        "{}",
        searched.stdout
    );
    ensure!(left_kib(target.pid())? == 0, "copies are still there");
    record()?.expect_code(0)?;
    Ok(())
}
