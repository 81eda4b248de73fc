//! What a command takes: time, processor time, memory.
use crate::error::{Error, Result};
use crate::program::last_words;
use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::Serialize;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Used {
    pub(super) wall_s: f64,
    /// In user and kernel mode.
    pub(super) cpu_s: f64,
    /// `VmHWM` of proc_pid_status(5), looked at every 2 ms: what comes after the last look is missed.
    pub(super) peak_rss_mib: f64,
}

/// Runs `command` to its end. No other child of this process may end meanwhile.
pub(super) fn by(command: &mut Command) -> Result<Used> {
    let name = command.get_program().to_string_lossy().into_owned();
    let (start, before) = (Instant::now(), children_cpu_s()?);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::start(&name))?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let ended = loop {
        // Gone from the text once it has ended.
        let text = fs::read_to_string(&status).unwrap_or_default();
        peak_kib = peak_kib.max(high_water_kib(&text).unwrap_or(0));
        if let Some(ended) = child.try_wait().map_err(Error::file("wait for", &name))? {
            break ended;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let wall_s = start.elapsed().as_secs_f64();
    if !ended.success() {
        let mut said = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            let _ = stderr.read_to_string(&mut said);
        }
        return Err(Error::failed(name, ended, last_words(&said)));
    }
    Ok(Used {
        wall_s,
        cpu_s: children_cpu_s()? - before,
        peak_rss_mib: peak_kib as f64 / 1024.0,
    })
}

fn high_water_kib(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn children_cpu_s() -> Result<f64> {
    let usage: Usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|source| Error::System {
        doing: "ask what the children used",
        source,
    })?;
    let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(us as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_time_are_those_of_the_command() {
        let script = "x=$(head -c 50000000 /dev/zero | tr '\\0' x); sleep 0.2; : $x";
        let used = by(Command::new("sh").args(["-c", script])).unwrap();
        assert!((40.0..400.0).contains(&used.peak_rss_mib), "{used:?}");
        assert!(used.cpu_s > 0.0 && used.wall_s >= 0.2, "{used:?}");
    }

    #[test]
    fn a_command_that_fails_is_an_error() {
        let failed = by(Command::new("sh").args(["-c", "echo no such thing >&2; exit 3"]));
        let said = failed.unwrap_err().to_string();
        assert!(said.contains("no such thing"), "{said}");
    }
}
