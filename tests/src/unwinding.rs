//! Exceptions, panics, cancellation and backtraces in programs whose functions are all measured: as if they were not.
mod runtimes;

use crate::recording::{
    Recording, Report, command, command_checking, command_with_buffer, expect_checked,
};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::{Counts, counts, scratch};
use hopscope_tests::{Requirement, Suite, Target, command::run, compile, hopscope, hopscope_bin};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    runtimes::register(suite);
    let gxx = &[Requirement::Gxx, Requirement::Gcc];
    for (name, flags) in BUILDS {
        suite.case(format!("unwinding::every_way_{name}"), gxx, move || {
            every_way(flags)
        });
    }
    suite.case("unwinding::panics", gxx, panics);
    suite.case(
        "unwinding::calls_that_are_unwound_are_counted",
        gxx,
        counted,
    );
    suite.case(
        "unwinding::attached_and_detached_meanwhile",
        gxx,
        attached_meanwhile,
    );
    suite.case(
        "unwinding::recorder_killed_meanwhile",
        gxx,
        killed_meanwhile,
    );
    suite.case(
        "unwinding::probes_off_and_on_meanwhile",
        gxx,
        switched_meanwhile,
    );
    suite.case("unwinding::cancellation_storm", gxx, || {
        storm("storm", &["-O2"])
    });
    suite.case("unwinding::cancellation_storm_anywhere", gxx, || {
        storm("anywhere", &["-O2"])
    });
    for (name, flags) in STEPPED {
        let name = format!("unwinding::cancelled_at_each_instruction_{name}");
        let case = suite.case(name.clone(), gxx, move || at_each_instruction(flags));
        // 20 s of a processor each.
        if !name.ends_with("optimized") {
            case.soak();
        }
    }
    suite.case(
        "unwinding::through_copies_that_stay",
        gxx,
        through_copies_that_stay,
    );
}

const BUILDS: [(&str, &[&str]); 6] = [
    ("unoptimized", &["-O0"]),
    ("optimized", &["-O2"]),
    ("inlined", &["-O3", "-flto"]),
    ("fixed_address", &["-O2", "-no-pie"]),
    ("static", &["-O2", "-static"]),
    (
        "static_unwinder",
        &["-O2", "-static-libgcc", "-static-libstdc++"],
    ),
];

fn ways(flags: &[&str]) -> Result<PathBuf> {
    let flags = [flags, &["-std=c++17", "-pthread"]].concat();
    compile("g++", &["unwound/ways.cpp"], &flags)
}

/// From its first instruction to its end: its output, and what was recorded.
fn record_whole(program: &Path, rounds: u32, patterns: &[&str]) -> Result<(String, Report)> {
    let file = scratch().join(format!(
        "{}.hop",
        program.file_name().context("a name")?.display()
    ));
    let mut record = Command::new(hopscope_bin());
    record.args([
        "record",
        "--no-calibration",
        "--max-overhead",
        "1e9",
        "--threads",
        "1000",
        "-o",
    ]);
    record.arg(&file);
    patterns
        .iter()
        .for_each(|pattern| _ = record.args(["-f", pattern]));
    record.arg("--").arg(program).arg(rounds.to_string());
    let said = run(&mut record)?.expect_code(0)?.stdout;
    Ok((said, Report::read(&file)?))
}

fn unmeasured(program: &Path, rounds: u32) -> Result<String> {
    let mut plain = Command::new(program);
    Ok(run(plain.arg(rounds.to_string()))?.expect_code(0)?.stdout)
}

/// Nothing is refused for being unwound.
fn expect_accepted(report: &Report) -> Result<()> {
    let unwound = |reason: &str| reason.contains("unwind") || reason.contains("landing pads");
    let refused = report.refused.iter().filter(|(_, reason)| unwound(reason));
    // The unwinder itself is never touched. glibc's longjmp keeps where it goes in registers that probes change.
    let refused = refused
        .filter(|(name, reason)| !reason.starts_with("never touched") && !name.contains("longjmp"));
    let refused: Vec<_> = refused.collect();
    ensure!(refused.is_empty(), "refused: {refused:?}");
    Ok(())
}

fn every_way(flags: &[&str]) -> Result<()> {
    let program = ways(flags)?;
    let rounds = 5;
    let (said, report) = record_whole(&program, rounds, &["*"])?;
    let plain = unmeasured(&program, rounds)?;
    ensure!(said == plain, "measured: {said}, not: {plain}");
    report.expect_balanced()?;
    expect_accepted(&report)
}

