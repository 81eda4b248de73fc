//! Programs with an io_uring stay on TCP, where zero-copy sends work: `tests/programs/splice/rings.c`.
use super::scene::{ANYWAY, AT_ONCE, Done, dir, splice, splice_as_it_is, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope_bin};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root, Splice};
    let needs = &[Root, Splice, Gcc];
    suite.case(
        "splice::programs_with_an_io_uring_stay_on_tcp",
        needs,
        before_connections,
    );
    suite.case(
        "splice::a_program_that_makes_an_io_uring_gets_back_to_tcp",
        needs,
        after_a_connection,
    );
    suite.case(
        "splice::an_io_uring_that_was_there_before_is_seen",
        needs,
        before_the_accelerator,
    );
}

/// A file of this case's own: whoever runs the same one elsewhere has it excluded here, too.
fn rings(case: &str) -> Result<PathBuf> {
    compile_c(
        &["splice/rings.c"],
        &["-O2", "-Wall", &format!("-DFOR_{case}")],
    )
}

/// As the kernel programs know it.
fn name(rings: &Path) -> Result<String> {
    const NAME_MAX: usize = 15;
    let name = rings.file_name().and_then(|name| name.to_str());
    let name = name.context("a name in UTF-8")?;
    Ok(name.chars().take(NAME_MAX).collect())
}

type Run = fn(&[&str], &str, &[(&str, &str)]) -> Result<Done>;

/// As plain TCP says it.
fn same(run: Run, rings: &Path, when: &str) -> Result<Done> {
    let plain = command(Command::new(rings).arg(when))?.expect_code(0)?;
    let script = format!("{} {when}", text(rings)?);
    let done = run(&[], &script, &[])?;
    ensure!(
        done.output.stdout == plain.stdout,
        "plain TCP says\n{}\nand redirected connections\n{}{}",
        plain.stdout,
        done.output.stdout,
        done.output.stderr
    );
    Ok(done)
}

fn is_named(done: &Done, rings: &Path) -> Result<()> {
    let stderr = &done.output.stderr;
    let name = name(rings)?;
    ensure!(
        stderr.contains(&format!("{name}, has an io_uring"))
            && stderr.contains(&format!("--allow {name}")),
        "{stderr}"
    );
    Ok(())
}

fn before_connections() -> Result<()> {
    let rings = rings("before")?;
    for run in [splice_as_it_is as Run, splice] {
        let done = same(run, &rings, "first")?;
        ensure!(
            done.count("ends_joined")? == 0 && done.count("plain_refused")? > 0,
            "{}",
            done.summary
        );
        is_named(&done, &rings)?;
    }
    // Whoever is allowed by name is told what the kernel says.
    let script = format!("{} first", text(&rings)?);
    let done = splice(&["--allow", &name(&rings)?], &script, &[])?;
    ensure!(
        done.output.stdout.contains("EOPNOTSUPP") && done.count("ends_joined")? > 0,
        "{:?}",
        done.output
    );
    Ok(())
}

/// The connection before is released; those after never join.
fn after_a_connection() -> Result<()> {
    let rings = rings("after")?;
    let done = same(splice_as_it_is, &rings, "later")?;
    ensure!(
        done.count("connections")? == 1
            && done.count("ends_joined")? == 2
            && done.count("released_refused")? + done.count("released_calls")? == 1,
        "{}",
        done.summary
    );
    is_named(&done, &rings)
}

/// Its listener is older than the accelerator, too.
fn before_the_accelerator() -> Result<()> {
    let begun = dir().join("begun");
    let go = dir().join("go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU)?;
    let mut command = Command::new(rings("there_before")?);
    command
        .args(["first", text(&begun)?, text(&go)?])
        .stdout(Stdio::piped());
    let rings = Target::spawn_with_ready_file(&mut command, &begun)?;
    let ready = dir().join("ready");
    let mut attach = Command::new(hopscope_bin());
    attach
        .args(["-q", "splice", "attach", ANYWAY, AT_ONCE, "--json"])
        .args(["--port", std::fs::read_to_string(&begun)?.trim()])
        .args(["-p", &rings.pid().to_string(), "--ready-file"])
        .arg(&ready)
        .stdout(Stdio::piped());
    let attached = Target::spawn_with_ready_file(&mut attach, &ready)?;
    std::fs::write(&go, "x")?;
    let said = String::from_utf8(rings.output()?.stdout)?;
    attached.signal(nix::sys::signal::Signal::SIGINT)?;
    let summary: Value =
        serde_json::from_slice(&attached.output()?.stdout).context("the summary")?;
    ensure!(
        said.contains("client: done") && said.contains("server: done"),
        "{said} {summary}"
    );
    ensure!(summary["ends_joined"] == 0, "{summary}");
    Ok(())
}
