//! Detaching: the entries are put back in one batch stop, in forked children too.
pub use super::reap::{Reaped, Reaping, reap, reap_noted};
pub use super::retire::Arena;
pub use super::survey::Extent;

use super::error::LiveError;
use super::found;
use super::fused;
use super::got;
use super::led_slot::GotPatch;
use super::patch::{self, Direction, Written};
use super::reap::{ATTEMPTS_MS, unmap};
use super::site::Patch;
use super::table::{PatchTable, State};
use hopscope_process::fault;
use hopscope_process::memory::TargetMemory;
use std::time::Duration;

/// Where a table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This process wrote it, and attached to the process that it is applied to.
    Ourselves,
    /// Memory of a process that has this inode mapped, which may have written anything there.
    Arena(u64),
}

/// What is put back in one stop.
#[derive(Default, Clone, Copy)]
pub struct Part<'a> {
    pub patches: &'a [Patch],
    pub slots: &'a [GotPatch],
    /// Words that calls between copies go by. First: without the entries they would lead on.
    pub fused: &'a [GotPatch],
}

/// Puts the original bytes back where ours still stand, part by part, each in a stop of its own. The
/// longest of them.
///
/// # Errors
/// Also when the table was read from an arena that this process does not execute.
pub fn restore(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    origin: Origin,
) -> Result<(Written, Duration), LiveError> {
    fault::failure(fault::RESTORE).map_err(LiveError::io(pid, "restoring"))?;
    let threads = hopscope_process::procfs::threads(pid).map_or(1, |tids| tids.len());
    let (mut written, mut longest, mut failed) = (Written::default(), Duration::ZERO, None);
    let mut parts = patch::parts(&table.patches, threads).into_iter().peekable();
    let (mut slots, mut fused) = (&table.slots[..], fused::slots(&table.fused));
    while let Some(patches) = parts.next() {
        // All of them with the first part, of which there is one at least.
        let part = Part {
            fused: &std::mem::take(&mut fused),
            slots: std::mem::take(&mut slots),
            patches,
        };
        match restore_part(pid, memory, table, part, origin) {
            Ok((done, pause)) => {
                written.sites.extend(done.sites);
                written.left_out.extend(done.left_out);
                written.by_slots.extend(done.by_slots);
                longest = longest.max(pause);
                if parts.peek().is_some() {
                    patch::let_run(pause);
                }
            }
            Err(e @ (LiveError::NotExecuted { .. } | LiveError::Attach(_))) => return Err(e),
            // What can be put back is.
            Err(e) => drop(failed.get_or_insert(e)),
        }
    }
    failed.map_or(Ok((written, longest)), Err)
}

/// The same of some entries of a process that this one has attached to; its others stay as they are.
///
/// # Errors
/// It could not be stopped or written to; some may have been put back.
pub fn restore_some(pid: i32, memory: &TargetMemory, some: Part) -> Result<(), LiveError> {
    let threads = hopscope_process::procfs::threads(pid).map_or(1, |tids| tids.len());
    let mut parts = patch::parts(some.patches, threads).into_iter().peekable();
    let mut rest = some;
    while let Some(patches) = parts.next() {
        let part = Part {
            patches,
            ..std::mem::take(&mut rest)
        };
        let (_, pause) = restore_in_a_stop(pid, memory, part, || true)?;
        if parts.peek().is_some() {
            patch::let_run(pause);
        }
    }
    Ok(())
}

fn restore_part(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    part: Part,
    origin: Origin,
) -> Result<(Written, Duration), LiveError> {
    restore_in_a_stop(pid, memory, part, || match origin {
        Origin::Ourselves => true,
        Origin::Arena(inode) => found::in_process(pid)
            .iter()
            .any(|f| f.inode == inode && f.executes_all(table)),
    })
}

fn restore_in_a_stop(
    pid: i32,
    memory: &TargetMemory,
    part: Part,
    executes: impl FnOnce() -> bool,
) -> Result<(Written, Duration), LiveError> {
    let stopped = hopscope_process::stop_all(pid)?;
    fault::point(fault::RESTORING);
    // Looked at while it is stopped: it may have become another program since it was found, and
    // then `memory` is that one's, or nobody's.
    let result = match executes() {
        true => {
            let fused = got::give_back(&stopped, memory, part.fused);
            let by_slots = got::give_back(&stopped, memory, part.slots);
            let written = patch::write(&stopped, memory, part.patches, Direction::Restore);
            by_slots.and_then(|by_slots| {
                fused?;
                let written = written?;
                Ok(Written {
                    by_slots,
                    ..written
                })
            })
        }
        false => Err(LiveError::NotExecuted { pid }),
    };
    fault::point(fault::RESTORED);
    let timing = stopped.resume()?;
    Ok((result?, timing.pause()))
}

