//! Processes of other users that use root's hopscope against the machine, and kernels that forbid
//! what it does.
use crate::called::Conversation;
use crate::recording::{Recording, Report, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::mapped;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// As measure/process/src/fault.rs has it.
const FORCED_WRITE: &str = "100";
const NO_MEMORY: &str = "102";
const RESTORING: &str = "18";

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root};
    suite.case("hostile::handed_memfd", &[Gcc, Root], handed_memfd);
    suite.case("hostile::huge_table", &[Gcc, Root], huge_table);
    suite.case("hostile::no_forced_writes", &[Gcc], no_forced_writes);
    suite.case("hostile::no_memory_for_code", &[Gcc], no_memory_for_code);
    suite.case(
        "hostile::no_forced_writes_at_the_start_of_a_command",
        &[Gcc],
        no_forced_writes_command,
    );
    suite.case("hostile::own_dispatch", &[Gcc], own_dispatch);
    suite.case("hostile::own_dispatch_later", &[Gcc], own_dispatch_later);
    suite.case("hostile::counters_of_ones", &[Gcc], counters_of_ones);
    suite.case("hostile::one_strict_thread", &[Gcc], one_strict_thread);
}

/// A thread that turns its system calls into signals is not made to do any (Linux 6.4 and later).
fn own_dispatch() -> Result<()> {
    let program = compile_c(&["hostile/dispatches.c"], &["-O1"])?;
    let mut process = Conversation::start(Command::new(program).arg("at-once"))?;
    process.tell("on")?;
    ensure!(process.line()? == "on", "it does not dispatch");
    let file = scratch().join("dispatches.hop");
    let record = &mut command(process.process.pid(), &["dispatched_work"], &file);
    run(record)?.expect_refusal(&["PR_SET_SYSCALL_USER_DISPATCH"])?;
    process.end()
}

/// What begins during a recording: the functions are put back, which takes no call. What takes some is left, and said.
fn own_dispatch_later() -> Result<()> {
    let program = compile_c(&["hostile/dispatches.c"], &["-O1"])?;
    let mut process = Conversation::start(&mut Command::new(program))?;
    let pid = process.process.pid();
    let file = scratch().join("dispatches.hop");
    let recording = Recording::start(pid, &["dispatched_work"], &file)?;
    process.tell("on")?;
    ensure!(process.line()? == "on", "it does not dispatch");
    let notes = recording.stop()?["notes"].to_string();
    ensure!(notes.contains("PR_SET_SYSCALL_USER_DISPATCH"), "{notes}");
    process.tell("off")?;
    ensure!(process.line()? == "off", "it dispatches still");
    let report = Report::read(&file)?;
    ensure!(report.functions["dispatched_work"]["entries"] > 0);
    hopscope(&["detach", "-p", &pid.to_string()])?.expect_code(0)?;
    let left = mapped::mapped(pid)?;
    ensure!(left.is_empty(), "{left:?}");
    process.end()
}

/// Strict seccomp is each thread's own, and forbids `rdtsc`.
fn one_strict_thread() -> Result<()> {
    let program = compile_c(&["hostile/strict.c"], &["-O1"])?;
    let mut process = Conversation::start(&mut Command::new(program))?;
    ensure!(process.line()? == "strict", "no strict thread");
    let file = scratch().join("strict.hop");
    let record = &mut command(process.process.pid(), &["strict_work"], &file);
    run(record)?.expect_refusal(&["strict seccomp"])?;
    process.end()
}

