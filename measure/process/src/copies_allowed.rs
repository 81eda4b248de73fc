//! Whether the seccomp filters of a process let its code call `process_vm_readv`.
use super::AttachError;
use super::procfs::{Status, pid_inside};
use super::seccomp::Filters;
use nix::libc;

/// Why code in this process may not call `process_vm_readv`: some thread's filter forbids it.
/// Unless `may_stop`, filters are not read, for which all threads are stopped once, and their being
/// there is reason enough.
pub fn forbids_copies(pid: i32, may_stop: bool) -> Result<Option<String>, AttachError> {
    let proc = |source| AttachError::Proc { pid, source };
    let mut filtered = false;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).map_err(proc)? {
        let tid = task.map_err(proc)?.file_name();
        let tid = tid.to_str().and_then(|t| t.parse().ok()).unwrap_or(pid);
        // A thread that is gone by now makes no calls.
        let Ok(status) = Status::read(pid, tid) else {
            continue;
        };
        filtered |= !matches!(status.field("Seccomp"), None | Some("0"));
    }
    if !filtered {
        return Ok(None);
    }
    if !may_stop {
        let why = "there is a seccomp filter, which cannot be read without stopping the target";
        return Ok(Some(why.into()));
    }
    let stopped = super::stop::stop_all(pid)?;
    let mut why = None;
    for tid in stopped.tids() {
        let status = Status::read(pid, tid).map_err(|source| AttachError::Proc { pid, source })?;
        // Of the arguments only the addresses are not known, which no filter can look behind.
        let call = libc::SYS_process_vm_readv;
        let args = [pid_inside(pid).unwrap_or(pid) as u64, 0, 1, 0, 1, 0];
        if !Filters::of(pid, tid, &status)?.allow(call, 0, args) {
            why = Some(format!("the seccomp filter of thread {tid} forbids it"));
        }
    }
    stopped.resume()?;
    Ok(why)
}
