//! Stopping threads so that neither they nor anybody who waits for them can tell.
use super::AttachError;
use super::fault;
use super::memory::TargetMemory;
use super::proc::{self, Status};
use super::remote::{self, Remote};
use super::rseq;
use super::sys::{self, Regs, Waited};
use super::urgent::Urgent;
use crate::live::maps::Mapping;
use nix::libc;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// A thread that does not stop within this is in uninterruptible sleep; normal stops take
/// microseconds.
const PATIENCE: Duration = Duration::from_secs(3);

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
    pid: i32,
    threads: BTreeMap<i32, Regs>,
    remote: Option<Remote>,
    gadgets: Option<super::gadget::Gadgets>,
    first_interrupt: Instant,
    all_stopped: Instant,
    resumed: Instant,
    urgent: Option<Urgent>,
}

/// Stops every thread, including those created meanwhile.
pub fn stop_all(pid: i32) -> Result<StoppedProcess, AttachError> {
    let mut stopped = StoppedProcess::new(pid);
    let mut first = true;
    loop {
        let tids = proc::threads(pid).map_err(|_| AttachError::Exited { pid })?;
        let new: Vec<i32> = tids
            .into_iter()
            .filter(|t| !stopped.threads.contains_key(t))
            .collect();
        let (mut seized, mut refused) = (Vec::with_capacity(new.len()), None);
        for tid in new {
            match seize(pid, tid) {
                Ok(tid) => seized.extend(tid),
                Err(e) => {
                    refused = Some(e);
                    break;
                }
            }
        }
        if let Some(e) = refused {
            // Only a stopped thread can be let go: stop what is seized, then drop it.
            stopped.interrupt(&seized)?;
            return Err(e);
        }
        if seized.is_empty() {
            break;
        }
        fault::point(fault::SEIZED);
        if std::mem::take(&mut first) {
            stopped.first_interrupt = Instant::now();
        }
        stopped.interrupt(&seized)?;
    }
    if stopped.threads.is_empty() {
        return Err(AttachError::Exited { pid });
    }
    stopped.all_stopped = Instant::now();
    stopped.urgent = Some(Urgent::begin());
    fault::point(fault::ALL_STOPPED);
    Ok(stopped)
}

/// Stops one thread that can make system calls for us; the others go on.
pub fn stop_one(pid: i32) -> Result<StoppedProcess, AttachError> {
    let memory = TargetMemory::open(pid)?;
    // Searched before anything is stopped.
    let gadgets = remote::gadgets(pid, &memory)?;
    let mut patience = Patience::new();
    loop {
        if let Some(mut stopped) = stop_first_usable(pid)? {
            stopped.gadgets = Some(gadgets);
            return Ok(stopped);
        }
        // All of them exit, or wait for a vforked child: soon there is another, or it goes on.
        if !patience.wait() {
            return Err(AttachError::NoUsableThread { pid });
        }
    }
}

fn stop_first_usable(pid: i32) -> Result<Option<StoppedProcess>, AttachError> {
    let mut tids = proc::threads(pid).map_err(|_| AttachError::NoSuchProcess(pid))?;
    let rank = |state| match state {
        'R' => 0,
        'S' => 1,
        'T' | 't' => 2,
        _ => 3,
    };
    // The safety frame lies in the main thread's stack: nobody but that thread uses it, so it must
    // be the stopped one, or gone.
    match proc::state(pid, pid) {
        'Z' | 'X' =>
        // A thread changes its state while we sort: look once.
        {
            tids.sort_by_cached_key(|tid| rank(proc::state(pid, *tid)))
        }
        _ => tids.retain(|tid| *tid == pid),
    }
    for tid in tids {
        if rank(proc::state(pid, tid)) == 3 || seize(pid, tid)?.is_none() {
            continue;
        }
        let mut stopped = StoppedProcess::new(pid);
        stopped.interrupt(&[tid])?;
        if !stopped.threads.is_empty() {
            return Ok(Some(stopped));
        }
    }
    Ok(None)
}