/// Lets a thread end the system call that a killed recorder sent it into. What that maps or opens
/// is there to be found afterwards.
pub fn finish_call(pid: i32) -> Result<(), LiveError> {
    hopscope_process::stop_one(pid)?.resume()?;
    Ok(())
}

/// Closes descriptors that a killed recorder left open before anything was mapped. The thread that
/// was used may still be on its way back, so this may take more than one attempt.
pub fn close_descriptors(pid: i32) -> Result<(), LiveError> {
    let mut attempts = ATTEMPTS_MS.into_iter();
    loop {
        match unmap(pid, &[]) {
            Ok(()) => return Ok(()),
            Err(e) => match attempts.next() {
                Some(wait) => std::thread::sleep(Duration::from_millis(wait)),
                None => return Err(e),
            },
        }
    }
}

/// What a detach did, beyond the bytes it put back.
#[derive(Debug, Default)]
pub struct Detached {
    pub pause: Duration,
    /// Functions whose entry carried our jump, or that slots led into the copy of, and are as they were now.
    pub restored: u64,
    /// It is frozen: what is mapped is still to be taken away.
    pub frozen: bool,
    /// Forked children that are still patched.
    pub children_not_restored: Vec<i32>,
    /// What the user should know: copies kept, children cleaned, sites left alone.
    pub notes: Vec<String>,
}

impl Detached {
    /// That of another part of the same recording, too.
    pub fn join(&mut self, other: Detached) {
        self.pause = self.pause.max(other.pause);
        self.restored += other.restored;
        self.frozen |= other.frozen;
        self.children_not_restored
            .extend(other.children_not_restored);
        self.notes.extend(other.notes);
    }
}

/// Restores `pid` and every process that inherited its patched code by fork. What is mapped stays.
pub fn restore_all(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    inode: u64,
    state: State,
    origin: Origin,
) -> Result<Detached, LiveError> {
    let mut detached = restore_own(pid, memory, table, state, origin)?;
    restore_children(pid, table, inode, &mut detached);
    Ok(detached)
}

/// The same without the children.
pub(super) fn restore_own(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    state: State,
    origin: Origin,
) -> Result<Detached, LiveError> {
    let mut detached = Detached::default();
    let (written, pause) = restore(pid, memory, table, origin)?;
    let is_loop = |at: &&u64| table.loops.binary_search_by_key(*at, |l| l.at).is_ok();
    let entries = written.sites.iter().filter(|at| !is_loop(at)).count();
    (detached.pause, detached.restored) = (pause, (entries + written.by_slots.len()) as u64);
    // An attach that was killed before its first write has nothing to put back.
    if !written.left_out.is_empty() && state != State::Prepared {
        let n = written.left_out.len();
        detached.notes.push(format!(
            "process {pid}: {n} entries no longer contained our jmp (module unloaded or replaced) and were left unchanged"
        ));
    }
    Ok(detached)
}

/// Looks for them among all processes.
pub(super) fn restore_children(pid: i32, table: &PatchTable, inode: u64, detached: &mut Detached) {
    for child in found::everywhere()
        .into_iter()
        .filter(|f| f.inode == inode && f.pid != pid && f.belongs(table))
    {
        match detach_child(child.pid, table, inode) {
            Ok(()) => detached.notes.push(format!(
                "process {}: a forked child, restored too",
                child.pid
            )),
            // It may have ended.
            Err(_)
                if !found::in_process(child.pid)
                    .iter()
                    .any(|f| f.inode == inode) => {}
            Err(e) => {
                detached.children_not_restored.push(child.pid);
                detached.notes.push(format!(
                    "process {}, a forked child, is not restored: {e}",
                    child.pid
                ));
            }
        }
    }
}

fn detach_child(pid: i32, table: &PatchTable, inode: u64) -> Result<(), LiveError> {
    let memory = TargetMemory::open(pid)?;
    restore(pid, &memory, table, Origin::Arena(inode))?;
    reap(pid, &memory, table, None).map(drop)
}
