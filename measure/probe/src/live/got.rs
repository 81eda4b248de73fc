//! GOT slots that lead callers into the copies of functions whose entries stay as they are.
//!
//! A slot is one aligned word, and all threads are stopped while it is written: a caller finds the one address or the other.
//! The dynamic linker may write one, too, when it binds it: it is led again then ([`open`]).
use super::error::LiveError;
use super::install::Installed;
use super::remove;
use super::site::Patch;
use hopscope_event::FunctionId;
use hopscope_process::StoppedProcess;
use hopscope_process::memory::TargetMemory;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io;

/// A slot that may lead into a copy: addresses in the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedSlot {
    pub at: u64,
    /// What it holds before it leads into the copy; the function's own address where that is to be waited for.
    pub found: u64,
}

impl Installed {
    /// Leads what the dynamic linker has bound since the last look, all in one stop. How many.
    ///
    /// # Errors
    /// The process could not be stopped, or its GOT not be written.
    pub fn lead_slots(&self) -> Result<usize, LiveError> {
        if self.restored || !open(&self.memory, &self.slots) {
            return Ok(0);
        }
        let stopped = hopscope_process::stop_all(self.pid)?;
        let led = lead(&stopped, &self.memory, &self.slots);
        stopped.resume()?;
        led
    }

    /// Gives back those of some functions, by their own addresses, for good; with other entries that are restored.
    ///
    /// # Errors
    /// As of [`remove::restore_some`].
    pub fn leave_out(&mut self, functions: &HashSet<FunctionId>) -> Result<(), LiveError> {
        let sites = self.sites.iter();
        let theirs = sites.filter(|(_, id)| functions.contains(id));
        let theirs: HashSet<u64> = theirs.map(|(at, _)| *at).collect();
        // They stay in the table: a forked child may still have our jump there.
        let patches = self.table.patches.iter().copied();
        let patches: Vec<Patch> = patches.filter(|p| theirs.contains(&p.at)).collect();
        let slots = self
            .slots
            .extract_if(.., |slot| theirs.contains(&slot.function));
        let slots: Vec<GotPatch> = slots.collect();
        remove::restore_some(self.pid, &self.memory, &patches, &slots)
    }
}

/// As the patch table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GotPatch {
    pub at: u64,
    /// Where the function begins: what it holds once it is bound to it.
    pub function: u64,
    /// What it is given back.
    pub found: u64,
    /// Where the copy begins.
    pub replaced: u64,
}

pub(super) const SLOT_BYTES: u64 = 8;

impl GotPatch {
    fn is_open(&self, now: u64) -> bool {
        now == self.found || now == self.function
    }
}

/// Slots of one page are read together.
const PAGE: u64 = 4096;

/// Each of `slots`, ascending, with what it holds; without those that are not mapped any more.
fn held<'s>(
    memory: &TargetMemory,
    slots: &'s [GotPatch],
) -> impl Iterator<Item = (&'s GotPatch, u64)> {
    let near = slots.chunk_by(|a, b| a.at / PAGE == b.at / PAGE);
    near.flat_map(|near| {
        let first = near[0].at;
        let mut bytes = vec![0; (near[near.len() - 1].at + SLOT_BYTES - first) as usize];
        let is_read = memory.read(first, &mut bytes).is_ok();
        let held = near.iter().filter_map(move |slot| {
            let at = (slot.at - first) as usize;
            let word = bytes[at..].first_chunk()?;
            is_read.then(|| (slot, u64::from_le_bytes(*word)))
        });
        held.collect::<Vec<_>>()
    })
}

/// Whether any does not lead into its copy and could: it was bound since it was looked at, or is being called through for
/// the first time.
pub(super) fn open(memory: &TargetMemory, slots: &[GotPatch]) -> bool {
    held(memory, slots).any(|(slot, now)| slot.is_open(now))
}

/// What the user should know of those that lead nowhere yet.
pub(super) fn note(pid: i32, memory: &TargetMemory, slots: &[GotPatch]) -> Option<String> {
    let mut waiting: Vec<u64> = held(memory, slots)
        .filter(|(slot, now)| *now != slot.replaced)
        .map(|(slot, _)| slot.at)
        .collect();
    waiting.dedup();
    (!waiting.is_empty()).then(|| {
        format!(
            "process {pid}: {} GOT slots lead nowhere yet, and what they will be bound to is not certain: each is led within 50 ms of its first call, and calls before that are not measured",
            waiting.len()
        )
    })
}

/// Whether any leads into its copy.
pub(super) fn any_leads(memory: &TargetMemory, slots: &[GotPatch]) -> bool {
    held(memory, slots).any(|(slot, now)| now == slot.replaced)
}

/// How many lead into copies now that did not.
///
/// # Errors
/// When one cannot be written; others may have been.
pub(super) fn lead(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    slots: &[GotPatch],
) -> Result<usize, LiveError> {
    let mut led = 0;
    for (slot, _) in held(memory, slots).filter(|(slot, now)| slot.is_open(*now)) {
        write(stopped, memory, slot.at, slot.replaced)?;
        led += 1;
    }
    Ok(led)
}

/// The functions that some led into the copies of. What the dynamic linker, or the program, has put there instead stays.
///
/// # Errors
/// When one cannot be written; the others are.
pub(super) fn give_back(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    slots: &[GotPatch],
) -> Result<HashSet<u64>, LiveError> {
    let (mut functions, mut failed) = (HashSet::new(), Ok(()));
    for (slot, _) in held(memory, slots).filter(|(slot, now)| *now == slot.replaced) {
        match write(stopped, memory, slot.at, slot.found) {
            Ok(()) => drop(functions.insert(slot.function)),
            Err(e) => failed = failed.and(Err(e)),
        }
    }
    failed.map(|()| functions)
}

/// Its page may be read-only (RELRO).
fn write(
    stopped: &StoppedProcess,
    memory: &TargetMemory,
    at: u64,
    word: u64,
) -> Result<(), LiveError> {
    let failed = |e: io::Error| LiveError::io(stopped.pid(), "writing to its GOT")(e);
    let written = stopped.write_code(memory, at, &word.to_le_bytes());
    written.map_err(failed)
}