/// `None` when the thread is gone.
fn seize(pid: i32, tid: i32) -> Result<Option<i32>, AttachError> {
    match sys::seize(tid) {
        Ok(()) => Ok(Some(tid)),
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => {
            let status = Status::read(pid, tid);
            match status {
                // An exiting thread refuses too.
                Ok(s) if matches!(s.state(), 'Z' | 'X') => Ok(None),
                Err(_) => Ok(None),
                Ok(s) => {
                    let tracer = s
                        .field("TracerPid")
                        .and_then(|t| t.parse().ok())
                        .unwrap_or(0);
                    Err(if tracer == 0 {
                        AttachError::NoPermission { pid, uid: 0 }
                    } else {
                        AttachError::AlreadyTraced { pid, tracer }
                    })
                }
            }
        }
        Err(source) => Err(AttachError::Ptrace {
            pid,
            tid,
            what: "seize",
            source,
        }),
    }
}

/// Polls with yields first (a stop takes microseconds), then with short sleeps.
struct Patience {
    started: Instant,
    rounds: u32,
}

impl Patience {
    fn new() -> Patience {
        Patience {
            started: Instant::now(),
            rounds: 0,
        }
    }

    /// False when it is over.
    fn wait(&mut self) -> bool {
        self.rounds += 1;
        if self.rounds < 200 {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_micros(50));
        }
        self.started.elapsed() < PATIENCE
    }
}

/// Waits for one stopped-thread event of a remote call.
pub(super) fn wait_for(pid: i32, tid: i32, wanted: Waited) -> Result<(), AttachError> {
    let mut patience = Patience::new();
    loop {
        match sys::poll(tid).map_err(|source| AttachError::Ptrace {
            pid,
            tid,
            what: "waiting",
            source,
        })? {
            w if w == wanted => return Ok(()),
            Waited::Gone => return Err(AttachError::Exited { pid }),
            Waited::NotYet => {
                if !patience.wait() {
                    return Err(AttachError::DoesNotStop {
                        pid,
                        tid,
                        state: proc::state(pid, tid),
                    });
                }
            }
            // SIGSTOP's group stop, or a stop that was pending: go on towards what is wanted.
            Waited::Stopped | Waited::SystemCall => {
                sys::to_syscall(tid).map_err(|source| AttachError::Ptrace {
                    pid,
                    tid,
                    what: "continuing",
                    source,
                })?;
            }
            // Blocked all signals are, but SIGSTOP cannot be: the group stop follows.
            Waited::Signal(signal) => {
                sys::to_syscall_with(tid, signal).map_err(|source| AttachError::Ptrace {
                    pid,
                    tid,
                    what: "continuing",
                    source,
                })?;
            }
        }
    }
}

