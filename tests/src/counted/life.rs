//! Events go with what they were opened for, whatever becomes of the recorder or the target.
use super::program::{Program, events, rows};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope, scratch};
use nix::sys::signal::{Signal, kill};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Root, Requirement::Gcc, Requirement::Fsgsbase];
    suite.case("counted::the_guardian_takes_events_away", needs, guarded);
    suite.case("counted::detach_takes_events_away", needs, detached);
    suite.case("counted::forks_in_signal_handlers", needs, forks);
    suite.case("counted::forks_that_go_on_later", needs, forks_that_wait);
    suite.case(
        "counted::killed_while_events_are_handed_over",
        needs,
        killed,
    );
    suite.case("counted::a_program_that_becomes_another", needs, replaced);
    suite.case(
        "counted::what_is_left_open_goes_with_exec",
        needs,
        killed_and_replaced,
    );
}

const SWITCHES: &[&str] = &["outer(@context-switches)", "inner(@context-switches)"];

fn guarded() -> Result<()> {
    let mut program = Program::start()?;
    let recording = program.record(SWITCHES, &scratch().join("counted.hop"))?;
    program.told("run 100")?;
    ensure!(events(program.pid())? == 1, "no event was mapped");
    kill(recording.recorder()?, Signal::SIGKILL)?;
    recording.ended()?;
    program.told("run 100")?;
    program.expect_clean()
}

fn detached() -> Result<()> {
    let mut program = Program::start()?;
    let recording = program.record(SWITCHES, &scratch().join("counted.hop"))?;
    let recorder = recording.recorder()?;
    // The guardian first: it would do what is to be done by hand.
    recording.signal(Signal::SIGSTOP)?;
    kill(recorder, Signal::SIGKILL)?;
    recording.signal(Signal::SIGKILL)?;
    recording.ended()?;
    program.told("run 100")?;
    ensure!(events(program.pid())? == 1, "no event is left to take away");
    hopscope(&["detach", "-p", &program.pid().to_string()])?.expect_code(0)?;
    program.expect_clean()?;
    program.told("run 100").map(drop)
}

/// Children go on where the handler came, in probes too, also in those that read the pages of events, which a child has not.
fn forks() -> Result<()> {
    let n = counts().pick(1_000, 10_000);
    for function in ["spinner", "spinner(@context-switches)"] {
        let mut program = Program::start()?;
        let recording = program.record(&[function], &scratch().join("counted.hop"))?;
        let said = program.told(&format!("signals {n}"))?;
        recording.stop()?;
        let numbers: Vec<u64> = said.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let &[forks, killed] = numbers.as_slice() else {
            anyhow::bail!("{said}");
        };
        println!("{function}: {killed} of {forks} children were killed");
        ensure!(killed == 0, "{killed} of {forks}");
    }
    Ok(())
}

/// What a child reads that goes on in a probe after its parent has: it lands in the parent's records, and is of no counter.
fn forks_that_wait() -> Result<()> {
    let n = counts().pick(400, 4_000);
    let mut program = Program::start()?;
    let file = scratch().join("counted.hop");
    let recording = program.record(&["spinner(@context-switches)"], &file)?;
    let said = program.told(&format!("apart {n}"))?;
    recording.stop()?;
    let numbers: Vec<i64> = said.split(' ').map(str::parse).collect::<Result<_, _>>()?;
    let &[_, killed, switches] = numbers.as_slice() else {
        anyhow::bail!("{said}");
    };
    ensure!(killed == 0, "{killed} children were killed");
    let counted = rows(&file)?.row("spinner")?.counter("context-switches")?;
    println!("{} calls without", counted.left_out("not_opened"));
    ensure!(
        counted.number("total")? <= switches,
        "{switches} switches: {counted:?}"
    );
    Ok(())
}

/// As in measure/process/src/fault.rs.
const HANDED: &str = "24";

/// Two sockets and an event are open in the target then.
fn killed_while_they_are_open() -> Result<Program> {
    let mut program = Program::start()?;
    let status = program
        .command(SWITCHES, &scratch().join("counted.hop"))
        .arg("--no-calibration")
        .env("HOPSCOPE_FAULT_POINT", HANDED)
        .env("HOPSCOPE_GUARDED_BY", std::process::id().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.signal() == Some(9), "not killed: {status}");
    program.told("run 100")?;
    ensure!(
        program.descriptors()?.len() == 3,
        "{:?}",
        program.descriptors()?
    );
    Ok(program)
}

fn killed() -> Result<()> {
    let mut program = killed_while_they_are_open()?;
    hopscope(&["detach", "-p", &program.pid().to_string()])?.expect_code(0)?;
    program.expect_clean()?;
    program.told("run 100").map(drop)
}

/// Whatever it becomes does not get them.
fn killed_and_replaced() -> Result<()> {
    let mut program = killed_while_they_are_open()?;
    program.becomes("cat")?;
    program.expect_clean()
}

fn replaced() -> Result<()> {
    let mut program = Program::start()?;
    let recording = program.record(SWITCHES, &scratch().join("counted.hop"))?;
    program.told("run 100")?;
    program.becomes("cat")?;
    ensure!(
        events(program.pid())? == 0,
        "another program has its events"
    );
    recording.ended()?;
    program.expect_clean()
}
