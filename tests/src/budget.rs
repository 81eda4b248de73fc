//! `record --budget`: what takes more than it tells is left out, before the recording and during it.
use crate::recording::{Recording, Report, summary};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gcc = &[Requirement::Gcc];
    suite.case("budget::short_calls_go_first", gcc, short_calls);
    suite.case("budget::what_becomes_too_dear_goes", gcc, later);
    suite.case("budget::a_command_has_no_first_pass", gcc, of_a_command);
    suite.case("budget::nothing_that_fits_is_an_error", gcc, nothing_fits);
    suite.case("budget::a_root_stays", gcc, root_stays);
    suite.case(
        "budget::threads_without_a_ring_are_an_error",
        gcc,
        without_ring,
    );
    suite.case(
        "budget::what_goes_is_in_the_file_at_once",
        gcc,
        said_at_once,
    );
    suite.case("budget::no_percentage_is_a_usage_error", &[], usage);
}

struct Program {
    target: Target,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    fn start() -> Result<Program> {
        let mut command = Command::new(compiled()?);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn_now(&mut command)?;
        let to = target.child().stdin.take().context("stdin")?;
        let from = target.child().stdout.take().context("stdout")?;
        let mut program = Program {
            target,
            to,
            from: BufReader::new(from),
        };
        ensure!(program.line()? == "ready", "it is not ready");
        Ok(program)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    fn came_to_what_it_should(mut self) -> Result<()> {
        writeln!(self.to, "quit")?;
        let said = self.line()?;
        ensure!(said == "right", "it says {said:?}");
        let status = self.target.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

fn compiled() -> Result<PathBuf> {
    compile_c(&["budget.c"], &["-O2", "-Wall", "-lpthread"])
}

fn record(pid: i32, more: &[&str], output: &Path) -> Command {
    let mut command = Command::new(hopscope_bin());
    command.args(["record", "--json", "--budget", "5%", "-p", &pid.to_string()]);
    command.args(more).arg("-o").arg(output);
    command
}

/// Names of what was left out: before the recording, and during it.
fn left_out(summary: &Value, functions: &[String]) -> Result<[Vec<String>; 2]> {
    let all = summary["choice"]["budget"]["left_out"].as_array();
    let all = all.with_context(|| summary.to_string())?;
    let names = |during: bool| -> Result<Vec<String>> {
        let of = all.iter().filter(|one| one["at"].is_u64() == during);
        let name = |one: &Value| {
            let number = one["function"].as_u64().context("a function")?;
            let name = functions.get(number as usize).context("no such function")?;
            Ok(name.clone())
        };
        of.map(name).collect()
    };
    Ok([names(false)?, names(true)?])
}

/// By number, of a recording.
fn functions(file: &Path) -> Result<Vec<String>> {
    let reader = hopscope_trace::TraceReader::open(file)?;
    let functions = reader.tables().functions.iter();
    Ok(functions.map(|f| f.name.clone()).collect())
}

/// Of a program that runs.
fn short_calls() -> Result<()> {
    let program = Program::start()?;
    let file = scratch().join("short.hop");
    let more = ["-f", "/^budget_/", "-d", "300ms"];
    let recording = Recording::start_command(record(program.target.pid(), &more, &file), &file)?;
    let said = recording.finished()?;
    let gone = left_out(&said, &functions(&file)?)?;
    ensure!(
        gone == [vec!["budget_leaf".to_owned()], vec![]],
        "{gone:?}: {said}"
    );
    let report = Report::read(&file)?;
    let [leaf, step, job] =
        ["budget_leaf", "budget_step", "budget_job"].map(|name| report.entries(name));
    ensure!(
        leaf == 0 && job > 0 && step > 3 * job,
        "{leaf} short calls, {step} steps of {job} jobs: {said}"
    );
    let why = report.refused.get("budget_leaf");
    ensure!(why.is_some_and(|why| why.contains("--budget")), "{why:?}");
    ensure!(said["lost"] == 0, "{said}");
    program.came_to_what_it_should()
}

/// The recording goes on without it, and says until when it was there.
fn later() -> Result<()> {
    let mut program = Program::start()?;
    let file = scratch().join("later.hop");
    let more = ["-f", "/^budget_/", "--max-overhead", "1e9", "-d", "4s"];
    let recording = Recording::start_command(record(program.target.pid(), &more, &file), &file)?;
    writeln!(program.to, "more")?;
    let said = recording.finished()?;
    let gone = left_out(&said, &functions(&file)?)?;
    let [leaf, later] = ["budget_leaf", "budget_later"].map(|name| vec![name.to_owned()]);
    ensure!(gone == [leaf, later], "{gone:?}: {said}");
    let report = Report::read(&file)?;
    ensure!(
        report.entries("budget_later") > 0 && report.entries("budget_job") > 0,
        "{said}"
    );
    let text = hopscope(&["report", &file.to_string_lossy()])?.expect_code(0)?;
    let line = text
        .stdout
        .lines()
        .find(|line| line.contains("budget_later until"));
    ensure!(line.is_some(), "{}", text.stdout);
    program.came_to_what_it_should()
}

/// It is recorded from its first instruction.
fn of_a_command() -> Result<()> {
    let file = scratch().join("command.hop");
    let program = compiled()?;
    let plain = run(Command::new(&program).arg("400"))?.expect_code(0)?;
    let mut record = Command::new(hopscope_bin());
    // The short calls of some hundred milliseconds fit, however late the recorder comes.
    record.args(["record", "--json", "--budget", "5", "--buffer", "256M"]);
    record.args(["-f", "/^budget_/", "-o"]).arg(&file);
    record.arg("--").arg(&program).arg("400");
    let done = run(&mut record)?.expect_code(0)?;
    ensure!(done.stdout == plain.stdout, "{done:?}");
    let said = summary(&done.stderr)?;
    let gone = left_out(&said, &functions(&file)?)?;
    ensure!(
        gone == [vec![], vec!["budget_leaf".to_owned()]],
        "{gone:?}: {said}"
    );
    let report = Report::read(&file)?;
    ensure!(
        report.entries("budget_job") == 400 && report.entries("budget_step") == 1600,
        "{said}"
    );
    Ok(())
}

/// Without it no run would be recorded.
fn root_stays() -> Result<()> {
    let program = Program::start()?;
    let file = scratch().join("root.hop");
    let more = [
        "-f",
        "/^budget_/",
        "--root",
        "budget_leaf",
        "--every",
        "100",
        "-c",
        "100000",
    ];
    let mut record = record(program.target.pid(), &more, &file);
    record.args(["--max-overhead", "1e9"]);
    let said = Recording::start_command(record, &file)?.finished()?;
    ensure!(Report::read(&file)?.entries("budget_leaf") > 0, "{said}");
    program.came_to_what_it_should()
}

/// Their calls cost more than others, and nobody knows of which functions they are.
fn without_ring() -> Result<()> {
    let program = Program::start()?;
    let file = scratch().join("ringless.hop");
    let more = ["-f", "/^budget_/", "--threads", "1", "-d", "1s"];
    let done = run(&mut record(program.target.pid(), &more, &file))?.expect_code(2)?;
    ensure!(done.stderr.contains("larger --threads"), "{done:?}");
    program.came_to_what_it_should()
}

/// A recorder may be killed.
fn said_at_once() -> Result<()> {
    let mut program = Program::start()?;
    let file = scratch().join("said.hop");
    let more = ["-f", "/^budget_/", "--max-overhead", "1e9"];
    let recording = Recording::start_command(record(program.target.pid(), &more, &file), &file)?;
    writeln!(program.to, "more")?;
    // As it is called until its end.
    let written = || -> Result<Option<PathBuf>> {
        let entries = std::fs::read_dir(file.parent().context("a folder")?)?;
        let entries = entries.filter_map(Result::ok);
        let mut paths = entries.map(|entry| entry.path());
        Ok(paths.find(|path| path.to_string_lossy().contains("said.hop.partial")))
    };
    let written = written()?.context("no file that is being written")?;
    let left_out = || {
        let reader = hopscope_trace::TraceReader::open(&written).ok()?;
        Some(reader.tables().budget.as_ref()?.left_out.len())
    };
    let mut looks = 0;
    while left_out() != Some(2) {
        looks += 1;
        ensure!(looks < 100_000, "nothing more was left out");
        std::thread::yield_now();
    }
    recording.stop()?;
    program.came_to_what_it_should()
}

fn nothing_fits() -> Result<()> {
    let program = Program::start()?;
    let file = scratch().join("nothing.hop");
    let more = ["-f", "budget_leaf", "-d", "1s"];
    let done = run(&mut record(program.target.pid(), &more, &file))?.expect_code(2)?;
    ensure!(
        done.stderr.contains("every function would take more") && !file.exists(),
        "{done:?}"
    );
    program.came_to_what_it_should()
}

fn usage() -> Result<()> {
    for budget in ["0", "-1", "101", "x", "5%%", "nan", ""] {
        let flag = format!("--budget={budget}");
        let done = hopscope(&["record", "-p", "1", "-f", "x", &flag])?.expect_code(2)?;
        ensure!(done.stderr.contains("percentage"), "{budget}: {done:?}");
    }
    let both = [
        "record",
        "-p",
        "1",
        "-f",
        "x",
        "--budget",
        "5",
        "--flight",
        "1s",
        "--trigger",
        "exit",
    ];
    hopscope(&both)?.expect_code(2)?;
    Ok(())
}