impl StoppedProcess {
    fn new(pid: i32) -> StoppedProcess {
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

    /// Interrupts seized threads and waits until each has stopped or is gone.
    fn interrupt(&mut self, tids: &[i32]) -> Result<(), AttachError> {
        let pid = self.pid;
        let mut waiting: Vec<i32> = Vec::with_capacity(tids.len());
        // One thread's failure is told when all others have stopped, so that they can be let go.
        let mut failed = None;
        for &tid in tids {
            match sys::interrupt(tid) {
                Ok(()) => waiting.push(tid),
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
                    // Seized and gone since: reap its status if there is one.
                    let _ = sys::poll(tid);
                }
                Err(source) => failed = Some((tid, "interrupt", source)),
            }
        }
        let mut patience = Patience::new();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut still = Vec::new();
            for tid in waiting {
                match self.look(tid) {
                    Ok(true) => {}
                    Ok(false) => still.push(tid),
                    Err(source) => failed = Some((tid, "waiting", source)),
                }
            }
            waiting = still;
            if waiting.len() == before && !patience.wait() {
                let tid = waiting[0];
                let state = proc::state(pid, tid);
                self.let_go(&waiting);
                return Err(AttachError::DoesNotStop { pid, tid, state });
            }
        }
        match failed {
            None => Ok(()),
            Some((tid, what, source)) => Err(AttachError::Ptrace {
                pid,
                tid,
                what,
                source,
            }),
        }
    }

    /// True when the thread needs no more waiting.
    fn look(&mut self, tid: i32) -> io::Result<bool> {
        match sys::poll(tid)? {
            Waited::NotYet => Ok(false),
            Waited::Gone => Ok(true),
            Waited::Stopped => {
                match sys::regs(tid) {
                    Ok(regs) => {
                        self.threads.insert(tid, regs);
                    }
                    Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(e) => return Err(e),
                }
                Ok(true)
            }
            // A signal is being delivered: let it, the interrupt is still pending and stops the
            // thread before the handler's first instruction.
            Waited::Signal(signal) => sys::cont(tid, signal).map(|()| false),
            Waited::SystemCall => sys::cont(tid, 0).map(|()| false),
        }
    }

    /// Threads that were seized and do not stop: detaching needs a stop, so they are asked again
    /// until they give in; a tracer that exits lets go of them in any case.
    fn let_go(&self, tids: &[i32]) {
        for &tid in tids {
            if sys::detach(tid).is_err() {
                log::warn!(
                    "thread {tid} of process {} stays attached until hopscope exits",
                    self.pid
                );
            }
        }
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

    /// Words of the live part of a thread's stack, at most 256 KiB of it.
    ///
    /// The map is the caller's: reading it once for each of many threads was most of the pause.
    pub fn stack_words(
        &self,
        tid: i32,
        mappings: &[Mapping],
        memory: &TargetMemory,
    ) -> Result<Vec<u64>, AttachError> {
        const AT_MOST: u64 = 256 << 10;
        let pid = self.pid;
        let rsp = self.regs(tid).rsp & !7;
        let Some(m) = mappings.iter().find(|m| m.range.contains(&rsp)) else {
            return Ok(Vec::new());
        };
        let mut bytes = vec![0u8; (m.range.end - rsp).min(AT_MOST) as usize];
        memory
            .read(rsp, &mut bytes)
            .map_err(|source| AttachError::Memory { pid, source })?;
        Ok(bytes
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().expect("8 bytes")))
            .collect())
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
        for (tid, regs) in std::mem::take(&mut self.threads) {
            if says_eintr(&regs)
                && let Err(source) = sys::set_rax(tid, ERESTARTNOHAND)
                && source.raw_os_error() != Some(libc::ESRCH)
            {
                result = Err(AttachError::Ptrace {
                    pid,
                    tid,
                    what: "restarting a call",
                    source,
                });
            }
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

/// Some calls say EINTR as soon as they are interrupted, though no signal is there to be handled.
/// With this value the kernel decides, when the thread goes on from its stop: EINTR if it then runs
/// a handler, the same call again if not (`arch_do_signal_or_restart`, arch/x86/kernel/signal.c).
const ERESTARTNOHAND: u64 = -514i64 as u64;

fn says_eintr(regs: &Regs) -> bool {
    // These end with their work done though they say EINTR: a second close may hit a descriptor that
    // another thread has opened since.
    const NEVER_AGAIN: [i64; 4] = [
        libc::SYS_close,
        libc::SYS_dup2,
        libc::SYS_dup3,
        libc::SYS_close_range,
    ];
    let call = regs.orig_rax as i64;
    regs.rax as i64 == -i64::from(libc::EINTR) && call >= 0 && !NEVER_AGAIN.contains(&call)
}

impl Drop for StoppedProcess {
    fn drop(&mut self) {
        if let Err(e) = self.release() {
            log::warn!("letting process {} go on: {e}", self.pid);
        }
    }
}
