//! Which processes are meant.
use super::AttachRequest;
use crate::error::{Result, refuse};
use hopscope_event::{ProcessEntry, ProcessIx};
use hopscope_process::programs;

/// Process ids in the order given, then those found by name, each once.
pub(crate) fn pids(request: &AttachRequest) -> Result<Vec<i32>> {
    let mut pids = request.pids.clone();
    if let Some(name) = &request.comm {
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
        refuse!("which process? give -p PID, --comm NAME or -- COMMAND");
    }
    Ok(pids)
}

pub(crate) fn entry(ix: ProcessIx, pid: i32) -> ProcessEntry {
    ProcessEntry {
        ix,
        pid,
        comm: programs::comm(pid),
        command_line: programs::command_line(pid),
    }
}
