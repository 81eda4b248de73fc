//! A target that was attached to is restored, whatever becomes of its recording.
use super::error::LiveError;
use super::found;
use super::install::Installed;
use super::leftover;
use super::remove::{self, Arena, Detached, Extent, Origin};
use super::table::State;
use hopscope_process::memory::TargetMemory;
use hopscope_process::{AttachError, fd_reserve, stop_times};

/// Attempts to put the entries back, each of some seconds, where a thread does not stop.
const RESTORES_AT_MOST: usize = 5;

impl Installed {
    /// Restores the target and the children that it forked, and takes away what was mapped.
    ///
    /// # Errors
    /// It is not restored; dropping this tries once more.
    pub fn detach(&mut self) -> Result<Detached, LiveError> {
        let mut done = self.restore()?;
        self.take_away(&mut done)?;
        Ok(done)
    }

    /// Its first part: no call of its own is measured any more, but for those that run in copies.
    ///
    /// # Errors
    /// It is not restored.
    pub fn restore(&mut self) -> Result<Detached, LiveError> {
        let _lent = fd_reserve::lend();
        let (pid, memory, table) = (self.pid, &self.memory, &self.table);
        let own = Origin::Ourselves;
        let restored = || remove::restore_own(pid, memory, table, State::Patched, own);
        let mut attempt = restored();
        // A thread that cannot be stopped now can be later: nobody stands still meanwhile.
        for _ in 1..RESTORES_AT_MOST {
            if matches!(
                &attempt,
                Err(LiveError::Attach(AttachError::DoesNotStop { .. }))
            ) {
                attempt = restored();
            }
        }
        self.restored = attempt.is_ok();
        attempt
    }

    /// Its second part, of a target that is restored.
    ///
    /// # Errors
    /// Its table cannot be written: what is mapped stays.
    pub fn take_away(&self, done: &mut Detached) -> Result<(), LiveError> {
        let _lent = fd_reserve::lend();
        let (pid, memory, table) = (self.pid, &self.memory, &self.table);
        remove::restore_children(pid, table, self.arena_inode, done);
        self.set_state(State::Restored)?;
        let arena = Arena::Held(&self.arena);
        let reaping =
            remove::reap_noted(pid, memory, table, arena, Extent::Limited, &mut done.notes);
        done.pause = done.pause.max(reaping.pause);
        done.frozen |= reaping.frozen;
        Ok(())
    }

    /// Whether its rings and contexts are not needed any more: it is unmapped, or its copies stay without probes.
    pub fn is_taken_away(&self) -> bool {
        let mut found = found::in_process(self.pid).into_iter();
        let own = found.find(|f| f.inode == self.arena_inode && f.header.is_some());
        own.is_none_or(|own| {
            let table = own.table(&self.memory);
            table.is_ok_and(|(table, state)| leftover::is_retired(&table, state))
        })
    }

    /// What is left of it in children that it forked, for which it is taken away like from itself; all of it where it has
    /// ended.
    pub fn take_children_away(&self) -> Detached {
        let _lent = fd_reserve::lend();
        let (pid, table, arena) = (self.pid, &self.table, Arena::Held(&self.arena));
        let mut done = Detached::default();
        if !self.is_alive() {
            remove::restore_children(pid, table, self.arena_inode, &mut done);
            if let Err(e) = self.set_state(State::Restored) {
                done.notes.push(e.to_string());
            }
        }
        let found = found::everywhere().into_iter();
        for child in found.filter(|f| f.inode == self.arena_inode && f.pid != pid) {
            let Ok(memory) = TargetMemory::open(child.pid) else {
                continue;
            };
            // Where its parent's copies were disarmed for good, its rings went, too.
            if memory.read(table.pool.at, &mut [0u8]).is_ok() {
                let notes = &mut done.notes;
                let limited = Extent::Limited;
                let reaping = remove::reap_noted(child.pid, &memory, table, arena, limited, notes);
                done.frozen |= reaping.frozen;
            }
        }
        done
    }

    /// Whether the measured program still runs (not exited, not replaced by exec).
    pub fn is_alive(&self) -> bool {
        let mut byte = [0u8];
        let at = self.table.contexts.at;
        self.memory.read(at, &mut byte).is_ok()
    }
}

/// An error between the attach and the end of the recording, or a panic.
impl Drop for Installed {
    fn drop(&mut self) {
        if self.restored || !self.is_alive() {
            return;
        }
        let pid = self.pid;
        match self.detach() {
            Ok(done) => log::warn!(
                "process {pid}: {} functions restored; the recording ended early",
                done.restored
            ),
            Err(_) if !self.is_alive() => {}
            Err(e) => {
                log::error!(
                    "process {pid} could not be restored: {e}; run: hopscope detach -p {pid}"
                );
            }
        }
        stop_times::take(pid);
    }
}
