//! Switching on: the stops of all threads in which entries are replaced.
use super::arena_table::set_state;
use super::build::Linked;
use super::contexts::{self, Contexts};
use super::error::LiveError;
use super::found;
use super::fused;
use super::got;
use super::lookup::Prepared;
use super::loops::{Loops, Running};
use super::patch::{self, Direction};
use super::remove;
use super::site::{self, Patch};
use super::standing::{self, LateRefusals};
use super::table::{PatchTable, State};
use crate::memory::SharedWords;
use crate::progress::{self, Phase};
use hopscope_process::maps::{self, Mapping};
use hopscope_process::memory::TargetMemory;
use hopscope_process::{StoppedProcess, fault, procfs};
use std::collections::HashSet;
use std::fs::File;
use std::time::Duration;

/// What the batch stop works with.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    pub memory: &'a TargetMemory,
    pub linked: &'a [Linked],
    pub arena: &'a File,
    pub words: &'a SharedWords,
    /// As they were when the functions were chosen.
    pub mappings: &'a [Mapping],
    pub contexts: usize,
    /// Rings that may be given away.
    pub rings: usize,
}

/// Which part of what is switched on.
enum Part<'a> {
    /// Threads get their contexts with it.
    First(Contexts<'a>),
    /// The first one, where they have those of the recording that this is added to.
    FirstAdded,
    Later,
}

#[derive(Default)]
pub(super) struct SwitchedOn {
    /// Threads that got a context: (tid, context).
    pub threads: Vec<(i32, u32)>,
    pub refused: LateRefusals,
    /// Threads whose stack was not searched to its end.
    pub partly_searched: usize,
    /// Of functions with something inlined.
    pub running: Running,
}

/// Of each stack this much is searched in any case, of all together [`STACKS_AT_MOST`]: some
/// milliseconds.
const STACK_AT_LEAST: u64 = 256 << 10;
const STACKS_AT_MOST: u64 = 16 << 20;

const MOMENT: Duration = Duration::from_millis(1);

struct Left {
    /// Threads and the instruction in a copy where each goes on.
    moves: Vec<(i32, u64)>,
    refused: LateRefusals,
    partly_searched: usize,
    running: Running,
}

/// What is looked at, opened or allocated before the stop, so that no thread waits for it. The map is
/// a little old then: where a stack ends that it does not have, reading it shows.
struct Before {
    mappings: Vec<Mapping>,
    maps: File,
    stack: Vec<u8>,
}

impl Before {
    fn look(pid: i32) -> Result<Before, LiveError> {
        let failed = LiveError::io(pid, "reading its memory map");
        let maps = File::open(format!("/proc/{}/maps", procfs::memory_holder(pid)));
        let read = maps.and_then(|maps| Ok((maps, maps::read(pid)?)));
        let (maps, mappings) = read.map_err(failed)?;
        // Written once: its pages are there.
        let mut stack = vec![1; STACK_AT_LEAST as usize];
        stack.clear();
        Ok(Before {
            mappings,
            maps,
            stack,
        })
    }
}

