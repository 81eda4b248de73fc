//! A flight recorder saves what lies around a trigger, all of it, and nothing else; and runs that
//! are kept are kept whole.
mod every;
mod memory;
mod passes;
mod refused;
mod saved;

use crate::recording::{Recording, command};
use anyhow::{Context, Result, bail, ensure};
use hopscope_event::{EndsEarly, Ns, TriggerEntry};
use hopscope_tests::{Requirement, Suite, Target, hopscope, hopscope_bin, scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use passes::{FUNCTIONS, Program, binary, expect_contiguous};
use saved::Saved;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Planted, and what fires: far above what a busy machine takes away from a thread.
const SLOW: &str = "slow 600000";
const SLOW_NS: i64 = 600_000_000;
const TRIGGER: &str = "look > 300ms";

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Gcc, Requirement::Fsgsbase];
    suite.case("flight::a_slow_call_and_what_came_before", needs, slow_call);
    suite.case("flight::a_slow_run_is_a_slow_packet", needs, slow_run);
    suite.case("flight::a_signal_is_a_trigger", needs, signalled);
    suite.case("flight::the_exit_of_a_command", needs, command_exits);
    suite.case("flight::several_processes", needs, several_processes);
    suite.case("flight::without_a_trigger_no_file", needs, nothing_fires);
    suite.case("flight::old_files_go", needs, old_files_go);
    suite.case("flight::a_killed_recorder", needs, killed);
    suite.case("flight::memory_is_bounded", needs, memory::bounded);
    suite.case("flight::a_full_memory_says_so", needs, memory::full);
    suite.case("flight::each_nth_run_is_whole", needs, every::whole_runs);
    suite.case("flight::each_nth_run_under_loss", needs, every::under_loss);
    suite.case("flight::refused_in_one_line", needs, refused::one_line);
}

/// The part of a command line that makes a recording a flight recorder.
fn flight(command: &mut Command, before: &str, words: &[&str]) {
    command
        .args(["--flight", before, "--after", "200ms"])
        .args(words);
}

fn start(pids: &[i32], dir: &Path, words: &[&str]) -> Result<Recording> {
    let output = dir.join("out.hop");
    let mut command = command(pids[0], FUNCTIONS, &output);
    for pid in &pids[1..] {
        command.args(["-p", &pid.to_string()]);
    }
    flight(&mut command, "1s", words);
    Recording::start_command(command, &output)
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(dir)?.map(|e| Ok(e?.path()));
    let all: Vec<PathBuf> = entries.collect::<Result<_>>()?;
    let mut files: Vec<_> = all
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "hop"))
        .collect();
    files.sort();
    Ok(files)
}

/// What `record` says at its end is what lies there, and every record is accounted for.
fn expect_accounted(summary: &Value, dir: &Path) -> Result<Vec<Saved>> {
    let said = &summary["choice"]["flight"];
    let names: Vec<PathBuf> = serde_json::from_value(said["files"].clone())?;
    ensure!(
        names == files(dir)?,
        "said {names:?}, there is {:?}",
        files(dir)?
    );
    let number = |v: &Value| v.as_u64().context("a count");
    let (saved, left_out) = (
        number(&said["records_saved"])?,
        number(&said["records_left_out"])?,
    );
    ensure!(
        saved + left_out == number(&summary["recorded"])?,
        "records are not accounted for: {summary}"
    );
    ensure!(
        number(&summary["lost"])? == 0,
        "records were lost: {summary}"
    );
    names.iter().map(|path| Saved::open(path)).collect()
}

fn slow_call() -> Result<()> {
    around_the_slow_one("look", TRIGGER, &[])
}

fn slow_run() -> Result<()> {
    around_the_slow_one("pass", "packet > 300ms", &["--root", "pass"])
}

fn around_the_slow_one(function: &str, trigger: &str, words: &[&str]) -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let words = [words, &["--trigger", trigger]].concat();
    let recording = start(&[program.pid()], &dir, &words)?;
    // What is older than the window when it is slow, and younger when the window is over.
    program.rest(2)?;
    let slow = program.command(SLOW)?.slow;
    let last = program.rest(2)?.passes;
    let summary = recording.stop()?;
    program.terminate()?;
    let saved = expect_accounted(&summary, &dir)?;
    let file = with_pass(&saved, slow)?;
    let t = file.reader.tables();
    let frequency = t.meta.tsc_frequency;
    let its = file.function(function)?;
    let slow_enough = |fired: &&TriggerEntry| {
        let ns = fired.took_ticks.map(|took| frequency.ns(took as i64));
        fired.function == Some(its) && ns >= Some(SLOW_NS)
    };
    let fired = t.triggers.iter().find(slow_enough);
    let fired = fired.with_context(|| format!("it did not fire: {:?}", t.triggers))?;
    ensure!(fired.trigger.starts_with(trigger), "{}", fired.trigger);
    // The window is what was asked for, and it is full of passes from end to end.
    let flight = &file.flight;
    ensure!(flight.ends_early.is_none(), "{flight:?}");
    if flight.fired == 1 {
        let second = frequency.ticks(Ns(1_000_000_000));
        ensure!(flight.from.0 == fired.at.0 - second, "{flight:?}");
        ensure!(flight.begins_late.is_none(), "{flight:?}");
    }
    let passes = file.passes()?;
    let numbers = passes.values().next().context("no pass")?;
    expect_contiguous(numbers)?;
    let (first, until) = (numbers[0], numbers[numbers.len() - 1]);
    println!("passes {first}..={until} of {last}; {slow} was slow");
    ensure!(
        1 < first && first < slow,
        "not what came before {slow}, or all"
    );
    ensure!(
        slow < until && until < last,
        "not what came after {slow}, or all"
    );
    said_in_reports(file, trigger)
}

