//! What leads into copies, while a target is measured: slots that are bound are led, functions are left out.
use super::error::LiveError;
use super::got;
use super::install::Installed;
use super::led_slot::GotPatch;
use super::remove;
use super::site::Patch;
use hopscope_event::FunctionId;
use std::collections::HashSet;

impl Installed {
    /// Leads what the dynamic linker has bound since the last look, all in one stop. How many.
    ///
    /// # Errors
    /// The process could not be stopped, or its GOT not be written.
    pub fn lead_slots(&self) -> Result<usize, LiveError> {
        if self.restored || !got::open(&self.memory, &self.slots) {
            return Ok(0);
        }
        let stopped = hopscope_process::stop_all(self.pid)?;
        let led = got::lead(&stopped, &self.memory, &self.slots);
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
