//! The guardian: a small parent process of the recorder. When the recorder is killed, it puts the
//! targets back and saves what their rings still hold.
use super::{RecordArgs, targets};
use crate::detach;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode};

const MARK: &str = "HOPSCOPE_GUARDED_BY";

/// Whether this process is the recorder below a guardian. It asks to be told when that one dies.
pub fn is_guarded() -> bool {
    let parent = nix::unistd::getppid().to_string();
    if std::env::var(MARK).is_ok_and(|pid| pid == parent) {
        if let Err(e) = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM) {
            log::warn!("cannot follow the guardian process: {e}");
        }
        return true;
    }
    false
}

/// Starts the recorder as a child and waits for it.
pub fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("taking over SIGINT and SIGTERM")?;
    let exe = std::env::current_exe().context("finding this program's own file")?;
    let mut child = Command::new(exe)
        .args(std::env::args_os().skip(1))
        .env(MARK, std::process::id().to_string())
        .spawn()
        .context("starting the recorder")?;
    let pid = Pid::from_raw(child.id() as i32);
    let handle = signals.handle();
    // A terminal signals both processes; a script that knows only this pid signals one.
    let forwarder = std::thread::spawn(move || {
        for signal in signals.forever() {
            let signal = if signal == SIGINT {
                Signal::SIGINT
            } else {
                Signal::SIGTERM
            };
            if kill(pid, signal).is_err() {
                break;
            }
        }
    });
    let status = child.wait().context("waiting for the recorder")?;
    handle.close();
    let _ = forwarder.join();
    match (status.code(), status.signal()) {
        (Some(code), _) => Ok(ExitCode::from(code as u8)),
        (None, signal) => {
            eprintln!(
                "hopscope: the recorder was killed (signal {}); restoring its targets",
                signal.unwrap_or(0)
            );
            let salvage = args.output.with_extension("salvaged.hop");
            // Those that are gone meanwhile need nothing.
            let targets = targets::pids(args).unwrap_or_default();
            detach::after_recorder(pid.as_raw(), &targets, &salvage)?;
            Ok(ExitCode::from(2))
        }
    }
}
