//! One case, in a process group of its own.
use super::CASE;
use super::report::Outcome;
use crate::Suite;
use crate::paths::target_dir;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How often a running case is looked at.
const LOOK_AGAIN_MS: u8 = 10;

pub(super) fn run_inside(suite: &Suite, name: &str) -> ExitCode {
    let Some(case) = suite.cases.iter().find(|case| case.name == name) else {
        eprintln!("no proof is called {name}");
        return ExitCode::from(2);
    };
    match (case.run)() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

pub(super) fn run_outside(name: &str, watchdog: Duration, nocapture: bool) -> Outcome {
    match try_run(name, watchdog, nocapture) {
        Ok(outcome) => outcome,
        Err(error) => Outcome::Failed(format!("the runner itself: {error:#}")),
    }
}

fn try_run(name: &str, watchdog: Duration, nocapture: bool) -> anyhow::Result<Outcome> {
    let logs = target_dir().join("test-logs");
    std::fs::create_dir_all(&logs)?;
    let log = logs.join(name.replace([':', '/', ' '], "_"));
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
