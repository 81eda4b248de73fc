//! What leads into copies, while a target is measured: slots that are bound are led, entries in which others set a breakpoint
//! are given back, functions are left out.
use super::breakpoints;
use super::error::LiveError;
use super::fused::FusedCall;
use super::got;
use super::install::Installed;
use super::led_slot::GotPatch;
use super::remove;
use super::site::Patch;
use super::standing::{self, Loads};
use hopscope_event::FunctionId;
use hopscope_process::{maps, procfs};
use std::collections::HashSet;
use std::fs::File;

/// Names in one note.
const NAMED_AT_MOST: usize = 5;

impl Installed {
    /// Gives entries back in which another tool has set a breakpoint: the function runs on unmeasured.
    pub fn give_back_breakpoints(&mut self) {
        if self.restored {
            return;
        }
        let found = self.breakpoints.look(&self.memory, &self.table.patches);
        if found.is_empty() {
            return;
        }
        let name = |patch: &Patch| {
            let at = self.sites.binary_search_by_key(&patch.at, |(at, _)| *at);
            let function = self.table.function(self.sites[at.ok()?].1)?;
            Some(function.name.clone())
        };
        let named: Vec<_> = found.iter().take(NAMED_AT_MOST).filter_map(name).collect();
        let more = match found.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (pid, names) = (self.pid, named.join(", ") + &more);
        let fused = self.fused_with(|site| found.iter().any(|p| p.at == site));
        match breakpoints::give_back(pid, &self.memory, &found, &fused) {
            Ok(pause) => {
                // They stay in the table: a forked child may still have our jump there.
                self.breakpoints.gave_back(&found);
                self.notes.push(format!(
                    "process {pid}: {names}: measured only until another tool set a breakpoint there (a uprobe of perf or bpftrace, or a debugger's); stopped for {:.0} µs to restore them",
                    pause.as_secs_f64() * 1e6
                ));
            }
            // Tried again at the next look; a target that is gone is found out elsewhere.
            Err(e) => log::debug!("process {pid}: {names}: {e}"),
        }
    }

    /// Leads what the dynamic linker has bound since the last look, all in one stop. How many.
    ///
    /// # Errors
    /// The process could not be stopped, or its GOT not be written.
    pub fn lead_slots(&self) -> Result<usize, LiveError> {
        if self.restored || !got::open(&self.memory, &self.slots) {
            return Ok(0);
        }
        let pid = self.pid;
        let failed = || LiveError::io(pid, "reading its memory map");
        let mappings = maps::read(pid).map_err(failed())?;
        let maps = File::open(format!("/proc/{}/maps", procfs::memory_holder(pid)));
        let maps = maps.map_err(failed())?;
        // Another module may lie where these were by now, and have the same words there, which say other functions.
        let mut loads = Loads::new(pid, &mappings);
        let load = |slot: &GotPatch| self.slot_loads.get(&slot.at).copied();
        let there = self.slots.iter().filter(|slot| loads.has(load(slot)));
        let mut there: Vec<GotPatch> = there.copied().collect();
        if !got::open(&self.memory, &there) {
            return Ok(0);
        }
        let stopped = hopscope_process::stop_all(pid)?;
        let sites = there.iter().map(|slot| slot.at);
        let moved = standing::moved_away(pid, sites, &mappings, &maps);
        let led = moved.map_err(failed()).and_then(|moved| {
            there.retain(|slot| !moved.contains(&slot.at));
            got::lead(&stopped, &self.memory, &there)
        });
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
        let some = remove::Part {
            patches: &patches,
            slots: &slots,
            fused: &self.fused_with(|site| theirs.contains(&site)),
        };
        remove::restore_some(self.pid, &self.memory, some)
    }

    /// Words of calls between copies whose functions have, one or both, such a site.
    fn fused_with(&self, is_one: impl Fn(u64) -> bool) -> Vec<GotPatch> {
        let fused = self.table.fused.iter();
        let theirs = fused.filter(|call| call.sites.iter().any(|site| is_one(*site)));
        theirs.map(FusedCall::slot).collect()
    }
}
