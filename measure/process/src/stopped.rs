//! A process that stands still: its registers, system calls made in it, and how it goes on.
use super::AttachError;
use super::code;
use super::fault;
use super::memory::TargetMemory;
use super::ptrace::{self, Regs};
use super::remote::{self, Remote};
use super::rseq;
use super::rt_priority::RealTime;
use super::stop_times;
use crate::maps::{self, Mapping};
use nix::libc;
use std::collections::BTreeMap;
use std::io;
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

/// A stopped thread.
pub(super) struct Thread {
    pub(super) regs: Regs,
    /// When it was asked to stop.
    pub(super) asked: Instant,
}

/// Threads of a process, stopped. Dropping it lets them go on.
pub struct StoppedProcess {
    pub(super) pid: i32,
    pub(super) threads: BTreeMap<i32, Thread>,
    remote: Option<Remote>,
    /// Threads that were running, and wait for us more than those that slept.
    pub(super) first_resumed: Vec<i32>,
    pub(super) gadgets: Option<super::gadget::Gadgets>,
    /// Read before the stop.
    pub(super) mappings: Option<Vec<Mapping>>,
    pub(super) first_interrupt: Instant,
    pub(super) all_stopped: Instant,
    resumed: Instant,
    /// From before the first thread is stopped until after the last is resumed.
    real_time: Option<RealTime>,
}

impl StoppedProcess {
    pub(super) fn new(pid: i32) -> StoppedProcess {
        let now = Instant::now();
        StoppedProcess {
            pid,
            threads: BTreeMap::new(),
            remote: None,
            first_resumed: Vec::new(),
            gadgets: None,
            mappings: None,
            first_interrupt: now,
            all_stopped: now,
            resumed: now,
            real_time: None,
        }
    }

    /// `tids` are about to be stopped.
    pub(super) fn raise_own_priority(&mut self, tids: &[i32]) {
        self.real_time = Some(RealTime::begin(self.pid, tids));
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
        &self.threads[&tid].regs
    }

    pub fn set_rip(&mut self, tid: i32, rip: u64) -> Result<(), AttachError> {
        let pid = self.pid;
        ptrace::set_rip(tid, rip).map_err(AttachError::ptrace(pid, tid, "moving a thread"))?;
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.regs.rip = rip;
        }
        Ok(())
    }

    pub fn set_gs_base(&mut self, tid: i32, gs_base: u64) -> Result<(), AttachError> {
        let pid = self.pid;
        match ptrace::set_gs_base(tid, gs_base) {
            Ok(()) => {}
            // Killed while stopped: nothing left to set.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(source) => {
                return Err(AttachError::ptrace(pid, tid, "setting gs")(source));
            }
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.regs.gs_base = gs_base;
        }
        Ok(())
    }

    /// All registers, those with which it goes on.
    pub(super) fn set_regs(&mut self, tid: i32, regs: Regs) -> io::Result<()> {
        // After a system call they are written when it is resumed.
        if self.remote.as_ref().is_none_or(|r| r.tid() != tid) {
            ptrace::set_regs(tid, &regs)?;
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.regs = regs;
        }
        Ok(())
    }

    /// If we are killed before they are resumed, the process is killed, too.
    pub(super) fn end_with_us(&self) -> io::Result<()> {
        let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
        let mut tids = self.threads.keys();
        tids.try_for_each(|tid| ptrace::set_options(*tid, options))
    }

    /// Writes to code of the target, whatever its kernel thinks of `/proc/PID/mem`.
    pub fn write_code(&self, memory: &TargetMemory, at: u64, bytes: &[u8]) -> io::Result<()> {
        let tid = self.threads.keys().next();
        let tid = *tid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        code::write(tid, memory, at, bytes)
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
        if self.remote.is_none() {
            let memory = TargetMemory::open(self.pid)?;
            let gadgets = match self.gadgets {
                Some(gadgets) => gadgets,
                None => remote::gadgets(self.pid, &memory)?,
            };
            let mappings = match self.mappings.take() {
                Some(mappings) => mappings,
                None => maps::read(self.pid).map_err(|source| AttachError::Proc {
                    pid: self.pid,
                    source,
                })?,
            };
            let (&tid, thread) = self
                .threads
                .iter_mut()
                .next()
                .ok_or(AttachError::Exited { pid: self.pid })?;
            let regs = &mut thread.regs;
            regs.rip = rseq::resume_at(tid, &memory, regs.rip);
            self.remote = Some(Remote::prepare(
                self.pid, tid, *regs, gadgets, &memory, &mappings,
            )?);
        }
        Ok(self.remote.as_ref().expect("was just prepared"))
    }

    /// Reads the live part of a thread's stack, `at_most` bytes of it; false when there was more.
    ///
    /// The map (ascending) is the caller's and may be older than the stop: reading it once for each
    /// of many threads was most of the pause. A stack that it does not have is read as far as it goes.
    pub fn read_stack(
        &self,
        tid: i32,
        mappings: &[Mapping],
        memory: &TargetMemory,
        at_most: u64,
        into: &mut Vec<u8>,
    ) -> Result<bool, AttachError> {
        let pid = self.pid;
        let rsp = self.regs(tid).rsp & !7;
        let after = mappings.partition_point(|m| m.range.start <= rsp);
        let known = after.checked_sub(1).map(|n| &mappings[n]);
        let known = known.filter(|m| m.range.contains(&rsp));
        let live = known.map_or(u64::MAX, |m| m.range.end - rsp);
        into.resize(live.min(at_most) as usize, 0);
        // Several stacks may be one mapping: this one ends where the guard of the next begins.
        let read = match memory.read_up_to(rsp, into) {
            Ok(read) => read,
            // No stack at all.
            Err(_) if known.is_none() => 0,
            Err(source) => return Err(AttachError::Memory { pid, source }),
        };
        let whole = read < into.len() || live <= at_most;
        into.truncate(read);
        Ok(whole)
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
            && let Some(thread) = self.threads.get(&remote.tid())
        {
            result = remote.restore(pid, &thread.regs);
        }
        let mut stops = Vec::with_capacity(self.threads.len());
        let mut threads = std::mem::take(&mut self.threads);
        let first = std::mem::take(&mut self.first_resumed);
        let first: Vec<_> = first
            .into_iter()
            .filter_map(|tid| threads.remove_entry(&tid))
            .collect();
        for (tid, thread) in first.into_iter().chain(threads) {
            match ptrace::detach(tid) {
                Ok(()) => stops.push((tid, thread.asked.elapsed())),
                // Killed meanwhile. Nobody is told of its end before its tracer was.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
                    let _ = ptrace::poll(tid);
                }
                Err(source) => result = Err(AttachError::ptrace(pid, tid, "detach")(source)),
            }
        }
        self.resumed = Instant::now();
        self.real_time = None;
        stop_times::add(pid, &stops);
        result
    }
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        if let Err(e) = self.release() {
            log::warn!("resuming process {}: {e}", self.pid);
        }
    }
}
