//! Which processes are meant.
use super::RecordArgs;
use anyhow::bail;
use hopscope_event::{ProcessEntry, ProcessIx};
use hopscope_process::programs;
use std::fs;

/// Process ids in the order given, then those found by name, each once.
pub fn pids(args: &RecordArgs) -> anyhow::Result<Vec<i32>> {
    let mut pids = args.pid.clone();
    if let Some(name) = &args.comm {
        pids.extend(programs::processes(name)?);
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
        comm: programs::comm(pid),
        command_line,
    }
}
