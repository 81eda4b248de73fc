//! One process after the other restored.
use super::restore::{How, restore, take_away};
use crate::error::{Result, in_one_line, refuse};
use hopscope_probe::live::found::{self, Found};
use hopscope_probe::live::table::{PatchTable, State};
use hopscope_probe::live::{LiveError, leftover};
use hopscope_process::AttachError;
use hopscope_process::memory::TargetMemory;
use hopscope_process::procfs;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Cleaning process after process. Whatever one of them holds, the others are seen to.
pub(super) struct Clean<'a> {
    /// Only what this recorder left; `None`: what any left that is gone.
    of: Option<i32>,
    output: Option<&'a Path>,
    how: How,
    /// Most of what is looked at now is none of ours to restore, and needs no word.
    pub strangers: bool,
    pub failed: usize,
    /// What is restored, and cannot be taken away before somebody thaws the process.
    pub frozen: usize,
    /// Arenas whose records are saved, or that had none.
    salvaged: Vec<u64>,
    /// Tables of what was added to recordings while they ran: names of records in their rings.
    added: Vec<PatchTable>,
}

/// Whether it is still mapped: the guardian of a recorder that was killed just now takes it away, too.
fn is_there(found: &Found) -> bool {
    let now = found::in_process(found.pid);
    now.iter()
        .any(|now| now.inode == found.inode && now.header == found.header)
}

/// What decides about the order. The table itself is read again when its turn has come: it may be
/// large, and children that share it may be many.
struct Seen<'a> {
    found: &'a Found,
    target: i32,
    retired: bool,
}

impl<'a> Clean<'a> {
    pub(super) fn new(of: Option<i32>, output: Option<&'a Path>, how: How) -> Clean<'a> {
        Clean {
            of,
            output,
            how,
            strangers: false,
            failed: 0,
            frozen: 0,
            salvaged: Vec::new(),
            added: Vec::new(),
        }
    }

    fn fail(&mut self, pid: i32, why: impl std::fmt::Display) {
        self.failed += 1;
        crate::status::say!("process {pid}: {why}");
    }

    pub(super) fn all(&mut self, found: &[Found]) {
        let mut unused = BTreeSet::new();
        // Each is finished before the next table is read: what another user's process wrote there
        // takes time, and keeps none of those before it from being restored.
        let mut arenas: Vec<Option<Vec<&Found>>> = by_arena(found).into_iter().map(Some).collect();
        for n in 0..arenas.len() {
            let Some(arena) = arenas[n].take() else {
                continue;
            };
            // What was added to it writes into its rings, and goes first.
            for other in arenas[n + 1..].iter_mut() {
                if let Some(added) = other.take_if(|other| is_added(other, &arena)) {
                    self.arena(added, &mut unused);
                }
            }
            self.arena(arena, &mut unused);
        }
        for pid in unused {
            match take_away(pid, &self.how) {
                Ok(()) => {}
                Err(LiveError::Attach(AttachError::Frozen { .. })) => {
                    self.frozen += 1;
                    crate::status::say!(
                        "process {pid} is frozen by its control group: unused copies stay mapped; run this once it is thawed"
                    );
                }
                Err(e) => self.fail(pid, e),
            }
        }
    }

    /// In all processes that share it; those where it lies unused already are noted.
    fn arena(&mut self, arena: Vec<&Found>, unused: &mut BTreeSet<i32>) {
        let mut seen: Vec<Seen> = arena.into_iter().filter_map(|f| self.look(f)).collect();
        // The process that was attached to first: its restoration covers its forked children.
        seen.sort_by_key(|s| (s.found.pid != s.target, s.found.pid));
        for s in seen.iter().filter(|s| !s.retired) {
            if let Err(e) = self.one(s.found)
                && is_there(s.found)
            {
                self.fail(s.found.pid, in_one_line(&e));
            }
        }
        unused.extend(seen.iter().filter(|s| s.retired).map(|s| s.found.pid));
    }

    /// `None` for what is not to be cleaned.
    fn look<'f>(&mut self, found: &'f Found) -> Option<Seen<'f>> {
        let Ok(memory) = TargetMemory::open(found.pid) else {
            // Gone meanwhile, or not ours to touch.
            let there = std::fs::exists(format!("/proc/{}/maps", found.pid)).unwrap_or(false);
            if there && self.of.is_none() {
                self.fail(found.pid, "no permission to restore it");
            }
            return None;
        };
        let (table, state) = match found.table(&memory) {
            Ok(read) => read,
            Err(e) if self.strangers || !is_there(found) => {
                log::info!("process {}: {e}", found.pid);
                return None;
            }
            Err(e) => {
                self.fail(found.pid, e);
                return None;
            }
        };
        if self.of.is_some_and(|recorder| table.recorder != recorder) {
            return None;
        }
        if !found.belongs(&table) {
            self.fail(found.pid, LiveError::NotExecuted { pid: found.pid });
            return None;
        }
        Some(Seen {
            found,
            target: table.target,
            retired: leftover::is_retired(&table, state),
        })
    }

    fn one(&mut self, f: &Found) -> Result<()> {
        let now = found::in_process(f.pid);
        let Some(f) = now.iter().find(|now| now.inode == f.inode) else {
            return Ok(()); // went with its parent
        };
        let memory = TargetMemory::open(f.pid)?;
        let (table, state) = f.table(&memory)?;
        if self.of.is_none() && found::recorder_alive(&table) {
            refuse!(
                "is being recorded by hopscope, pid {}; stop that one instead",
                table.recorder
            );
        }
        // Before the first byte changed there was nothing to record.
        let has_records = state != State::Prepared && table.pool.len > 0 && !table.shares_rings;
        let has_records = has_records && !self.salvaged.contains(&f.inode);
        let path = self
            .output
            .filter(|_| has_records)
            .map(|path| match self.salvaged.len() {
                0 => path.to_owned(),
                n => path.with_extension(format!("{n}.hop")),
            });
        if !table.shares_rings {
            self.salvaged.push(f.inode);
        }
        let frozen = {
            let is_of_it =
                |added: &&PatchTable| added.pool == table.pool && added.target == table.target;
            let added: Vec<&PatchTable> = self.added.iter().filter(is_of_it).collect();
            let output = path.as_deref().map(|path| (path, &added[..]));
            restore(f, &memory, (&table, state), output, &self.how)?
        };
        if table.shares_rings {
            self.added.push(table);
        }
        self.frozen += usize::from(frozen);
        Ok(())
    }
}

