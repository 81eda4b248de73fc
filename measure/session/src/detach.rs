//! What a killed recorder left behind undone, in forked children too, and the records that are still in its rings
//! saved.
mod clean;
mod restore;

use crate::error::{Result, refuse};
use crate::status::show;
use clean::Clean;
use hopscope_probe::live::LiveError;
use hopscope_probe::live::found::{self, Found};
use hopscope_probe::live::remove;
use hopscope_probe::live::table::State;
use hopscope_process::fd_reserve;
use hopscope_process::memory::TargetMemory;
use restore::How;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub struct DetachRequest {
    /// `None`: every process whose recorder no longer runs.
    pub pid: Option<i32>,
    /// All memory is searched for references to unused copies.
    pub search_all: bool,
    /// Where the records go that are still in the rings.
    pub output: Option<PathBuf>,
    pub json: bool,
}

/// How far it came; each process that it could do nothing for was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    All,
    /// Unused copies stay mapped in processes that their control group froze.
    ButFrozen,
    ButFailed,
}

/// # Errors
/// There is no such process.
pub fn run(request: &DetachRequest) -> Result<Done> {
    hopscope_process::fault::arm();
    fd_reserve::raise_limit();
    let mut found = match request.pid {
        Some(pid) => {
            if !std::fs::exists(format!("/proc/{pid}")).unwrap_or(false) {
                refuse!("no process {pid}");
            }
            finish_calls(&[pid]);
            found::in_process(pid)
        }
        None => found::everywhere(),
    };
    found.retain(|f| f.header.is_some());
    let only_descriptors = close_descriptors(request.pid, request.json)?;
    if only_descriptors {
        return Ok(Done::All);
    }
    if found.is_empty() {
        match request.pid {
            Some(pid) => crate::status::say!("process {pid} has no probes"),
            None => crate::status::say!("no process carries probes"),
        }
        return Ok(Done::All);
    }
    let how = How {
        json: request.json,
        search_all: request.search_all,
    };
    let mut clean = Clean::new(None, request.output.as_deref(), how);
    clean.all(&found);
    Ok(match (clean.failed, clean.frozen) {
        (0, 0) => Done::All,
        (0, _) => Done::ButFrozen,
        _ => Done::ButFailed,
    })
}

/// The guardian's call: cleans what the recorder with this pid left in `targets` and their children.
pub(crate) fn after_recorder(recorder: i32, targets: &[i32], output: Option<&Path>) -> Result<()> {
    fd_reserve::raise_limit();
    finish_calls(targets);
    let mut clean = Clean::new(Some(recorder), output, How::default());
    // Its own targets first: nothing that another process pretends comes before them.
    let mut own: Vec<Found> = targets.iter().flat_map(|p| found::in_process(*p)).collect();
    own.retain(|f| f.header.is_some());
    clean.all(&own);
    // Then what shares their arenas, then what says so: a target that has ended leaves children.
    let mut others = found::everywhere();
    others.retain(|f| f.header.is_some() && !targets.contains(&f.pid));
    let (children, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|f| own.iter().any(|o| o.inode == f.inode));
    clean.all(&children);
    clean.strangers = true;
    clean.all(&others);
    close_descriptors(None, false).map(drop)
}

/// Whether the recorder with this pid, which has ended, left a jump in one of `targets`.
pub(crate) fn has_left(recorder: i32, targets: &[i32]) -> bool {
    let left = |f: &Found| {
        let memory = TargetMemory::open(f.pid)?;
        if f.state(&memory)? != State::Patched {
            return Ok(false);
        }
        let (table, _) = f.table(&memory)?;
        let its = table.recorder == recorder && f.belongs(&table);
        Ok(its && found::is_patched(&memory, &table))
    };
    let mut found = targets.iter().flat_map(|pid| found::in_process(*pid));
    found.any(|f| {
        left(&f).unwrap_or_else(|e: LiveError| {
            log::info!("process {}: {e}", f.pid);
            false
        })
    })
}

/// A recorder killed early leaves nothing to see in a target that is yet to make its first call.
fn finish_calls(pids: &[i32]) {
    for &pid in pids {
        let seen = !found::in_process(pid).is_empty() || found::has_descriptors(pid);
        if seen || !found::may_be_in_a_call(pid) {
            continue;
        }
        if let Err(e) = remove::finish_call(pid) {
            crate::status::say!("not known whether a killed recorder left a call unfinished: {e}");
        }
    }
}

/// What is left of an attach that was killed before it mapped anything; true when there was any.
fn close_descriptors(pid: Option<i32>, json: bool) -> Result<bool> {
    let mut pids = found::with_descriptors_only();
    pids.retain(|p| pid.is_none_or(|pid| pid == *p));
    for pid in &pids {
        match remove::close_descriptors(*pid) {
            Ok(()) if json => {
                let line =
                    serde_json::json!({"type": "descriptors_closed", "schema": 1, "pid": pid});
                println!("{line}");
            }
            Ok(()) => show!("process {pid}: descriptors of an unfinished attach closed"),
            Err(e) => crate::status::say!("process {pid}: {e}"),
        }
    }
    Ok(!pids.is_empty())
}
