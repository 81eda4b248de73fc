//! Stopping threads so that neither they nor anybody who waits for them can tell.
use super::AttachError;
use super::cgroup;
use super::fault;
use super::memory::TargetMemory;
use super::procfs;
use super::ptrace::{self, Waited};
use super::remote;
use super::restart_syscall;
use super::rt_priority::RealTime;
use super::seize::{self, seize, seize_in_turn};
use super::stall_warning;
use super::stop_timeout::{Others, StopTimeout};
use super::stopped::{StoppedProcess, Thread};
use crate::maps;
use nix::libc;
use std::io;
use std::time::{Duration, Instant};

/// Stops every thread, including those created meanwhile. One in uninterruptible sleep (a thread that waits for its
/// vforked child, a file system that does not answer) is waited for while all others run; so is one that gets no processor
/// since others have a higher priority.
pub fn stop_all(pid: i32) -> Result<StoppedProcess, AttachError> {
    let mut timeout = StopTimeout::new();
    let mut asleep = procfs::threads(pid).map_err(|_| AttachError::Exited { pid })?;
    let mut starved = Vec::new();
    loop {
        // Seen out of it once is enough: who reads a disk is in it again at once.
        asleep.retain(|tid| procfs::state(pid, *tid) == 'D');
        let stopped = match asleep.first() {
            None => stop_all_now(pid, &starved),
            Some(&tid) => Err(AttachError::DoesNotStop {
                pid,
                tid,
                state: 'D',
            }),
        };
        match stopped {
            Err(AttachError::DoesNotStop {
                tid, state: 'D', ..
            }) if timeout.wait_running() => {
                if asleep.is_empty() {
                    asleep.push(tid);
                }
                if timeout.is_noticed() {
                    stall_warning::warn_once(pid, tid);
                }
            }
            Err(AttachError::DoesNotStop {
                tid, state: 'R', ..
            }) if !starved.contains(&tid) => {
                starved.push(tid);
                let is_ready = |late: &i32| procfs::running_on(pid, *late).is_some();
                starved.extend(seize::late().into_iter().filter(is_ready));
            }
            // Its stops are short, and nothing is held here that it could wait for.
            Err(AttachError::AnotherHopscope { .. }) if timeout.wait_running() => {}
            // Frozen by the first version of control groups.
            Err(AttachError::DoesNotStop { .. }) if cgroup::is_frozen(pid) => {
                return Err(AttachError::Frozen { pid });
            }
            stopped => return stopped,
        }
    }
}

/// For threads that no listing has, which run on or are about to end: of these some do not, and are not waited for.
const LOOKS_AT_MOST: u32 = 200;
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);

/// First `starved` ones, which other threads do not wait for.
fn stop_all_now(pid: i32, starved: &[i32]) -> Result<StoppedProcess, AttachError> {
    let mut stopped = StoppedProcess::new(pid);
    let (mut first, mut looks) = (true, 0);
    loop {
        let tids = procfs::threads(pid).map_err(|_| AttachError::Exited { pid })?;
        let listed = tids.clone();
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
            stopped.interrupt(&seized, Others::Stopped)?;
            return Err(e);
        }
        if seized.is_empty() {
            looks += 1;
            if stopped.has_all(&listed) {
                break;
            }
            if looks == LOOKS_AT_MOST {
                log::warn!(
                    "process {pid}: the kernel counts more threads than it lists; those that are not ending run on"
                );
                break;
            }
            // One that is about to end needs a processor for it.
            std::thread::sleep(BETWEEN_LOOKS);
            continue;
        }
        fault::point(fault::SEIZED);
        if !std::mem::take(&mut first) {
            // They are few, and may be gone soon, with others in their place.
            stopped.interrupt(&seized, Others::Stopped)?;
            continue;
        }
        let (first, seized): (Vec<i32>, Vec<i32>) =
            seized.into_iter().partition(|tid| starved.contains(tid));
        let first_stopped = stopped.interrupt(&first, Others::Run);
        // Who sleeps may have to wait for a processor until it can stop: who runs does not wait for it.
        let runs = |tid: &i32| procfs::running_on(pid, *tid).is_some();
        let (running, asleep): (Vec<i32>, Vec<i32>) = match seized.len() {
            0 | 1 => (Vec::new(), seized),
            _ => seized.into_iter().partition(runs),
        };
        let whose = match running.is_empty() {
            true => &asleep,
            false => &running,
        };
        stopped.raise_own_priority(whose);
        stopped.first_interrupt = Instant::now();
        let asleep = stopped.interrupt(&asleep, Others::Stopped);
        stopped.interrupt(&running, Others::Stopped)?;
        asleep?;
        first_stopped?;
        stopped.first_resumed = running;
    }
    if stopped.threads.is_empty() {
        return Err(AttachError::Exited { pid });
    }
    stopped.all_stopped = Instant::now();
    fault::point(fault::ALL_STOPPED);
    Ok(stopped)
}