/// Whether what lies in `other` was added to a recording in a process that has `arena`, too.
fn is_added(other: &[&Found], arena: &[&Found]) -> bool {
    let both = other.iter().find(|o| arena.iter().any(|f| f.pid == o.pid));
    both.is_some_and(|f| TargetMemory::open(f.pid).is_ok_and(|memory| f.is_added(&memory)))
}

/// Those that share an arena together. First those of root and of this user, who have nothing to
/// gain, then by the size of what is to be read.
fn by_arena(found: &[Found]) -> Vec<Vec<&Found>> {
    let us = nix::unistd::geteuid().as_raw();
    let mut arenas: BTreeMap<u64, Vec<&Found>> = BTreeMap::new();
    for f in found {
        arenas.entry(f.inode).or_default().push(f);
    }
    let mut arenas: Vec<_> = arenas.into_values().collect();
    arenas.sort_by_cached_key(|arena| {
        let uid = |f: &&Found| procfs::uid(f.pid);
        let trusted = arena
            .iter()
            .filter_map(uid)
            .all(|uid| uid == 0 || uid == us);
        let bytes = arena.iter().filter_map(|f| f.header).map(|h| h.len).max();
        (!trusted, bytes, arena[0].pid)
    });
    arenas
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_probe::live::table::Area;

    /// The larger a table is, the longer the others would wait for it.
    #[test]
    fn those_that_share_an_arena_come_together_and_small_ones_first() {
        let found = |pid, inode, len| Found {
            pid,
            inode,
            header: Some(Area { at: 0x1000, len }),
            code: Vec::new(),
        };
        let us = std::process::id() as i32;
        let all = [
            found(us, 7, 1 << 30),
            found(us, 8, 4096),
            found(us + 1, 7, 1 << 30),
        ];
        let order = by_arena(&all);
        let inodes: Vec<Vec<u64>> = order
            .iter()
            .map(|arena| arena.iter().map(|f| f.inode).collect())
            .collect();
        assert_eq!(inodes, [vec![8], vec![7, 7]]);
    }
}
