//! Counters of threads: opened at the attach, and of threads that come later whenever the target is looked at.
use super::Target;
use crate::live::LiveError;
use crate::recorder::owner::Owner;
use hopscope_process::{AttachError, procfs};

/// Reasons in a note.
const NAMED_AT_MOST: usize = 3;

/// What became of opening them.
#[derive(Debug, Default)]
pub(super) struct Opening {
    opened: u64,
    failed: u64,
    /// Of those that failed, each once.
    why: Vec<String>,
}

impl Opening {
    fn because(&mut self, why: String) {
        if self.why.len() < NAMED_AT_MOST && !self.why.contains(&why) {
            self.why.push(why);
        }
    }
}

impl Target {
    /// Opens the counters of threads that have a ring and none yet; those of forked children are not.
    pub(super) fn open_counters(&mut self) {
        if self.installed.table.counters.is_empty() {
            return;
        }
        let own = self.installed.pid;
        // Its main thread, which is to make the calls, waits for a vforked child or the like: rings are not to wait with it.
        if procfs::state(own, own) == 'D' {
            return;
        }
        let rings = self.rings.iter_mut().enumerate();
        let new: Vec<(u32, i32)> = rings
            .filter(|(_, ring)| ring.in_use && !ring.counted)
            .filter_map(|(context, ring)| match ring.owner? {
                Owner::Thread { pid, tid, .. } if pid == own => {
                    ring.counted = true;
                    Some((context as u32, tid))
                }
                _ => None,
            })
            .collect();
        if new.is_empty() {
            return;
        }
        let done = self.installed.open_counters(&new);
        let is_alive = self.is_alive();
        let opening = &mut self.opening;
        match done {
            Ok(failed) => {
                opening.opened += (new.len() - failed.len()) as u64;
                opening.failed += failed.len() as u64;
                failed.into_iter().for_each(|why| opening.because(why));
            }
            // A target that is gone is found out elsewhere.
            Err(_) if !is_alive => {}
            // It can be stopped later.
            Err(LiveError::Attach(
                AttachError::Frozen { .. }
                | AttachError::DoesNotStop { .. }
                | AttachError::AnotherHopscope { .. }
                | AttachError::NoUsableThread { .. },
            )) => {
                for (context, _) in new {
                    self.rings[context as usize].counted = false;
                }
            }
            Err(e) => {
                opening.failed += new.len() as u64;
                opening.because(e.to_string());
            }
        }
    }

    /// What the user should know of it.
    pub(in crate::recorder) fn note_counters(&self) -> Option<String> {
        let Opening {
            opened,
            failed,
            why,
        } = &self.opening;
        let pid = self.installed.pid;
        (*failed > 0).then(|| {
            format!(
                "process {pid}: the counters of {failed} threads could not be opened ({opened} were): {}; their calls are measured without",
                why.join("; ")
            )
        })
    }
}
