//! Attached, detached and killed with what hopscope can do in one recording switched on together.
use super::kills::{clean_up, random_wait};
use super::torturer::{MODES, Torturer};
use crate::counted::program::emulator;
use crate::recording::{Report, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Counts, Requirement, Suite, Target, command::run, counts, scratch};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// What goes together; `*` stands for a folder of the recording's own.
const TOGETHER: [&[&str]; 6] = [
    // Inside bodies: values, counters, what was inlined, what is called, both ways.
    &[
        "-f torture*!*work*(@instructions, @cycles)",
        "-f torture*!*work*(arg1, return)",
        "-f work*!*work*(arg1, return)",
        "-f inlined:torture*!mixed",
        "-f calls:torture*!*work*",
        "-f calls:*->work_leaf",
        "--emulate-counters",
        "--follow-forks",
        "--symbols */symbols",
        "--detach-on work_leaf > 100s",
        "--max-loss 100",
    ],
    // What comes later: libraries and children.
    &[
        "-f *work*(return, @instructions)",
        "-f inlined:mixed",
        "-f *->work*!*",
        "--emulate-counters",
        "--follow-dlopen",
        "--follow-forks",
        "--ordered-stamps",
        "--symbols */symbols",
    ],
    &["-f *work*(arg1, return)", "--budget 5"],
    &[
        "-f *work*(return)",
        "-f inlined:mixed",
        "-f calls:work",
        "--every 3",
        "--root work",
        "--follow-forks",
    ],
    &[
        "-f *work*(return)",
        "-f calls:work",
        "--flight 1s",
        "--flight-memory 16M",
        "--trigger work_recursive > 1us",
        "--keep 2",
        "--after 1ms",
        "--cool-down 5ms",
    ],
    &["-f *work*", "--method calls", "-f inlined:mixed"],
];

/// The others at full counts.
const OFTEN: [&str; 4] = ["spinning", "signalling", "threading", "loading"];

pub(super) fn register(suite: &mut Suite) {
    for mode in MODES {
        let name = format!("torture::everything_{mode}");
        let case = suite.case(name, &[Requirement::Gcc], move || everything(mode));
        if !OFTEN.contains(&mode) {
            case.soak();
        }
        let name = format!("torture::everything_killed_{mode}");
        let case = suite.case(name, &[Requirement::Gcc], move || killed(mode));
        if mode != "spinning" {
            case.soak();
        }
    }
}

/// Readings of counters are signals here, and what a signal leaves on the stack of a thread without libc that has ended names a
/// place in a probe until it is overwritten: the process is not recorded again (KNOWN_ISSUES).
fn is_possible(mode: &str, option: &&&str) -> bool {
    mode != "raw_cloning" || !option.contains("emulate") && !option.contains('@')
}

fn recording(torturer: &Torturer, options: &[&str], dir: &Path) -> Result<Command> {
    let mut record = command(torturer.pid(), &[], &dir.join("all.hop"));
    let dir = dir.to_str().context("a path in UTF-8")?;
    let mode = torturer.mode;
    for option in options.iter().filter(|option| is_possible(mode, option)) {
        match option.split_once(' ') {
            Some((flag, value)) if flag != "-f" => record.arg(flag).arg(value.replace('*', dir)),
            Some((flag, value)) => record.arg(flag).arg(value),
            None => record.arg(option),
        };
    }
    record.env("LD_PRELOAD", emulator()?);
    Ok(record)
}

fn everything(mode: &'static str) -> Result<()> {
    let torturer = Torturer::start_counting(mode)?;
    let mut entries = 0;
    for n in 0..counts().pick(1, 100) {
        for options in TOGETHER {
            let when = || format!("recording {n} with {options:?}");
            let dir = scratch();
            let mut record = recording(&torturer, options, &dir)?;
            let out = run(record.args(["-d", "60ms"]))?;
            // Threads without number, which have no rings: they are let go, which is said.
            let gives_up = out.stderr.contains("which no budget can keep down");
            if !gives_up || mode != "threading" {
                out.expect_code(0).with_context(when)?;
            }
            for file in std::fs::read_dir(&dir)? {
                let file = file?.path();
                if file.extension().is_some_and(|end| end == "hop") {
                    let report = Report::read(&file).with_context(when)?;
                    report.expect_balanced().with_context(when)?;
                    entries += report.summary["balance"]["entries"].as_u64().unwrap_or(0);
                }
            }
            torturer.text_is_original().with_context(when)?;
            torturer.no_descriptors().with_context(when)?;
            let pages = std::fs::read_to_string(format!("/proc/{}/maps", torturer.pid()))?;
            let events = pages.lines().filter(|line| line.contains("perf_event"));
            ensure!(events.count() == 0, "{}: events are left", when());
        }
    }
    ensure!(entries > 0, "nothing was ever recorded");
    torturer.finish()
}

/// At the points at which most is under way, and at instants that differ from run to run.
fn killed(mode: &'static str) -> Result<()> {
    let points = match counts() {
        Counts::Full => &[4, 14, 16, 18, 20][..],
        Counts::Reduced => &[14, 18],
    };
    let torturer = Torturer::start_counting(mode)?;
    let mut seed = u64::from(std::process::id());
    for options in TOGETHER {
        let dir = scratch();
        let salvaged = dir.join("salvaged.hop");
        let unguarded = || -> Result<Command> {
            let mut record = recording(&torturer, options, &dir)?;
            record.env("HOPSCOPE_GUARDED_BY", std::process::id().to_string());
            record.stdout(Stdio::null()).stderr(Stdio::null());
            Ok(record)
        };
        for point in points {
            let when = format!("killed at fault point {point} with {options:?}");
            let mut record = unguarded()?;
            record.env("HOPSCOPE_FAULT_POINT", point.to_string());
            record.args(["-d", "20ms"]).stderr(Stdio::piped());
            let out = record.output()?;
            let said = String::from_utf8_lossy(&out.stderr);
            let is_killed = out.status.signal() == Some(9);
            ensure!(is_killed, "not {when}: {}\n{said}", out.status);
            clean_up(&torturer, &salvaged, &when)?;
        }
        for n in 0..counts().pick(1, 20) {
            let mut recorder = Target::spawn_now(&mut unguarded()?)?;
            let wait = random_wait(&mut seed, 300_000);
            // What is random is when; nothing is concluded from the time.
            std::thread::sleep(wait);
            recorder.child().kill()?;
            recorder.child().wait()?;
            let when = format!("kill {n}, after {wait:?}, with {options:?}");
            clean_up(&torturer, &salvaged, &when)?;
        }
    }
    torturer.finish()
}
