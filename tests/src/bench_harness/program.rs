//! `hopscope bench` starts the program `hopscope-bench`, which it finds beside it or in PATH.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, command, hopscope_bin, scratch};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    suite.case("bench_harness::the_program_beside", &[], beside);
    suite.case("bench_harness::the_program_in_path", &[], in_path);
    suite.case("bench_harness::the_program_is_missing", &[], missing);
    suite.case("bench_harness::compare_needs_no_program", &[], compare);
    suite.case("bench_harness::quiet_prints_no_progress", &[], quiet);
}

/// `hopscope` in a folder of its own.
fn alone(dir: &Path) -> Result<PathBuf> {
    let copy = dir.join("hopscope");
    let link = std::fs::hard_link(hopscope_bin(), &copy);
    link.or_else(|_| std::fs::copy(hopscope_bin(), &copy).map(drop))?;
    Ok(copy)
}

/// Repeats what it is given, and ends with 7.
fn install(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir)?;
    let program = dir.join("hopscope-bench");
    let script = "#!/bin/sh\necho \"$# arguments: $*\"\necho \"by $HOPSCOPE\"\ncat\nexit 7\n";
    std::fs::write(&program, script)?;
    Ok(std::fs::set_permissions(
        &program,
        PermissionsExt::from_mode(0o755),
    )?)
}

/// Arguments, stdio and the exit code go through.
fn goes_through(hopscope: &Path, path: &str) -> Result<()> {
    let mut started = Command::new(hopscope)
        .args(["-v", "bench", "probe", "--quick", "--build-dir", "a b"])
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    started
        .stdin
        .take()
        .context("a pipe")?
        .write_all(b"typed\n")?;
    let out = started.wait_with_output()?;
    let text = String::from_utf8(out.stdout)?;
    let by = std::fs::canonicalize(hopscope)?;
    let wanted = format!(
        "5 arguments: -v probe --quick --build-dir a b\nby {}\ntyped\n",
        by.display()
    );
    ensure!(text == wanted, "{text}");
    ensure!(out.status.code() == Some(7), "{}", out.status);
    Ok(())
}

fn beside() -> Result<()> {
    let dir = scratch();
    install(&dir)?;
    goes_through(&alone(&dir)?, "/usr/bin:/bin")
}

fn in_path() -> Result<()> {
    let dir = scratch();
    let other = dir.join("other");
    install(&other)?;
    goes_through(&alone(&dir)?, &format!("{}:/usr/bin:/bin", other.display()))
}

fn missing() -> Result<()> {
    let mut bench = Command::new(alone(&scratch())?);
    bench.args(["bench", "probe"]).env("PATH", "/usr/bin:/bin");
    command::run(&mut bench)?.expect_refusal(&["hopscope-bench", "make install"])?;
    // Its help is hopscope's own.
    let mut help = Command::new(alone(&scratch())?);
    let help = command::run(help.args(["bench", "probe", "--help"]))?.expect_code(0)?;
    ensure!(help.stdout.contains("--build-dir"), "{}", help.stdout);
    Ok(())
}

fn compare() -> Result<()> {
    let mut compare = Command::new(alone(&scratch())?);
    compare.args([
        "bench", "compare", "--a", "true", "--b", "true", "--runs", "6",
    ]);
    command::run(&mut compare)?.expect_code(0)?;
    Ok(())
}

/// The other benches of these tests run with `-q` and must be silent, too.
fn quiet() -> Result<()> {
    for quiet in [&["-q", "bench"][..], &["bench", "-q"]] {
        let compare = ["compare", "--a", "true", "--b", "true", "--runs", "6"];
        let warm_up = ["--warmup", "1"];
        let out = command::hopscope(&[quiet, &compare, &warm_up].concat())?.expect_code(0)?;
        ensure!(out.stderr.is_empty(), "{}", out.stderr);
    }
    Ok(())
}