/// Stops these threads one after the other, each for as long as `with` takes.
pub fn stop_each<E: From<AttachError>>(
    pid: i32,
    tids: &[i32],
    mut with: impl FnMut(&mut StoppedProcess) -> Result<(), E>,
) -> Result<(), E> {
    // For all of them: changing it costs more than a stop.
    let _real_time = RealTime::begin(pid, tids);
    for &tid in tids {
        if seize_in_turn(pid, tid)?.is_none() {
            continue;
        }
        let mut stopped = StoppedProcess::new(pid);
        stopped.raise_own_priority(&[]);
        stopped.interrupt(&[tid], Others::Run)?;
        let done = with(&mut stopped);
        stopped.resume()?;
        done?;
    }
    Ok(())
}

/// Stops one thread that can make system calls for us; the others go on.
///
/// # Errors
/// Also when it is frozen: it can be stopped then, and would not come to any call.
pub fn stop_one(pid: i32) -> Result<StoppedProcess, AttachError> {
    if cgroup::is_frozen(pid) {
        return Err(AttachError::Frozen { pid });
    }
    let memory = TargetMemory::open(pid)?;
    // Searched before anything is stopped.
    let gadgets = remote::gadgets(pid, &memory)?;
    let mappings = maps::read(pid).map_err(|source| AttachError::Proc { pid, source })?;
    let mut timeout = StopTimeout::new();
    loop {
        if let Some(mut stopped) = stop_first_usable(pid)? {
            stopped.gadgets = Some(gadgets);
            stopped.mappings = Some(mappings);
            for (tid, thread) in &mut stopped.threads {
                let begun = remote::finish_begun(pid, *tid, &thread.regs, gadgets, &memory)?;
                if let Some(own) = begun {
                    thread.regs = own;
                }
            }
            return Ok(stopped);
        }
        // All of them exit, or wait for a vforked child: soon there is another, or it goes on.
        if !timeout.wait(1) {
            return Err(AttachError::NoUsableThread { pid });
        }
    }
}

fn stop_first_usable(pid: i32) -> Result<Option<StoppedProcess>, AttachError> {
    let mut tids = procfs::threads(pid).map_err(|_| AttachError::NoSuchProcess(pid))?;
    let rank = |state| match state {
        'R' => 0,
        'S' => 1,
        'T' | 't' => 2,
        _ => 3,
    };
    // The safety frame lies in the main thread's stack: nobody but that thread uses it, so it must
    // be the stopped one, or gone.
    match procfs::state(pid, pid) {
        'Z' | 'X' =>
        // A thread changes its state while we sort: look once.
        {
            tids.sort_by_cached_key(|tid| rank(procfs::state(pid, *tid)))
        }
        _ => tids.retain(|tid| *tid == pid),
    }
    for tid in tids {
        if rank(procfs::state(pid, tid)) == 3 || seize_in_turn(pid, tid)?.is_none() {
            continue;
        }
        let mut stopped = StoppedProcess::new(pid);
        stopped.raise_own_priority(&[tid]);
        stopped.interrupt(&[tid], Others::Run)?;
        if !stopped.threads.is_empty() {
            return Ok(Some(stopped));
        }
    }
    Ok(None)
}