fn panics() -> Result<()> {
    let program = compile("rustc", &["unwound/panics.rs"], &["-O", "-g"])?;
    let (said, report) = record_whole(&program, 20, &["*"])?;
    let plain = unmeasured(&program, 20)?;
    ensure!(said == plain, "measured: {said}, not: {plain}");
    report.expect_balanced()?;
    let leaf = report
        .functions
        .iter()
        .find(|(name, _)| name.contains("panics::leaf"));
    let (_, leaf) = leaf.context("the leaf is not measured")?;
    ensure!(leaf["unwound"] > 0, "{leaf:?}");
    expect_accepted(&report)
}

/// Of a function that always throws no call returns, of one that catches every call does.
fn counted() -> Result<()> {
    let program = ways(&["-O2"])?;
    let (_, report) = record_whole(&program, 9, &["ways-*!*"])?;
    report.expect_whole()?;
    let of = |name: &str| {
        let found = report.functions.iter().find(|(n, _)| n.starts_with(name));
        let found = found.with_context(|| format!("{name} is not measured"))?;
        Ok::<_, anyhow::Error>((found.1["entries"], found.1["exits"], found.1["unwound"]))
    };
    // Ten rounds of sixty: in half of them `throws` is called once.
    ensure!(of("throws(")? == (300, 0, 300), "{:?}", of("throws(")?);
    for name in ["through_libc(", "bounds(", "unwraps("] {
        ensure!(of(name)? == (600, 600, 0), "{name}: {:?}", of(name)?);
    }
    let (entries, exits, unwound) = of("constructs(")?;
    ensure!(
        entries == 630 && exits + unwound == entries && unwound > 0,
        "{:?}",
        of("constructs(")?
    );
    Ok(())
}

fn start() -> Result<Target> {
    let program = ways(&["-O2"])?;
    Target::spawn(Command::new(program).stdout(Stdio::piped()))
}

const ALL: [&str; 3] = ["ways-*!*", "libstdc++.so.6*!*", "libc.so.6!*"];

/// Nothing went wrong in it.
fn ends_right(target: Target) -> Result<()> {
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    let right = said.ends_with(" 0 wrong\n");
    ensure!(out.status.success() && right, "{}: {said}", out.status);
    Ok(())
}

fn mapped(pid: i32) -> Result<Vec<String>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let ours = maps
        .lines()
        .filter(|line| line.contains("/memfd:hopscope-"));
    Ok(ours.map(str::to_owned).collect())
}

fn cycles() -> usize {
    match counts() {
        Counts::Reduced => 4,
        Counts::Full => 150,
    }
}

fn attached_meanwhile() -> Result<()> {
    let target = start()?;
    for _ in 0..cycles() {
        let file = scratch().join("meanwhile.hop");
        let mut record = command(target.pid(), &ALL, &file);
        run(record.args(["-d", "40ms"]))?.expect_code(0)?;
        Report::read(&file)?.expect_balanced()?;
    }
    ends_right(target)
}

fn killed_meanwhile() -> Result<()> {
    let target = start()?;
    for _ in 0..cycles() {
        let file = scratch().join("killed.hop");
        let recording = Recording::start(target.pid(), &ALL, &file)?;
        recording.signal(Signal::SIGKILL)?;
        recording.ended()?;
        // The guardian may be at it already.
        hopscope(&["detach", "-p", &target.pid().to_string()])?.expect_code(0)?;
    }
    ends_right(target)
}

/// Threads are cancelled at any point of their lives while everything is measured, is no longer, and recorders are killed.
fn storm(name: &str, flags: &[&str]) -> Result<()> {
    let flags = [flags, &["-std=c++17", "-pthread"]].concat();
    let program = compile("g++", &[&format!("unwound/{name}.cpp")], &flags)?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let own = format!("{name}-*!*");
    let all = [own.as_str(), "libstdc++.so.6*!*", "libc.so.6!*"];
    for n in 0..cycles() {
        let file = scratch().join(format!("{name}.hop"));
        if n % 2 == 1 {
            let recording = Recording::start(target.pid(), &all, &file)?;
            recording.signal(Signal::SIGKILL)?;
            recording.ended()?;
            hopscope(&["detach", "-p", &target.pid().to_string()])?.expect_code(0)?;
            continue;
        }
        let mut record = command_with_buffer(target.pid(), &all, &file, "64K");
        record.args(["--threads", "1000"]);
        run(record.args(["-d", "60ms"]))?.expect_code(0)?;
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        expect_accepted(&report)?;
    }
    ends_right(target)
}

