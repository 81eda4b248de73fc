//! Runs the cases, each in a process group of its own, and tells what ran and what did not.
use crate::paths::target_dir;
use crate::{Case, Counts, Requirement, Suite, counts};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

mod arguments;
mod child;
mod costs;
mod places;
mod report;
mod required;
mod shards;

use arguments::Arguments;
use costs::Costs;
use places::Places;
use report::{Outcome, Report};
pub use shards::Shards;

/// Set in the process that runs one case.
const CASE: &str = "HOPSCOPE_CASE";

/// Set where `cargo test --workspace` is to run the unit tests only: leaving this package out of it would
/// select other features of what it shares with others, and build those twice.
const LATER: &str = "HOPSCOPE_SYSTEM_TESTS_LATER";

pub fn main(suite: Suite) -> ExitCode {
    if let Ok(name) = std::env::var(CASE) {
        return child::run_inside(&suite, &name);
    }
    if std::env::var_os(LATER).is_some() {
        return ExitCode::SUCCESS;
    }
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(line) => {
            eprintln!("system: {line}");
            return ExitCode::from(2);
        }
    };
    if arguments.list_shards {
        return match Shards::load() {
            Ok(shards) => {
                println!("{}", shards.names().join("\n"));
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("system: {error:#}");
                ExitCode::from(2)
            }
        };
    }
    let chosen = match choose(&suite, &arguments) {
        Ok(chosen) => chosen,
        Err(error) => {
            eprintln!("system: {error:#}");
            return ExitCode::from(2);
        }
    };
    if arguments.list {
        for case in chosen {
            println!("{}: test", case.name);
        }
        return ExitCode::SUCCESS;
    }
    match run_all(&suite, &chosen, &arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("system: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn choose<'a>(suite: &'a Suite, arguments: &Arguments) -> anyhow::Result<Vec<&'a Case>> {
    let shards = Shards::load()?;
    if let Some(name) = &arguments.shard {
        let names = shards.names();
        let is_known = names.contains(&name.as_str());
        anyhow::ensure!(is_known, "no shard {name}; there are {}", names.join(", "));
    }
    let done = match &arguments.resume {
        Some(path) => report::passed_in(path)?,
        None => Vec::new(),
    };
    // The list is of all there are, and what is asked for by its name is run.
    let all = counts() == Counts::Full || arguments.list || arguments.has_names();
    let mut chosen: Vec<&Case> = suite.cases.iter().collect();
    chosen.retain(|case| {
        let shard = arguments.shard.as_deref();
        arguments.matches(&case.name)
            && arguments.alone.is_none_or(|alone| case.alone == alone)
            && shard.is_none_or(|shard| shards.of(&case.name) == Some(shard))
            && !done.contains(&case.name)
            && (all || !case.soak)
    });
    Ok(chosen)
}

fn run_all(suite: &Suite, chosen: &[&Case], arguments: &Arguments) -> anyhow::Result<ExitCode> {
    build_binary()?;
    let required = required::Required::load()?;
    println!("running {} tests, counts {:?}", chosen.len(), counts());
    let report = Mutex::new(match &arguments.resume {
        Some(path) => Report::append(path)?,
        None => Report::create(&report_path())?,
    });
    let last_start = arguments
        .minutes
        .map(|m| Instant::now() + Duration::from_secs(m * 60));
    let costs = Costs::load()?;
    let mut looked_at = Checked::default();
    let mut jobs = |alone: bool| {
        let cases = chosen.iter().filter(|case| case.alone == alone);
        let mut jobs: Vec<Job> = cases.map(|case| Job::new(case, &mut looked_at)).collect();
        // What takes longest must not be what everybody waits for at the end.
        jobs.sort_by(|a, b| costs.seconds(&b.name).total_cmp(&costs.seconds(&a.name)));
        jobs
    };
    let run = |jobs: Vec<Job>, at_once| {
        run_some(
            jobs,
            at_once,
            arguments.nocapture,
            last_start,
            &report,
            &required,
        );
    };
    let (waiting, working): (Vec<Job>, Vec<Job>) = jobs(false)
        .into_iter()
        .partition(|job| arguments.jobs > 1 && !job.in_turn && costs.waits(&job.name));
    // Those that wait leave the processors to the others: they have as many places of their own.
    std::thread::scope(|scope| {
        scope.spawn(|| run(waiting, arguments.jobs));
        run(working, arguments.jobs);
    });
    run(jobs(true), 1);
    let mut report = report.into_inner().unwrap_or_else(|e| e.into_inner());
    if arguments.is_everything() {
        for prefix in required.without_cases(suite) {
            let problem = format!("tests/required-here names `{prefix}`, which no test matches");
            report.add("house::required_here", &Outcome::Failed(problem), 0.0, None);
        }
    }
    Ok(report.finish())
}

/// The cases themselves hold closures that are not Send: the workers share names and run each case in a child process.
struct Job {
    name: String,
    /// What is missing, and why.
    skip: Option<(&'static str, String)>,
    watchdog: Duration,
    in_turn: bool,
}

impl Job {
    fn new(case: &Case, looked_at: &mut Checked) -> Job {
        Job {
            name: case.name.clone(),
            skip: case
                .needs
                .iter()
                .find_map(|need| Some((need.name(), looked_at.missing(*need)?))),
            watchdog: case.watchdog,
            in_turn: case.in_turn,
        }
    }
}

/// Requirements, each looked at once: some start programs that take seconds to say.
#[derive(Default)]
struct Checked(HashMap<&'static str, Option<String>>);

impl Checked {
    fn missing(&mut self, need: Requirement) -> Option<String> {
        let known = self.0.entry(need.name());
        known.or_insert_with(|| need.check().err()).clone()
    }
}

fn run_some(
    work: Vec<Job>,
    at_once: usize,
    nocapture: bool,
    last_start: Option<Instant>,
    report: &Mutex<Report>,
    required: &required::Required,
) {
    let workers = at_once.min(work.len());
    let places = Places::new(work);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(job) = places.take() {
                    let started = Instant::now();
                    let report = || report.lock().unwrap_or_else(PoisonError::into_inner);
                    if last_start.is_some_and(|last| started > last) {
                        report().leave(&job.name);
                        places.give_back(&job);
                        continue;
                    }
                    let outcome = match &job.skip {
                        Some((need, reason)) => required.judge_skip(&job.name, need, reason),
                        None => child::run_outside(&job.name, job.watchdog, nocapture),
                    };
                    places.give_back(&job);
                    let seconds = started.elapsed().as_secs_f64();
                    let cpu_seconds = child::used_cpu_seconds(&job.name);
                    report().add(&job.name, &outcome, seconds, cpu_seconds);
                }
            });
        }
    });
}

/// Every case sees the same, current binary.
fn build_binary() -> anyhow::Result<()> {
    if let Some(path) = std::env::var_os("HOPSCOPE_BIN") {
        let version = Command::new(path).arg("--version").output()?;
        if !String::from_utf8_lossy(&version.stdout).contains("fault-injection") {
            eprintln!(
                "system: HOPSCOPE_BIN lacks the feature fault-injection: cases that need it fail"
            );
        }
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
            "-p",
            "hopscope-bench",
            // Cases kill and spoil.
            "--features",
            "hopscope/fault-injection",
        ])
        .current_dir(crate::repository())
        .status()?;
    anyhow::ensure!(status.success(), "building the release binary: {status}");
    Ok(())
}

/// Elsewhere for a runner that is run by a test.
fn report_path() -> PathBuf {
    match std::env::var_os("HOPSCOPE_REPORT") {
        Some(path) => path.into(),
        None => target_dir().join("test-report.tsv"),
    }
}
