//! Switching on: the one stop of all threads in which gs bases are set and entries replaced.
use super::build::Linked;
use super::error::LiveError;
use super::install::set_state;
use super::maps::{self, Mapping};
use super::patch::{self, Direction};
use super::standing::{self, LateRefusals};
use super::table::{PatchTable, State};
use crate::attach::memory::TargetMemory;
use crate::attach::{self, StoppedProcess, fault};
use crate::memory::SharedWords;
use hopscope_event::layout::{Context, POOL_HEADER_BYTES, ring_bytes};
use hopscope_event::ring::Pool;
use std::fs::File;
use std::time::Duration;

/// What the batch stop works with.
pub(super) struct Batch<'a> {
    pub memory: &'a TargetMemory,
    pub linked: &'a [Linked],
    pub arena: &'a File,
    pub words: &'a SharedWords,
    /// As they were when the functions were chosen.
    pub mappings: &'a [Mapping],
    pub contexts: usize,
}

pub(super) struct SwitchedOn {
    /// Threads that got a context: (tid, context).
    pub threads: Vec<(i32, u32)>,
    pub refused: LateRefusals,
    pub pause: Duration,
    /// Threads whose stack was not searched to its end.
    pub partly_searched: usize,
}

struct Switched {
    threads: Vec<(i32, u32)>,
    refused: LateRefusals,
    partly_searched: usize,
}

/// Of each stack this much is searched in any case, of all together [`STACKS_AT_MOST`]: some
/// milliseconds.
const STACK_AT_LEAST: u64 = 256 << 10;
const STACKS_AT_MOST: u64 = 16 << 20;

struct Left {
    /// Threads and the instruction in a copy where each goes on.
    moves: Vec<(i32, u64)>,
    refused: LateRefusals,
    partly_searched: usize,
}

impl Batch<'_> {
    pub(super) fn switch_on(
        &self,
        pid: i32,
        table: &mut PatchTable,
    ) -> Result<SwitchedOn, LiveError> {
        let mut stopped = attach::stop_all(pid)?;
        let result = self.patch(&mut stopped, table);
        // After a failure gs stays as it is: an entry may still lead into a copy, a thread may have
        // been moved into one. The caller takes everything back once nothing needs it.
        let timing = stopped.resume()?;
        let Switched {
            threads,
            refused,
            partly_searched,
        } = result?;
        Ok(SwitchedOn {
            threads,
            refused,
            pause: timing.pause(),
            partly_searched,
        })
    }

    fn patch(
        &self,
        stopped: &mut StoppedProcess,
        table: &mut PatchTable,
    ) -> Result<Switched, LiveError> {
        let pid = stopped.pid();
        let tids = stopped.tids();
        let mut owners = Vec::with_capacity(tids.len());
        for &tid in &tids {
            let regs = stopped.regs(tid);
            let (gs_base, fs_base) = (regs.gs_base, regs.fs_base);
            if gs_base != 0 {
                return Err(LiveError::GsInUse { pid, tid, gs_base });
            }
            let mut owner = [0u8; 8];
            let readable = fs_base != 0 && self.memory.read(fs_base, &mut owner).is_ok();
            if !readable || owner == [0; 8] {
                return Err(LiveError::NoThreadPointer { pid, tid });
            }
            owners.push(u64::from_le_bytes(owner));
        }
        let Left {
            moves,
            mut refused,
            partly_searched,
        } = self.leave_out_sites(stopped, table)?;

        let pool = Pool::new(self.words.words(), self.contexts, table.ring_records_log2)
            .expect("mapped with these sizes");
        let mut contexts = vec![Context::default(); self.contexts + 1];
        let spare = self.contexts;
        contexts[spare].pool = table.pool.at;
        let mut threads = Vec::new();
        for (i, (&tid, &owner)) in tids.iter().zip(&owners).enumerate() {
            let Some(ring) = pool.ring(i) else { break };
            ring.set_owner(owner, tid);
            let at = POOL_HEADER_BYTES + i * ring_bytes(table.ring_records_log2);
            let ring = table.pool.at + at as u64;
            contexts[i] = Context {
                owner,
                ring,
                pool: table.pool.at,
                ..Context::default()
            };
            threads.push((tid, i as u32));
        }
        for free in threads.len()..self.contexts {
            pool.offer(free as u32);
        }
        let bytes: Vec<u8> = contexts
            .iter()
            .flat_map(|c| [c.owner, c.ring, c.pool, 0, 0, 0, 0, 0])
            .flat_map(u64::to_le_bytes)
            .collect();
        self.memory
            .write(table.contexts.at, &bytes)
            .map_err(LiveError::io(pid, "writing the contexts"))?;
        // Threads first: a patched entry with gs base 0 would fault. Contexts without patches are
        // harmless.
        for (i, &tid) in tids.iter().enumerate() {
            let context = i.min(spare);
            stopped.set_gs_base(
                tid,
                table.contexts.at + (context * size_of::<Context>()) as u64,
            )?;
            fault::point(fault::SET_GS);
        }
        // Into a copy only with gs set: its probes read through it.
        for (tid, rip) in moves {
            stopped.set_rip(tid, rip)?;
        }
        set_state(pid, self.arena, State::Patched)?;
        fault::point(fault::STATE_PATCHED);
        fault::failure(fault::STATE_PATCHED)
            .map_err(LiveError::io(pid, "writing the patch table"))?;
        let failed =
            || fault::failure(fault::PATCHED).map_err(LiveError::io(pid, "writing to its code"));
        let result = patch::write(pid, self.memory, &table.patches, Direction::Replace)
            .and_then(|written| failed().map(|()| written));
        fault::point(fault::PATCHED);
        match result {
            Ok(written) => {
                let gone =
                    standing::leave_out(table, self.linked, written.left_out, standing::GONE);
                refused.extend(gone);
                Ok(Switched {
                    threads,
                    refused,
                    partly_searched,
                })
            }
            Err(e) => {
                // Some runs may have been written.
                failed()?;
                patch::write(pid, self.memory, &table.patches, Direction::Restore)?;
                set_state(pid, self.arena, State::Restored)?;
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
    ) -> Result<Left, LiveError> {
        let pid = stopped.pid();
        let mut moves = Vec::new();
        let mappings = maps::read(pid).map_err(LiveError::io(pid, "reading its memory map"))?;
        let gone = standing::moved_away(table, self.mappings, &mappings);
        let mut refused = standing::leave_out(table, self.linked, gone, standing::GONE);
        let mut busy: Vec<u64> = Vec::new();
        let (mut budget, mut partly_searched) = (STACKS_AT_MOST, 0);
        for tid in stopped.tids() {
            let rip = stopped.regs(tid).rip;
            if let Some(site) = patch::site_around(&table.patches, rip) {
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
            let (words, left_out) = stopped.stack_words(tid, &mappings, self.memory, at_most)?;
            budget = budget.saturating_sub(8 * words.len() as u64);
            partly_searched += usize::from(left_out > 0);
            for word in words {
                if let Some(site) = patch::site_around(&table.patches, word) {
                    busy.push(table.patches[site].at);
                }
            }
        }
        let reason = "a thread stood in the bytes the jump replaces; try again";
        refused.extend(standing::leave_out(table, self.linked, busy, reason));
        Ok(Left {
            moves,
            refused,
            partly_searched,
        })
    }
}
