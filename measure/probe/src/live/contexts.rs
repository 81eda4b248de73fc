//! Which thread has which context: written, and the gs base set, while the thread is stopped.
use super::error::LiveError;
use super::table::PatchTable;
use crate::memory::SharedWords;
use hopscope_event::layout::{Context, ring_header_offset};
use hopscope_event::ring::Pool;
use hopscope_process::memory::TargetMemory;
use hopscope_process::{StoppedProcess, fault, procfs};
use std::collections::BTreeMap;

/// With more threads than this each gets its context in a short stop of its own, so that the stop
/// of all is shorter; with fewer, one stop less is worth more.
const ONE_BY_ONE_FROM: usize = 16;

pub(super) struct Contexts<'a> {
    memory: &'a TargetMemory,
    words: &'a SharedWords,
    /// The context behind the last is the spare one.
    contexts: usize,
    /// So many rings may be given away.
    rings: usize,
    given: BTreeMap<i32, u32>,
    /// Every thread that has a gs base of ours, the spare one included.
    set: BTreeMap<i32, u64>,
    next: u32,
}

/// Whether every thread has a context of the recording that copies are added to.
///
/// # Errors
/// The first one that has none: a probe would read through whatever its gs base is.
pub(super) fn all_have_one(stopped: &StoppedProcess, table: &PatchTable) -> Result<(), LiveError> {
    let pid = stopped.pid();
    let without = stopped.tids().into_iter().find_map(|tid| {
        let gs_base = stopped.regs(tid).gs_base;
        (!table.contexts.contains(gs_base)).then_some((tid, gs_base))
    });
    match without {
        Some((tid, gs_base)) => Err(LiveError::GsInUse { pid, tid, gs_base }),
        None => Ok(()),
    }
}

impl<'a> Contexts<'a> {
    pub(super) fn new(
        pid: i32,
        memory: &'a TargetMemory,
        words: &'a SharedWords,
        (contexts, rings): (usize, usize),
        table: &PatchTable,
    ) -> Result<Contexts<'a>, LiveError> {
        let all = Contexts {
            memory,
            words,
            contexts,
            rings,
            given: BTreeMap::new(),
            set: BTreeMap::new(),
            next: 0,
        };
        let spare = Context {
            pool: table.pool.at,
            ..Context::default()
        };
        all.write(pid, table, contexts as u32, &spare)?;
        Ok(all)
    }

    /// Gives the threads of a process with many of them their contexts, each in its own stop.
    pub(super) fn give_one_by_one(
        &mut self,
        pid: i32,
        table: &PatchTable,
    ) -> Result<(), LiveError> {
        let tids = procfs::threads(pid).map_err(LiveError::io(pid, "listing its threads"))?;
        if tids.len() <= ONE_BY_ONE_FROM {
            return Ok(());
        }
        hopscope_process::stop_each(pid, &tids, |stopped| self.give(stopped, table))
    }

    /// Gives each stopped thread its context, if it has none.
    pub(super) fn give(
        &mut self,
        stopped: &mut StoppedProcess,
        table: &PatchTable,
    ) -> Result<(), LiveError> {
        let pid = stopped.pid();
        let mut new = Vec::new();
        for tid in stopped.tids() {
            let regs = stopped.regs(tid);
            let (gs_base, fs_base) = (regs.gs_base, regs.fs_base);
            if self.set.get(&tid) == Some(&gs_base) {
                continue;
            }
            // A thread that one of ours has created since has its creator's.
            if gs_base != 0 && !table.contexts.contains(gs_base) {
                return Err(LiveError::GsInUse { pid, tid, gs_base });
            }
            let mut owner = [0u8; 8];
            let readable = fs_base != 0 && self.memory.read(fs_base, &mut owner).is_ok();
            if !readable || owner == [0; 8] {
                return Err(LiveError::NoThreadPointer { pid, tid });
            }
            new.push((tid, u64::from_le_bytes(owner)));
        }
        for (tid, owner) in new {
            let context = self.context_for(pid, tid, owner, table)?;
            let at = table.contexts.at + (context as usize * size_of::<Context>()) as u64;
            stopped.set_gs_base(tid, at)?;
            self.set.insert(tid, at);
            fault::point(fault::SET_GS);
        }
        Ok(())
    }

    fn context_for(
        &mut self,
        pid: i32,
        tid: i32,
        owner: u64,
        table: &PatchTable,
    ) -> Result<u32, LiveError> {
        let n = self.next;
        let ring = self.pool(table).ring(n as usize);
        let Some(ring) = ring.filter(|_| (n as usize) < self.rings) else {
            return Ok(self.contexts as u32);
        };
        ring.set_owner(owner, tid);
        let at = ring_header_offset(n as usize, table.ring_records_log2);
        let context = Context {
            owner,
            ring: table.pool.at + at as u64,
            pool: table.pool.at,
            ..Context::default()
        };
        self.write(pid, table, n, &context)?;
        self.next += 1;
        self.given.insert(tid, n);
        Ok(n)
    }

    /// Every thread is stopped and has what it gets: what is left is for threads to come. Gives the
    /// threads that have a ring, and its number.
    pub(super) fn offer_rest(
        mut self,
        stopped: &StoppedProcess,
        table: &PatchTable,
    ) -> Result<Vec<(i32, u32)>, LiveError> {
        let alive = stopped.tids();
        let gone = self.given.keys();
        let gone = gone.filter(|tid| alive.binary_search(tid).is_err());
        let gone: Vec<i32> = gone.copied().collect();
        let pool = self.pool(table);
        let mut free: Vec<u32> = (self.next..self.rings as u32).collect();
        for tid in gone {
            let Some(n) = self.given.remove(&tid) else {
                continue;
            };
            self.write(stopped.pid(), table, n, &Context::default())?;
            if let Some(ring) = pool.ring(n as usize) {
                ring.set_owner(0, 0);
            }
            free.push(n);
        }
        for n in free {
            pool.offer(n);
        }
        Ok(self.given.into_iter().collect())
    }

    fn pool(&self, table: &PatchTable) -> Pool<'a> {
        Pool::new(self.words.words(), self.contexts, table.ring_records_log2)
            .expect("mapped with these sizes")
    }

    fn write(
        &self,
        pid: i32,
        table: &PatchTable,
        n: u32,
        context: &Context,
    ) -> Result<(), LiveError> {
        let words = [context.owner, context.ring, context.pool, 0, 0, 0, 0, 0];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let at = table.contexts.at + (n as usize * size_of::<Context>()) as u64;
        self.memory
            .write(at, &bytes)
            .map_err(LiveError::io(pid, "writing the contexts"))
    }
}
