//! What a table may say. It lies in memory of the process that it is about, which may write anything
//! into it; whoever undoes a recording reads it with more rights than that process has. Sizes are
//! bounded before anything of that size is allocated, and what is attached keeps to the same bounds.
use super::{Area, PatchTable, TableError};
use crate::live::led_slot::SLOT_BYTES;
use crate::live::{counter_room, site};
use hopscope_event::counter::COUNTERS_MAX;
use hopscope_event::layout::{CONTEXTS_MAX, Context, PAGE, pool_bytes};
use hopscope_process::maps::USER_END;
use std::ops::RangeInclusive;

/// Of JSON. A function takes about 400 bytes.
pub const TABLE_BYTES_AT_MOST: u64 = 256 << 20;
/// All copies together; the jumps to them reach 2 GiB.
const CODE_BYTES_AT_MOST: u64 = 1 << 30;
/// One for all modules within reach of each other.
pub(super) const SEGMENTS_AT_MOST: usize = 256;
/// A process has at most 65,530 mappings (vm.max_map_count) unless it is told otherwise.
pub(super) const MODULES_AT_MOST: usize = 1 << 16;
/// And as many entries, and captured values.
pub(super) const FUNCTIONS_AT_MOST: usize = 1 << 20;
/// Of a command line: 6 MiB (the kernel's limit) of the shortest, with their pointers.
pub(super) const WORDS_AT_MOST: usize = 1 << 20;
/// Records of a ring, as `--buffer` takes them: 256 bytes to 1 GiB.
const RING_RECORDS_LOG2: RangeInclusive<u32> = 4..=26;
/// What is read and written when entries change: the pages that hold them, at least.
const PATCHED_BYTES_AT_MOST: u64 = 1 << 30;
const JUMP: u8 = 0xe9;
/// The second byte of a `jcc rel32`: of a loop's jump the displacement changes alone.
const CONDITIONS: RangeInclusive<u8> = 0x80..=0x8f;
const JUMP_BYTES: u64 = 5;

impl PatchTable {
    /// # Errors
    /// What the table says that no recorder writes.
    pub(in crate::live) fn check(&self) -> Result<(), TableError> {
        let damaged = |what: &str| Err(TableError::Damaged(what.to_owned()));
        let functions = [
            self.functions.len(),
            self.patches.len(),
            self.loops.len(),
            self.slots.len(),
            self.fused.len(),
            self.captures.len(),
        ];
        let words = [&self.meta.command_line, &self.process.command_line];
        if functions.iter().any(|n| *n > FUNCTIONS_AT_MOST)
            || self.modules.len() > MODULES_AT_MOST
            || words.iter().any(|words| words.len() > WORDS_AT_MOST)
        {
            return damaged("more functions than can be recorded at once (1,048,576)");
        }
        let data = [self.header, self.contexts, self.pool, self.counter_pages];
        if !self.segments.iter().chain(&data).all(is_possible) {
            return damaged("an area that no process can have");
        }
        let few = self.segments.len() <= SEGMENTS_AT_MOST;
        if !few || self.segments.iter().map(|s| s.len).sum::<u64>() > CODE_BYTES_AT_MOST {
            return damaged("more copies than fit near one program (1 GiB)");
        }
        let contexts = self.pool_contexts as usize;
        let spare = (CONTEXTS_MAX + 1) * size_of::<Context>() + counter_room::SCRATCH_BYTES;
        if contexts > CONTEXTS_MAX || self.contexts.len > spare.next_multiple_of(PAGE) as u64 {
            return damaged("more rings than there can be");
        }
        let log2 = self.ring_records_log2;
        if self.pool.len > 0
            && (!RING_RECORDS_LOG2.contains(&log2)
                || self.pool.len != pool_bytes(contexts, log2) as u64)
        {
            return damaged("rings of another size than their memory");
        }
        let pages = counter_room::bytes(contexts);
        if self.counters.len() > COUNTERS_MAX || ![0, pages].contains(&self.counter_pages.len) {
            return damaged("more counters than can be read at once");
        }
        if !self.patches.iter().all(|p| self.segment_of(p).is_some()) {
            return damaged("an entry that does not lead to a copy");
        }
        let lies_in_a_copy = |one: &super::LedLoop| {
            let (at, end) = (one.back.at, one.back.at.checked_add(JUMP_BYTES - 1));
            let whole = |s: &Area| s.contains(at) && end.is_some_and(|end| s.contains(end));
            self.segments.iter().any(whole)
        };
        if !self.loops.iter().all(lies_in_a_copy) || !self.loops.is_sorted_by_key(|l| l.at) {
            return damaged("a loop of a copy that lies in none");
        }
        let leads_to_a_copy =
            |slot: &super::GotPatch| slot.at < USER_END && self.segment_at(slot.replaced).is_some();
        if !self.slots.iter().all(leads_to_a_copy) || !self.slots.is_sorted() {
            return damaged("a GOT slot that does not lead to a copy");
        }
        let among_copies = |call: &super::FusedCall| {
            let (at, end) = (call.at, call.at.checked_add(SLOT_BYTES - 1));
            let whole = |s: &Area| s.contains(at) && end.is_some_and(|end| s.contains(end));
            self.segments.iter().any(whole) && self.segment_at(call.replaced).is_some()
        };
        if !self.fused.iter().all(among_copies) || !self.fused.is_sorted() {
            return damaged("a call between copies that lies in none, or leads to none");
        }
        let apart = |w: &[super::Patch]| w[1].at - w[0].at >= JUMP_BYTES;
        let ascending = self.patches.is_sorted_by_key(|p| p.at);
        if !ascending || !self.patches.windows(2).all(apart) {
            return damaged("entries that overlap");
        }
        let patched: u64 = site::runs(&self.patches)
            .into_iter()
            .map(site::run_bytes)
            .sum();
        if patched > PATCHED_BYTES_AT_MOST {
            return damaged("more code to be patched than a program has (1 GiB)");
        }
        Ok(())
    }

    /// The segment that the jump of an entry, or of a loop, leads into.
    pub(in crate::live) fn segment_of(&self, patch: &super::Patch) -> Option<&Area> {
        let [opcode, distance @ ..] = patch.replaced;
        if opcode != JUMP && (!CONDITIONS.contains(&opcode) || patch.original[0] != opcode) {
            return None;
        }
        let next = patch
            .at
            .checked_add(JUMP_BYTES)
            .filter(|end| *end <= USER_END)?;
        let to = next.checked_add_signed(i32::from_le_bytes(distance).into())?;
        self.segment_at(to)
    }

    pub(in crate::live) fn segment_at(&self, address: u64) -> Option<&Area> {
        self.segments.iter().find(|s| s.contains(address))
    }
}

fn is_possible(area: &Area) -> bool {
    let end = area.at.checked_add(area.len);
    area.at.is_multiple_of(PAGE as u64) && end.is_some_and(|end| end <= USER_END)
}