const STEPPED: [(&str, &[&str]); 3] = [
    ("optimized", &["-O2"]),
    ("small", &["-Os"]),
    ("with_landing_marks", &["-O2", "-fcf-protection"]),
];

/// Also within probes and what lies out of line, in threads whose first probe looks for a ring, and in those that get none.
fn at_each_instruction(flags: &[&str]) -> Result<()> {
    let flags = [flags, &["-std=c++17", "-pthread"]].concat();
    let program = compile("g++", &["unwound/steps.cpp"], &flags)?;
    let plain = run(&mut Command::new(&program))?.expect_code(0)?;
    let steps = |said: &str| -> Result<u64> {
        let (steps, _) = said.trim().rsplit_once(" steps").context("no steps")?;
        let number = steps.rsplit(char::is_whitespace).next();
        Ok(number.context("no number")?.parse()?)
    };
    for (patterns, threads) in [("step_*", "1000"), ("*", "1000"), ("step_*", "1")] {
        let file = scratch().join("steps.hop");
        let mut record = Command::new(hopscope_bin());
        record.args(["record", "--no-calibration", "--max-overhead", "1e9"]);
        record.args(["--buffer", "64K", "--threads", threads, "-o"]);
        record.arg(&file);
        record.args(["-f", &format!("steps-*!{patterns}"), "--"]);
        let measured = run(record.arg(&program))?.expect_code(0)?;
        ensure!(measured.stdout == plain.stdout, "{}", measured.stdout);
        let more = (steps(&measured.stderr)?, steps(&plain.stderr)?);
        ensure!(more.0 > 3 * more.1, "too little was measured: {more:?}");
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        expect_accepted(&report)?;
    }
    Ok(())
}

fn switched_meanwhile() -> Result<()> {
    let target = start()?;
    let file = scratch().join("switched.hop");
    let mut record = command_checking(target.pid(), &ALL[..1], &file, "1s");
    let out = run(&mut record)?.expect_code(0)?;
    expect_checked(&crate::recording::summary(&out.stdout)?)?;
    ends_right(target)
}

/// A program that waits in a chain of calls, until it is told to throw.
pub(crate) struct Held {
    target: Target,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Held {
    pub(crate) fn start() -> Result<Held> {
        Held::start_in(&std::env::current_dir()?)
    }

    pub(crate) fn start_in(dir: &Path) -> Result<Held> {
        let program = compile("g++", &["unwound/held.cpp"], &["-O1"])?;
        let mut start = Command::new(program);
        let start = start.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn(start.current_dir(dir))?;
        let stdout = target.child().stdout.take().context("its output")?;
        let lines = BufReader::new(stdout).lines();
        Ok(Held { target, lines })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.target.pid()
    }

    /// Ends with a core file, if its limit allows one.
    pub(crate) fn crash(self) -> Result<()> {
        self.target.signal(Signal::SIGABRT)?;
        let ended = self.target.wait()?;
        ensure!(ended.signal() == Some(Signal::SIGABRT as i32), "{ended}");
        Ok(())
    }

    pub(crate) fn tell(&mut self, word: &str) -> Result<()> {
        let input = self.target.child().stdin.as_mut().context("its input")?;
        writeln!(input, "{word}")?;
        let said = self.lines.next().context("it ended")??;
        ensure!(said == format!("caught 9 {word}"), "{said}");
        Ok(())
    }
}

/// Of several recordings at once, and in a forked child.
fn through_copies_that_stay() -> Result<()> {
    let mut held = Held::start()?;
    let pid = held.target.pid();
    for word in ["throw", "fork", "throw"] {
        let file = scratch().join("held.hop");
        let recording = Recording::start(pid, &["held-*!*"], &file)?;
        // Out of the original, and into the copies.
        held.tell("throw")?;
        recording.stop()?;
        ensure!(!mapped(pid)?.is_empty(), "the copies it waits in are gone");
        held.tell(word)?;
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        ensure!(
            report
                .functions
                .keys()
                .any(|name| name.starts_with("holds"))
        );
    }
    // A word on the stack may be an old one: other calls overwrite it.
    for _ in 0..50 {
        hopscope(&["detach", "-p", &pid.to_string()])?.expect_code(0)?;
        held.tell("throw")?;
        if mapped(pid)?.is_empty() {
            return Ok(());
        }
    }
    bail!("left: {:#?}", mapped(pid)?)
}
