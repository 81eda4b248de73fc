//! A process that stands still: its registers, system calls made in it, and how it goes on.
use super::AttachError;
use super::fault;
use super::memory::TargetMemory;
use super::remote::{self, Remote};
use super::rseq;
use super::sys::{self, Regs};
use super::urgent::Urgent;
use crate::live::maps::Mapping;
use nix::libc;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long a process stood still.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub first_interrupt: Instant,
    pub all_stopped: Instant,
    pub resumed: Instant,
}

impl Timing {
    pub fn pause(&self) -> Duration {
        self.resumed - self.first_interrupt
    }
}

/// Threads of a process, stopped. Dropping it lets them go on.
pub struct StoppedProcess {
    pub(super) pid: i32,
    pub(super) threads: BTreeMap<i32, Regs>,
    remote: Option<Remote>,
    pub(super) gadgets: Option<super::gadget::Gadgets>,
    pub(super) first_interrupt: Instant,
    pub(super) all_stopped: Instant,
    resumed: Instant,
    pub(super) urgent: Option<Urgent>,
}

impl StoppedProcess {
    pub(super) fn new(pid: i32) -> StoppedProcess {
        let now = Instant::now();
        StoppedProcess {
            pid,
            threads: BTreeMap::new(),
            remote: None,
            gadgets: None,
            first_interrupt: now,
            all_stopped: now,
            resumed: now,
            urgent: None,
        }
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    pub fn tids(&self) -> Vec<i32> {
        self.threads.keys().copied().collect()
    }

    /// Registers at the stop (with the changes made since).
    ///
    /// # Panics
    /// When `tid` is not one of [`Self::tids`].
    pub fn regs(&self, tid: i32) -> &Regs {
        &self.threads[&tid]
    }

    pub fn set_rip(&mut self, tid: i32, rip: u64) -> Result<(), AttachError> {
        let pid = self.pid;
        sys::set_rip(tid, rip).map_err(|source| AttachError::Ptrace {
            pid,
            tid,
            what: "moving a thread",
            source,
        })?;
        if let Some(regs) = self.threads.get_mut(&tid) {
            regs.rip = rip;
        }
        Ok(())
    }

    pub fn set_gs_base(&mut self, tid: i32, gs_base: u64) -> Result<(), AttachError> {
        let pid = self.pid;
        match sys::set_gs_base(tid, gs_base) {
            Ok(()) => {}
            // Killed while stopped: nothing left to set.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(source) => {
                return Err(AttachError::Ptrace {
                    pid,
                    tid,
                    what: "setting gs",
                    source,
                });
            }
        }
        if let Some(regs) = self.threads.get_mut(&tid) {
            regs.gs_base = gs_base;
        }
        Ok(())
    }

    /// Makes a system call in the first stopped thread. Raw kernel return value.
    pub fn remote_call(&mut self, nr: i64, args: [u64; 6]) -> Result<i64, AttachError> {
        let pid = self.pid;
        self.remote()?.call(pid, nr, args)
    }

    /// Address of a copy of `text` (at most 63 bytes) in the target, good for the next call.
    pub fn remote_text(&mut self, text: &str) -> Result<u64, AttachError> {
        let pid = self.pid;
        let memory = TargetMemory::open(pid)?;
        self.remote()?.text(pid, &memory, text)
    }

    fn remote(&mut self) -> Result<&Remote, AttachError> {
        // The target's thread may need our processor for the call.
        self.urgent = None;
        if self.remote.is_none() {
            let memory = TargetMemory::open(self.pid)?;
            let gadgets = match self.gadgets {
                Some(gadgets) => gadgets,
                None => remote::gadgets(self.pid, &memory)?,
            };
            let (&tid, regs) = self
                .threads
                .iter_mut()
                .next()
                .ok_or(AttachError::Exited { pid: self.pid })?;
            regs.rip = rseq::resume_at(tid, &memory, regs.rip);
            self.remote = Some(Remote::prepare(self.pid, tid, *regs, gadgets, &memory)?);
        }
        Ok(self.remote.as_ref().expect("was just prepared"))
    }

    /// Words of the live part of a thread's stack, `at_most` bytes of it, and how many bytes of it
    /// were left out.
    ///
    /// The map is the caller's: reading it once for each of many threads was most of the pause.
    pub fn stack_words(
        &self,
        tid: i32,
        mappings: &[Mapping],
        memory: &TargetMemory,
        at_most: u64,
    ) -> Result<(Vec<u64>, u64), AttachError> {
        let pid = self.pid;
        let rsp = self.regs(tid).rsp & !7;
        let Some(m) = mappings.iter().find(|m| m.range.contains(&rsp)) else {
            return Ok((Vec::new(), 0));
        };
        let live = m.range.end - rsp;
        let mut bytes = vec![0u8; live.min(at_most) as usize];
        // Several stacks may be one mapping: this one ends where the guard of the next begins.
        let read = memory
            .read_up_to(rsp, &mut bytes)
            .map_err(|source| AttachError::Memory { pid, source })?;
        let left_out = match read == bytes.len() {
            true => live - read as u64,
            false => 0,
        };
        let words = bytes[..read]
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")));
        Ok((words.collect(), left_out))
    }

    /// Lets all threads go on as if nothing had happened.
    pub fn resume(mut self) -> Result<Timing, AttachError> {
        fault::point(fault::RESUMING);
        let result = self.release();
        let timing = Timing {
            first_interrupt: self.first_interrupt,
            all_stopped: self.all_stopped,
            resumed: self.resumed,
        };
        result.map(|()| timing)
    }

    fn release(&mut self) -> Result<(), AttachError> {
        let pid = self.pid;
        let mut result = Ok(());
        if let Some(remote) = self.remote.take()
            && let Some(regs) = self.threads.get(&remote.tid())
        {
            result = remote.restore(pid, regs);
        }
        self.urgent.get_or_insert_with(Urgent::begin);
        for tid in std::mem::take(&mut self.threads).into_keys() {
            match sys::detach(tid) {
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                Err(source) => {
                    result = Err(AttachError::Ptrace {
                        pid,
                        tid,
                        what: "detach",
                        source,
                    })
                }
            }
        }
        self.resumed = Instant::now();
        self.urgent = None;
        result
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        if let Err(e) = self.release() {
            log::warn!("letting process {} go on: {e}", self.pid);
        }
    }
}