impl StoppedProcess {
    /// The kernel ends a listing of threads at one that ends meanwhile (fs/proc/base.c, next_tid): those behind it are not
    /// in it, and run on. It knows how many there are.
    fn has_all(&self, listed: &[i32]) -> bool {
        let others = listed.iter().filter(|tid| !self.threads.contains_key(tid));
        let ended = others.filter(|tid| procfs::state(self.pid, **tid) == 'Z');
        let there = self.threads.len() + ended.count();
        procfs::thread_count(self.pid).is_none_or(|threads| threads <= there)
    }

    /// Interrupts seized threads and waits until each has stopped or is gone.
    fn interrupt(&mut self, tids: &[i32], others: Others) -> Result<(), AttachError> {
        let pid = self.pid;
        let mut waiting: Vec<(i32, Instant)> = Vec::with_capacity(tids.len());
        // One thread's failure is told when all others have stopped, so that they can be let go.
        let mut failed = None;
        for &tid in tids {
            seize::is_awaited(tid);
            let asked = Instant::now();
            match ptrace::interrupt(tid) {
                Ok(()) => waiting.push((tid, asked)),
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
                    // Seized and gone since: reap its status if there is one.
                    let _ = ptrace::poll(tid);
                }
                Err(source) => failed = Some((tid, "interrupt", source)),
            }
        }
        let mut timeout = StopTimeout::new();
        // One after the other: looking at all of them whenever one has stopped takes longer than
        // the stops (half a second for 1,000 threads).
        for (n, &(tid, mut asked)) in waiting.iter().enumerate() {
            loop {
                let looked = Instant::now();
                match self.look(tid, asked) {
                    Ok(true) => break,
                    // It waited for its processor, not for us.
                    Ok(false) if others == Others::Run => asked = looked,
                    Ok(false) => {}
                    Err(source) => {
                        failed = Some((tid, "waiting", source));
                        break;
                    }
                }
                let goes_on = timeout.wait(waiting.len() - n);
                if goes_on && !timeout.is_long() {
                    continue;
                }
                let state = procfs::state(pid, tid);
                let over = match state {
                    // The others wait with it.
                    'D' => true,
                    'R' => timeout.is_starved(others),
                    _ => !goes_on,
                };
                if state == 'R' && timeout.is_noticed() {
                    stall_warning::warn_once_of_no_processor(pid, tid);
                }
                if over {
                    let rest: Vec<i32> = waiting[n..].iter().map(|(tid, _)| *tid).collect();
                    seize::let_go(pid, &rest);
                    return Err(AttachError::DoesNotStop { pid, tid, state });
                }
            }
        }
        match failed {
            None => Ok(()),
            Some((tid, what, source)) => Err(AttachError::ptrace(pid, tid, what)(source)),
        }
    }

    /// True when the thread needs no more waiting.
    fn look(&mut self, tid: i32, asked: Instant) -> io::Result<bool> {
        match ptrace::poll(tid)? {
            Waited::NotYet => Ok(false),
            Waited::Gone => Ok(true),
            Waited::Stopped => {
                let regs = ptrace::regs(tid).and_then(|mut regs| {
                    restart_syscall::ensure(tid, &mut regs)?;
                    Ok(regs)
                });
                match regs {
                    Ok(regs) => {
                        self.threads.insert(tid, Thread { regs, asked });
                    }
                    Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(e) => return Err(e),
                }
                Ok(true)
            }
            // A signal is being delivered: let it, the interrupt stops the thread before the handler's
            // first instruction.
            Waited::Signal(signal) => ptrace::cont_to_interrupt(tid, signal).map(|()| false),
            Waited::SystemCall => ptrace::cont_to_interrupt(tid, 0).map(|()| false),
        }
    }
}

#[cfg(test)]
pub(super) mod signalled;
