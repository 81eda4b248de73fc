//! One case, in a process group of its own.
use super::CASE;
use super::report::Outcome;
use crate::Suite;
use crate::paths::target_dir;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::sys::time::TimeVal;
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How often a running case is looked at.
const LOOK_AGAIN_MS: u8 = 10;

pub(super) fn run_inside(suite: &Suite, name: &str) -> ExitCode {
    let Some(case) = suite.cases.iter().find(|case| case.name == name) else {
        eprintln!("no test is called {name}");
        return ExitCode::from(2);
    };
    let result = (case.run)();
    // For the report only: a case that is killed has none.
    let _ = std::fs::write(
        log_of(name).with_extension("cpu"),
        cpu_seconds().to_string(),
    );
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What this process and all that it waited for have used.
fn cpu_seconds() -> f64 {
    let of = |who| {
        getrusage(who).map_or(0.0, |usage| {
            let seconds = |t: TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
            seconds(usage.user_time()) + seconds(usage.system_time())
        })
    };
    of(UsageWho::RUSAGE_SELF) + of(UsageWho::RUSAGE_CHILDREN)
}

fn log_of(name: &str) -> PathBuf {
    let logs = target_dir().join("test-logs");
    logs.join(name.replace([':', '/', ' '], "_"))
}

pub(super) fn used_cpu_seconds(name: &str) -> Option<f64> {
    let said = std::fs::read_to_string(log_of(name).with_extension("cpu"));
    said.ok()?.parse().ok()
}

pub(super) fn run_outside(name: &str, watchdog: Duration, nocapture: bool) -> Outcome {
    let _ = std::fs::remove_file(log_of(name).with_extension("cpu"));
    match try_run(name, watchdog, nocapture) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(format!("the runner itself: {error:#}")),
    }
}

fn try_run(name: &str, watchdog: Duration, nocapture: bool) -> anyhow::Result<Outcome> {
    std::fs::create_dir_all(target_dir().join("test-logs"))?;
    let log = log_of(name);
    let mut command = Command::new(std::env::current_exe()?);
    command
        .env(CASE, name)
        .stdin(Stdio::null())
        .process_group(0);
    if !nocapture {
        // A file, not a pipe: a leaked grandchild that holds it open stops nobody.
        let file = std::fs::File::create(&log)?;
        command.stdout(file.try_clone()?).stderr(file);
    }
    let mut child = command.spawn()?;
    let group = Pid::from_raw(child.id() as i32);
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > watchdog {
            break None;
        }
        nix::poll::poll(&mut [], LOOK_AGAIN_MS)?;
    };
    // Whatever the case started ends with it; ESRCH says that nothing was left.
    let _ = killpg(group, Signal::SIGKILL);
    let said = || match nocapture {
        true => String::new(),
        false => String::from_utf8_lossy(&std::fs::read(&log).unwrap_or_default()).into_owned(),
    };
    Ok(match status {
        Some(status) if status.success() => Outcome::Passed,
        Some(status) => Outcome::Failed(format!("{status}\n{}", said())),
        None => {
            child.wait()?;
            let after = watchdog.as_secs();
            Outcome::Failed(format!("hung: killed after {after} s\n{}", said()))
        }
    })
}
