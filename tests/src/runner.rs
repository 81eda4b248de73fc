//! Runs the cases, each in a process group of its own, and tells what ran and what did not.
use crate::paths::target_dir;
use crate::{Case, Suite, counts};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

mod arguments;
mod child;
mod report;
mod required;

use arguments::Arguments;
use report::{Outcome, Report};

/// Set in the process that runs one case.
const CASE: &str = "HOPSCOPE_CASE";

pub fn main(suite: Suite) -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        return child::run_inside(&suite, &name);
    }
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(line) => {
            eprintln!("proofs: {line}");
            return ExitCode::from(2);
        }
    };
    let chosen: Vec<&Case> = suite
        .cases
        .iter()
        .filter(|case| arguments.matches(&case.name))
        .collect();
    if arguments.list {
        for case in chosen {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    match run_all(&suite, &chosen, &arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("proofs: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run_all(suite: &Suite, chosen: &[&Case], arguments: &Arguments) -> anyhow::Result<ExitCode> {
    build_binary()?;
    let required = required::Required::load()?;
    println!("running {} proofs, counts {:?}", chosen.len(), counts());
    let report = Mutex::new(Report::create(&report_path())?);
    let (alone, together): (Vec<&Case>, Vec<&Case>) = chosen.iter().partition(|case| case.alone);
    run_some(&together, arguments.jobs, arguments, &report, &required);
    run_some(&alone, 1, arguments, &report, &required);
    let mut report = report.into_inner().unwrap_or_else(|e| e.into_inner());
    if arguments.is_everything() {
        for prefix in required.without_cases(suite) {
            let problem = format!("tests/required-here names `{prefix}`, which no proof matches");
            report.add("house::required_here", &Outcome::Failed(problem), 0.0);
        }
    }
    Ok(report.finish())
}

fn run_some(
    cases: &[&Case],
    jobs: usize,
    arguments: &Arguments,
    report: &Mutex<Report>,
    required: &required::Required,
) {
    // Requirements look at the machine only, but the cases themselves hold closures that are not
    // Send: the workers share names and run each case in a child process.
    struct Job {
        name: String,
        skip: Option<(String, String)>,
        watchdog: std::time::Duration,
    }
    let work: Vec<Job> = cases
        .iter()
        .map(|case| Job {
            name: case.name.clone(),
            skip: case.needs.iter().find_map(|need| {
                let reason = need.check().err()?;
                Some((need.name().to_string(), reason))
            }),
            watchdog: case.watchdog,
        })
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(work.len()) {
            scope.spawn(|| {
                while let Some(job) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let started = std::time::Instant::now();
                    let outcome = match &job.skip {
                        Some((need, reason)) => required.judge_skip(&job.name, need, reason),
                        None => child::run_outside(&job.name, job.watchdog, arguments.nocapture),
                    };
                    let seconds = started.elapsed().as_secs_f64();
                    let mut report = report.lock().unwrap_or_else(|e| e.into_inner());
                    report.add(&job.name, &outcome, seconds);
                }
            });
        }
    });
}

/// Every case sees the same, current binary.
fn build_binary() -> anyhow::Result<()> {
    if std::env::var_os("HOPSCOPE_BIN").is_some() {
        return Ok(());
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "-p",
            "hopscope",
        ])
        .current_dir(crate::repository())
        .status()?;
    anyhow::ensure!(status.success(), "building the release binary: {status}");
    Ok(())
}

/// Elsewhere for a runner that is run by a proof.
fn report_path() -> PathBuf {
    match std::env::var_os("HOPSCOPE_REPORT") {
        Some(path) => path.into(),
        None => target_dir().join("test-report.tsv"),
    }
}