impl Batch<'_> {
    /// Part by part: many entries are not replaced in one stop. After a failure everything is as it
    /// was, or `table` has what is not.
    pub(super) fn switch_on(
        &self,
        pid: i32,
        table: &mut PatchTable,
    ) -> Result<SwitchedOn, LiveError> {
        let mut which = match table.shares_rings {
            true => Part::FirstAdded,
            false => {
                let sizes = (self.contexts, self.rings);
                let mut contexts = Contexts::new(pid, self.memory, self.words, sizes, table)?;
                contexts.give_one_by_one(pid, table)?;
                Part::First(contexts)
            }
        };
        let threads = procfs::threads(pid).map_or(1, |tids| tids.len());
        let all = std::mem::take(&mut table.patches);
        let mut on = SwitchedOn::default();
        let mut done = Vec::<Patch>::with_capacity(all.len());
        progress::begin(Phase::Entries, all.len());
        let mut parts = patch::parts(&all, threads);
        let is_loop = |p: &Patch| table.loops.binary_search_by_key(&p.at, |l| l.at).is_ok();
        let (loops, entries): (Vec<Patch>, Vec<Patch>) = all.iter().partition(|p| is_loop(p));
        // Not before it is known which functions are measured after all.
        if parts.len() > 1 && !loops.is_empty() {
            parts = patch::parts(&entries, threads);
            parts.extend(patch::parts(&loops, threads));
        }
        let mut parts = parts.into_iter().peekable();
        while let Some(part) = parts.next() {
            table.patches = part.to_vec();
            standing::leave_out_loops(table, self.linked, &on.refused);
            let which = std::mem::replace(&mut which, Part::Later);
            match self.switch_part_on(pid, table, which, &mut on) {
                Ok(pause) if parts.peek().is_some() => patch::let_run(pause),
                Ok(_) => {}
                Err(e) => {
                    done.sort_by_key(|p| p.at);
                    let failed = std::mem::replace(&mut table.patches, done);
                    self.take_back(pid, table, failed);
                    return Err(e);
                }
            }
            progress::step(part.len());
            done.append(&mut table.patches);
        }
        done.sort_by_key(|p| p.at);
        table.patches = done;
        if let Err(e) = self.fuse(pid, table) {
            self.take_back(pid, table, Vec::new());
            return Err(e);
        }
        Ok(on)
    }

    /// Calls between copies, once all entries are replaced that are going to be.
    fn fuse(&self, pid: i32, table: &mut PatchTable) -> Result<(), LiveError> {
        let is_measured = |site: &u64| table.patches.binary_search_by_key(site, |p| p.at).is_ok();
        table
            .fused
            .retain(|call| call.sites.iter().all(is_measured));
        let slots = fused::slots(&table.fused);
        if slots.is_empty() {
            return Ok(());
        }
        let stopped = hopscope_process::stop_all(pid)?;
        let led = got::lead(&stopped, self.memory, &slots);
        stopped.resume()?;
        led.map(drop)
    }

    /// What was replaced before a part failed, which was put back in its own stop if it could be.
    fn take_back(&self, pid: i32, table: &mut PatchTable, failed: Vec<Patch>) {
        let earlier = match table.patches.is_empty() && table.slots.is_empty() {
            true => Ok(()),
            false => remove::restore(pid, self.memory, table, remove::Origin::Ourselves).map(drop),
        };
        if let Err(e) = earlier {
            log::info!("process {pid}: taking the first entries back: {e}");
        }
        table.patches.extend(failed);
        table.patches.sort_by_key(|p| p.at);
        if !found::is_patched(self.memory, table)
            && let Err(e) = set_state(pid, self.arena, State::Restored)
        {
            log::info!("{e}");
        }
    }

    /// How long the stop was.
    fn switch_part_on(
        &self,
        pid: i32,
        table: &mut PatchTable,
        which: Part,
        on: &mut SwitchedOn,
    ) -> Result<Duration, LiveError> {
        let before = Before::look(pid)?;
        let mut stopped = hopscope_process::stop_all(pid)?;
        let result = self.patch(&mut stopped, table, which, before, on);
        // After a failure gs stays as it is: an entry may still lead into a copy, a thread may have
        // been moved into one. The caller takes everything back once nothing needs it.
        let timing = stopped.resume()?;
        result.map(|()| timing.pause())
    }

    /// Leads the entries of what unwinders ask to what answers for it. Where a thread stands amid the bytes, or a stack
    /// refers to them, once more.
    pub(super) fn answer(&self, pid: i32, lookup: &Prepared) -> Result<(), LiveError> {
        const ATTEMPTS: usize = 5;
        let batch = Batch {
            linked: &lookup.linked,
            contexts: 0,
            rings: 0,
            ..*self
        };
        let mut left = lookup.table.clone();
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let tried = left.patches.clone();
            let mut on = SwitchedOn::default();
            let pause = batch.switch_part_on(pid, &mut left, Part::Later, &mut on)?;
            let done = std::mem::take(&mut left.patches);
            left.patches = tried.into_iter().filter(|p| !done.contains(p)).collect();
            if left.patches.is_empty() {
                return Ok(());
            }
            why = on
                .refused
                .into_iter()
                .map(|(_, why)| why)
                .next()
                .unwrap_or_default();
            patch::let_run(pause.max(MOMENT));
        }
        Err(LiveError::Lookup { pid, why })
    }

    /// Threads that begin later than the first part have their creator's context, which leads to their own.
    fn patch(
        &self,
        stopped: &mut StoppedProcess,
        table: &mut PatchTable,
        which: Part,
        before: Before,
        on: &mut SwitchedOn,
    ) -> Result<(), LiveError> {
        let pid = stopped.pid();
        let Left {
            moves,
            refused,
            partly_searched,
            running,
        } = self.leave_out_sites(stopped, table, before)?;
        on.refused.extend(refused);
        on.partly_searched = on.partly_searched.max(partly_searched);
        on.running.led.extend(running.led);
        on.running.not_led.extend(running.not_led);

        let first = !matches!(which, Part::Later);
        match which {
            Part::First(mut contexts) => {
                // Threads first: a patched entry with gs base 0 would fault. Contexts without patches
                // are harmless.
                contexts.give(stopped, table)?;
                on.threads = contexts.offer_rest(stopped, table)?;
            }
            Part::FirstAdded => contexts::all_have_one(stopped, table)?,
            Part::Later => {}
        }
        if first {
            set_state(pid, self.arena, State::Patched)?;
        }
        // Into a copy only with gs set: its probes read through it.
        for (tid, rip) in moves {
            stopped.set_rip(tid, rip)?;
        }
        fault::point(fault::STATE_PATCHED);
        fault::failure(fault::STATE_PATCHED)
            .map_err(LiveError::io(pid, "writing the patch table"))?;
        let failed =
            || fault::failure(fault::PATCHED).map_err(LiveError::io(pid, "writing to its code"));
        // With the first part: a copy's probes need nothing but gs.
        let slots = match first {
            true => &table.slots[..],
            false => &[],
        };
        let result = got::lead(stopped, self.memory, slots)
            .and_then(|_| patch::write(stopped, self.memory, &table.patches, Direction::Replace))
            .and_then(|written| failed().map(|()| written));
        fault::point(fault::PATCHED);
        match result {
            Ok(written) => {
                let left_out = written.left_out;
                let gone =
                    standing::leave_out_written(table, self.linked, left_out, standing::GONE);
                on.refused.extend(gone);
                Ok(())
            }
            Err(e) => {
                // Some runs may have been written.
                failed()?;
                // Each whether the other can be or not.
                let slots = got::give_back(stopped, self.memory, slots);
                patch::write(stopped, self.memory, &table.patches, Direction::Restore)?;
                slots?;
                Err(e)
            }
        }
    }

    /// Where threads that stand in bytes about to change must go. A site that a stack word points into (the
    /// interrupted place of a running signal handler) is left out, and so is one whose module is gone.
    fn leave_out_sites(
        &self,
        stopped: &StoppedProcess,
        table: &mut PatchTable,
        mut before: Before,
    ) -> Result<Left, LiveError> {
        let pid = stopped.pid();
        let mut moves = Vec::new();
        let failed = || LiveError::io(pid, "reading its memory map");
        let sites = table.patches.iter().map(|p| p.at);
        let gone = standing::moved_away(pid, sites, self.mappings, &before.maps);
        let gone = gone.map_err(failed())?;
        let slots = table.slots.iter().map(|slot| slot.at);
        let gone_slots = standing::moved_away(pid, slots, self.mappings, &before.maps);
        let gone_slots: HashSet<u64> = gone_slots.map_err(failed())?.into_iter().collect();
        table.slots.retain(|slot| !gone_slots.contains(&slot.at));
        let mut refused = standing::leave_out(table, self.linked, gone, standing::GONE);
        let (first, last) = (table.patches.first(), table.patches.last());
        let span = first.map_or(0, |p| p.at)..last.map_or(0, |p| p.at + 5);
        let mut busy: Vec<u64> = Vec::new();
        let mut loops = Loops::of(self.linked, &span);
        let (mut budget, mut partly_searched) = (STACKS_AT_MOST, 0);
        for tid in stopped.tids() {
            let rip = stopped.regs(tid).rip;
            loops.see(rip);
            if let Some(site) = site::site_around(&table.patches, rip) {
                let at = table.patches[site].at;
                let entries = self.linked.iter().flat_map(|l| &l.entries);
                let moved = entries
                    .filter(|e| e.patch_at == at)
                    .flat_map(|e| &e.moved)
                    .find(|(from, _)| *from == rip);
                match moved {
                    Some((_, to)) => moves.push((tid, *to)),
                    None => busy.push(at),
                }
            }
            let at_most = budget.max(STACK_AT_LEAST);
            let stack = &mut before.stack;
            let whole = stopped.read_stack(tid, &before.mappings, self.memory, at_most, stack)?;
            budget = budget.saturating_sub(stack.len() as u64);
            partly_searched += usize::from(!whole);
            if !whole {
                loops.see_all();
            }
            for word in stack.chunks_exact(8) {
                let word = u64::from_le_bytes(word.try_into().expect("8 bytes"));
                loops.see(word);
                // Nearly every word lies outside.
                if !span.contains(&word) {
                    continue;
                }
                if let Some(site) = site::site_around(&table.patches, word) {
                    busy.push(table.patches[site].at);
                }
            }
        }
        let running = loops.leave_out_idle(table);
        let reason = "a thread was executing the bytes that the jmp replaces; try again";
        refused.extend(standing::leave_out(table, self.linked, busy, reason));
        Ok(Left {
            moves,
            refused,
            partly_searched,
            running,
        })
    }
}
