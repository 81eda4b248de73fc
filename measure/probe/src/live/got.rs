//! GOT slots that lead callers into the copies of functions whose entries stay as they are.
//!
//! A slot is one aligned word, and all threads are stopped while it is written: a caller finds the one address or the other.
//! The dynamic linker may write one, too, when it binds it: it is led again then ([`open`]).
use super::error::LiveError;
use super::led_slot::{GotPatch, SLOT_BYTES};
use hopscope_process::StoppedProcess;
use hopscope_process::memory::TargetMemory;
use std::collections::HashSet;
use std::io;

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

/// What the user should know of those that are not bound yet.
pub(super) fn note(pid: i32, memory: &TargetMemory, slots: &[GotPatch]) -> Option<String> {
    let mut waiting: Vec<u64> = held(memory, slots)
        .filter(|(slot, now)| *now != slot.replaced)
        .map(|(slot, _)| slot.at)
        .collect();
    waiting.dedup();
    (!waiting.is_empty()).then(|| {
        format!(
            "process {pid}: {} GOT slots are not bound yet, and several bindings are possible: calls through each are measured from at most 50 ms after its first call on",
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
