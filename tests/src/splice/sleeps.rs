//! A program that always sleeps in recv, once its connection is joined: `tests/programs/splice/sleeps.c`.
use super::scene::{attached, splice_as_it_is, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope};
use nix::poll::poll;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Only what hangs is looked at so often.
const LOOKS: u32 = 1_000;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case(
        "splice::who_always_sleeps_in_recv_gets_back_to_tcp",
        here,
        signals,
    );
    suite.case("splice::both_ends_leave_once_one_is_shut_down", here, shut);
    suite.case(
        "splice::a_send_under_way_outlives_a_release",
        here,
        under_way,
    );
}

fn sleeps() -> Result<PathBuf> {
    compile_c(&["splice/sleeps.c"], &["-O2", "-Wall", "-pthread"])
}

/// What it says once both ends have left the map.
fn said_once_released(case: &str) -> Result<Value> {
    let (attached, port) = attached(|attach| {
        attach.arg("-q");
    })?;
    let mut program = Command::new(sleeps()?);
    program
        .args([case, &port])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut program = Target::spawn_now(&mut program)?;
    let stdout = program.child().stdout.take().context("stdout")?;
    let mut stdin = program.child().stdin.take().context("stdin")?;
    let mut lines = BufReader::new(stdout).lines();
    let begun = lines.next().context("a line")??;
    ensure!(begun == "sleeps", "{begun}");
    released(attached.pid())?;
    stdin.write_all(b"\n")?;
    let line = lines.next().context("its end")??;
    let said: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
    ensure!(program.wait()?.success(), "{line}");
    attached.signal(Signal::SIGINT)?;
    ensure!(attached.wait()?.success(), "its end");
    Ok(said)
}

/// The receive during which its connection was released may still say EAGAIN; no other does.
fn signals() -> Result<()> {
    let said = said_once_released("signals")?;
    ensure!(
        said["before"].as_u64().is_some_and(|before| before <= 1)
            && said["others"] == 0
            && said["received"] == 6,
        "{said}"
    );
    Ok(())
}

/// Both ends are open still.
fn shut() -> Result<()> {
    let said = said_once_released("shut")?;
    ensure!(said["received"] == 6, "{said}");
    Ok(())
}

fn released(pid: i32) -> Result<()> {
    let pid = pid.to_string();
    let mut counts = Value::Null;
    for _ in 0..LOOKS {
        let out = hopscope(&["splice", "stat", "--json", "--of", &pid])?;
        counts = serde_json::from_str(out.expect_code(0)?.stdout.trim())?;
        if counts["ends_left"] == 2 {
            return Ok(());
        }
        poll(&mut [], 10u8)?;
    }
    anyhow::bail!("not released: {counts}")
}

/// Its message is in no queue yet, and comes; the receive that sleeps is given the other one.
fn under_way() -> Result<()> {
    let program = sleeps()?;
    let done = splice_as_it_is(
        &[],
        "exec \"$SLEEPS\" stuck",
        &[("SLEEPS", text(&program)?)],
    )?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let said = done.said()?;
    ensure!(
        said["client"] == 3 && said["server"] == 3,
        "{said} {}",
        done.summary
    );
    ensure!(
        done.count("released_blocking")? == 1 && done.count("ends_left")? == 2,
        "{}",
        done.summary
    );
    Ok(())
}
