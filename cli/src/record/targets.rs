//! Which processes are meant.
use super::RecordArgs;
use anyhow::{Context, bail};
use hopscope_event::{ProcessEntry, ProcessIx};
use hopscope_probe::attach;
use std::fs;

/// Process ids in the order given, then those found by name, each once.
pub fn pids(args: &RecordArgs) -> anyhow::Result<Vec<i32>> {
    let mut pids = args.pid.clone();
    if let Some(name) = &args.comm {
        let named = with_comm(name)?;
        if named.is_empty() {
            bail!("no process is called {name:?}; ps -eo pid,comm shows the names");
        }
        pids.extend(named);
    }
    let mut seen = Vec::new();
    pids.retain(|pid| {
        !seen.contains(pid) && {
            seen.push(*pid);
            true
        }
    });
    if pids.is_empty() {
        bail!("which process? give -p PID, --comm NAME or -- COMMAND");
    }
    Ok(pids)
}

fn with_comm(name: &str) -> anyhow::Result<Vec<i32>> {
    let mut pids: Vec<i32> = fs::read_dir("/proc")
        .context("reading /proc")?
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter(|pid| comm(*pid) == name && *pid != std::process::id() as i32)
        .collect();
    pids.sort_unstable();
    Ok(pids)
}

fn comm(pid: i32) -> String {
    let comm = attach::proc::text(&format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.trim_end().to_owned()
}

pub fn entry(ix: ProcessIx, pid: i32) -> ProcessEntry {
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command_line = command_line
        .split(|b| *b == 0)
        .filter(|arg| !arg.is_empty())
        .map(|arg| String::from_utf8_lossy(arg).into_owned())
        .collect();
    ProcessEntry {
        ix,
        pid,
        comm: comm(pid),
        command_line,
    }
}