/// The file that has this pass; what else fired on a busy machine may be in others.
fn with_pass(saved: &[Saved], pass: u64) -> Result<&Saved> {
    for file in saved {
        if file.passes()?.values().any(|all| all.contains(&pass)) {
            return Ok(file);
        }
    }
    bail!("pass {pass} is in none of {} files", saved.len())
}

fn said_in_reports(file: &Saved, trigger: &str) -> Result<()> {
    let path = file.path.to_str().context("path")?;
    for (command, unknown) in [
        ("report", "an unknown number of calls unmeasured"),
        ("info", "unmeasured not known of a part of a recording"),
    ] {
        let out = hopscope(&[command, path])?.expect_code(0)?;
        for words in [
            unknown,
            &format!("trigger    {trigger}") as &str,
            "flight     1.00 s before each of",
            "records outside of such times were left out on purpose",
        ] {
            ensure!(out.stdout.contains(words), "no {words:?} in {}", out.stdout);
        }
        // Where it says to look, the slow call is.
        let mut slowest = 0.0f64;
        for place in out.stdout.split(": --from ").skip(1) {
            let words: Vec<&str> = place.split_whitespace().take(3).collect();
            let [from, "--to", to] = words[..] else {
                bail!("{}", out.stdout);
            };
            let out = hopscope(&["report", path, "--from", from, "--to", to, "--json"])?;
            for line in out.expect_code(0)?.stdout.lines() {
                let line: Value = serde_json::from_str(line)?;
                slowest = slowest.max(line["total_raw_max_ns"].as_f64().unwrap_or(0.0));
            }
        }
        ensure!(slowest >= SLOW_NS as f64, "{slowest} ns: {}", out.stdout);
    }
    Ok(())
}

/// Sent to the process that the user knows; before that nothing is saved.
fn signalled() -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let recording = start(&[program.pid()], &dir, &["--trigger", "SIGUSR1"])?;
    program.rest(2)?;
    ensure!(files(&dir)?.is_empty(), "a file without a trigger");
    recording.signal(Signal::SIGUSR1)?;
    // The signal is seen within a visit; what the window waits for is over before this is.
    let last = program.rest(4)?.passes;
    let summary = recording.stop()?;
    program.terminate()?;
    let saved = expect_accounted(&summary, &dir)?;
    let [file] = &saved[..] else {
        bail!("{} files: {summary}", saved.len());
    };
    let fired = &file.reader.tables().triggers;
    ensure!(
        fired.len() == 1 && fired[0].trigger == "SIGUSR1",
        "{fired:?}"
    );
    let flight = &file.flight;
    ensure!(
        (flight.begins_late, flight.ends_early) == (None, None),
        "{flight:?}"
    );
    let passes = file.passes()?;
    let numbers = passes.values().next().context("no pass")?;
    expect_contiguous(numbers)?;
    ensure!(
        1 < numbers[0] && numbers[numbers.len() - 1] < last,
        "all is in the file"
    );
    Ok(())
}