/// What an unprivileged process wrote into a memfd changes no process that was handed it.
fn handed_memfd() -> Result<()> {
    let program = compile_c(&["hostile/handed.c"], &["-O1"])?;
    let mut start = Command::new(program);
    let mut process = Target::spawn(start.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
    let pid = process.pid().to_string();
    let out = hopscope(&["detach", "-p", &pid])?;
    let mut stdin = process.child().stdin.take().context("stdin")?;
    let stdout = process.child().stdout.take().context("stdout")?;
    let mut answer = String::new();
    stdin.write_all(b"\n")?;
    BufReader::new(stdout).read_line(&mut answer)?;
    ensure!(answer.trim() == "1", "its code was changed: {out:?}");
    let out = out.expect_code(2)?;
    ensure!(out.stderr.contains("was not attached to"), "{out:?}");
    // Nor does it keep the process from being measured.
    let file = scratch().join("out.hop");
    let dry = run(command(process.pid(), &["main"], &file).arg("--dry-run"))?;
    ensure!(!dry.stderr.contains("still carries"), "{dry:?}");
    Ok(())
}

/// What is recorded beside it is recorded.
fn counters_of_ones() -> Result<()> {
    let program = compile_c(&["hostile/ones.c"], &["-O1"])?;
    let hostile = Target::spawn(&mut Command::new(program))?;
    let innocent = steady()?;
    let file = scratch().join("ones.hop");
    let mut record = command(innocent.pid(), &["steady_step", "ones_work"], &file);
    record.args(["-p", &hostile.pid().to_string(), "-d", "1s"]);
    let out = run(&mut record)?;
    let said = format!("{}{}", out.stdout, out.stderr);
    ensure!(
        out.code == Some(0) && said.contains("has overwritten the count of calls"),
        "{:?}: {said}",
        out.code
    );
    ensure!(Report::read(&file)?.entries("steady_step") > 0, "{said}");
    unharmed(innocent)
}

fn steady() -> Result<Target> {
    let program = compile_c(&["steady.c"], &["-O2"])?;
    Target::spawn(Command::new(program).stdout(Stdio::piped()))
}

/// It found every sum right until it was asked to end.
fn unharmed(target: Target) -> Result<()> {
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(
        out.status.success() && said.contains("steady: 0 wrong"),
        "the target: {} {said}",
        out.status
    );
    Ok(())
}

/// Another user's process claims a table larger than any memory: the guardian restores its own
/// target, and `detach` says what is wrong with the other.
fn huge_table() -> Result<()> {
    let program = compile_c(&["hostile/bomb.c"], &["-O1"])?;
    let mut start = Command::new("setpriv");
    start.args(["--reuid=65534", "--clear-groups"]).arg(program);
    // Where it may write its ready file.
    let directory = std::env::temp_dir().join(format!("hopscope-bomb-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    nix::unistd::chown(&directory, Some(65534.into()), None)?;
    let ready = directory.join("ready");
    let bomb = Target::spawn_with_ready_file(start.env("READY_FILE", &ready), &ready)?;
    std::fs::remove_dir_all(&directory)?;

    let target = steady()?;
    let file = scratch().join("killed.hop");
    let mut record = command(target.pid(), &["steady_mix"], &file);
    record
        .args(["-d", "20ms"])
        .env("HOPSCOPE_FAULT_POINT", RESTORING);
    let out = run(&mut record)?.expect_code(2)?;
    ensure!(out.stdout.contains("1 functions restored"), "{out:?}");

    let pid = bomb.pid().to_string();
    let out = hopscope(&["detach", "-p", &pid])?.expect_code(2)?;
    ensure!(out.stderr.contains("bytes of table announced"), "{out:?}");
    unharmed(target)
}

/// Where `/proc/PID/mem` writes no code (`proc_mem.force_override=never`), the tracer does.
fn no_forced_writes() -> Result<()> {
    let target = steady()?;
    let file = scratch().join("poked.hop");
    let mut record = command(target.pid(), &["steady_mix"], &file);
    record
        .args(["-d", "50ms"])
        .env("HOPSCOPE_FAILURE_POINT", FORCED_WRITE);
    run(&mut record)?.expect_code(0)?;
    let report = Report::read(&file)?;
    ensure!(report.functions["steady_mix"]["entries"] > 0);
    report.expect_balanced()?;
    let detach = hopscope(&["detach", "-p", &target.pid().to_string()])?.expect_code(0)?;
    ensure!(detach.stderr.contains("has no probes"), "{detach:?}");
    unharmed(target)
}

/// A write that fails is not taken for a kernel that forces none.
fn no_memory_for_code() -> Result<()> {
    let target = steady()?;
    let mut record = command(
        target.pid(),
        &["steady_mix"],
        &scratch().join("no-memory.hop"),
    );
    record
        .args(["-d", "50ms"])
        .env("HOPSCOPE_FAILURE_POINT", NO_MEMORY);
    let out = run(&mut record)?.expect_code(2)?;
    ensure!(out.stderr.contains("Cannot allocate memory"), "{out:?}");
    let detach = hopscope(&["detach", "-p", &target.pid().to_string()])?.expect_code(0)?;
    ensure!(detach.stderr.contains("has no probes"), "{detach:?}");
    unharmed(target)
}

fn no_forced_writes_command() -> Result<()> {
    let file = scratch().join("poked.hop");
    let mut record = Command::new(hopscope_bin());
    record
        .args(["record", "--no-calibration", "-f", "called_once", "-o"])
        .arg(&file)
        .arg("--")
        .arg(compile_c(&["hostile/once.c"], &["-O1"])?)
        .env("HOPSCOPE_FAILURE_POINT", FORCED_WRITE);
    run(&mut record)?.expect_code(0)?;
    let report = Report::read(&file)?;
    ensure!(report.functions["called_once"]["entries"] == 1);
    Ok(())
}