/// The last seconds of a program that ends, whatever ends it.
fn command_exits() -> Result<()> {
    let dir = scratch();
    let output = dir.join("out.hop");
    let mut command = Command::new(hopscope_bin());
    command.args([
        "record",
        "--json",
        "--no-calibration",
        "--max-overhead",
        "1e9",
    ]);
    command.arg("-o").arg(&output);
    for function in FUNCTIONS {
        command.args(["-f", function]);
    }
    flight(&mut command, "1s", &["--trigger", "exit", "--"]);
    command.arg(binary()?).env("READY_FILE", dir.join("ready"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let mut recorder = Target::spawn_with_ready_file(&mut command, &dir.join("ready"))?;
    let mut input = recorder.child().stdin.take().context("its input")?;
    writeln!(input, "rest 20000")?;
    drop(input);
    let out = recorder.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "{}: {said}", out.status);
    // Standard output is the command's.
    let told = String::from_utf8_lossy(&out.stderr);
    let summary: Value = serde_json::from_str(told.lines().last().context("a summary")?)?;
    let answer = said.lines().find_map(|line| line.strip_suffix(" 0 0"));
    let answer: u64 = answer
        .with_context(|| format!("no answer: {said}"))?
        .parse()?;
    let saved = expect_accounted(&summary, &dir)?;
    let [file] = &saved[..] else {
        bail!("{} files: {summary}", saved.len());
    };
    let fired = &file.reader.tables().triggers;
    ensure!(fired.len() == 1 && fired[0].trigger == "exit", "{fired:?}");
    ensure!(
        file.flight.ends_early == Some(EndsEarly::RecordingEnded),
        "{:?}",
        file.flight
    );
    let passes = file.passes()?;
    let numbers = passes.values().next().context("no pass")?;
    expect_contiguous(numbers)?;
    ensure!(1 < numbers[0], "more than the last second");
    // One more may follow the answer before the end of the input is seen.
    let last = numbers[numbers.len() - 1];
    ensure!(
        (answer..=answer + 1).contains(&last),
        "{last} is not the last of {answer}"
    );
    Ok(())
}

/// What fires in one is saved of all.
fn several_processes() -> Result<()> {
    let dir = scratch();
    let (mut one, mut other) = (Program::start()?, Program::start()?);
    let recording = start(&[one.pid(), other.pid()], &dir, &["--trigger", TRIGGER])?;
    one.rest(2)?;
    let slow = other.command(SLOW)?.slow;
    one.rest(2)?;
    let summary = recording.stop()?;
    one.terminate()?;
    other.terminate()?;
    let saved = expect_accounted(&summary, &dir)?;
    let file = with_pass(&saved, slow)?;
    let t = file.reader.tables();
    ensure!(t.processes.len() == 2, "{:?}", t.processes);
    let passes = file.passes()?;
    ensure!(passes.len() == 2, "passes of {} threads", passes.len());
    for numbers in passes.values() {
        expect_contiguous(numbers)?;
        ensure!(
            numbers.len() > 1 && numbers[0] > 1,
            "{} passes",
            numbers.len()
        );
    }
    Ok(())
}

fn nothing_fires() -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let words = [
        "--trigger",
        "look > 999ms",
        "--trigger",
        "SIGUSR1",
        "--trigger",
        "exit",
    ];
    let recording = start(&[program.pid()], &dir, &words)?;
    program.rest(2)?;
    let summary = recording.stop()?;
    program.terminate()?;
    let saved = expect_accounted(&summary, &dir)?;
    ensure!(saved.is_empty(), "{summary}");
    let said = &summary["choice"]["flight"];
    ensure!(said["fired"] == 0 && said["files_saved"] == 0, "{summary}");
    ensure!(summary["file"].is_null(), "{summary}");
    Ok(())
}

/// Files are bounded in number: the newest stay, and what was taken away is said.
fn old_files_go() -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let words = ["--trigger", TRIGGER, "--keep", "2"];
    let recording = start(&[program.pid()], &dir, &words)?;
    let mut slow = 0;
    for _ in 0..3 {
        slow = program.command(SLOW)?.slow;
        // Longer than what the next one reaches back: 1 s and 0.2 s.
        program.rest(4)?;
    }
    let summary = recording.stop()?;
    program.terminate()?;
    let saved = expect_accounted(&summary, &dir)?;
    let said = &summary["choice"]["flight"];
    ensure!(saved.len() == 2, "{} files stay: {summary}", saved.len());
    let (made, removed) = (said["files_saved"].as_u64(), said["files_removed"].as_u64());
    ensure!(
        made >= Some(3) && removed == made.map(|n| n - 2),
        "{summary}"
    );
    with_pass(&saved, slow)?;
    Ok(())
}

/// Its targets run on as they were; what it held is gone, and it says so.
fn killed() -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let output = dir.join("out.hop");
    let mut command = command(program.pid(), FUNCTIONS, &output);
    flight(&mut command, "1s", &["--trigger", TRIGGER]);
    command.stderr(Stdio::piped());
    let guardian = Recording::start_command(command, &output)?;
    program.rest(1)?;
    kill(Pid::from_raw(recorder_of(guardian.pid())?), Signal::SIGKILL)?;
    let (code, stderr) = guardian.ended()?;
    ensure!(code == Some(2), "exit code {code:?}: {stderr}");
    ensure!(stderr.contains("records in memory are lost"), "{stderr}");
    let before = program.command("run 1000")?.passes;
    ensure!(
        program.command("run 1000")?.passes >= before + 1000,
        "it does not go on"
    );
    // Nothing was left behind in it: what is patched already is refused.
    let again = Recording::start(program.pid(), &["pass"], &dir.join("again.hop"))?;
    program.command("run 1000")?;
    again.stop()?;
    program.terminate()
}

/// The child of what the user started.
fn recorder_of(guardian: i32) -> Result<i32> {
    let children = std::fs::read_to_string(format!("/proc/{guardian}/task/{guardian}/children"))?;
    let child = children
        .split_whitespace()
        .next()
        .context("it has no child")?;
    Ok(child.parse()?)
}
