//! Context switches of whole processes: a ring for each processor, into which the events of all
//! their threads write. The kernel follows new threads by itself.
use super::perf_event::{Event, INHERIT_THREAD, Ring, Said, Switch};
use hopscope_process::fd_reserve;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;

/// With its first page as much as a user without privileges may lock for each processor
/// (perf_event_mlock_kb, 516 KiB): 13,107 switches.
const DATA_PAGES: usize = 128;

#[derive(Debug, thiserror::Error)]
pub enum SwitchesError {
    #[error("cannot read the online CPUs from /sys: {0}")]
    Processors(io::Error),
    #[error(
        "the kernel refuses a perf event for the threads of process {pid}: {source}{}",
        hint(source)
    )]
    Open { pid: i32, source: io::Error },
    #[error(
        "the kernel refuses the memory for perf events: {source}{}",
        hint(source)
    )]
    Map { source: io::Error },
}

fn hint(error: &io::Error) -> &'static str {
    use nix::libc::{EACCES, EMFILE, ENOENT, ENOSYS, EPERM};
    match error.raw_os_error() {
        Some(EACCES) => "; run as root, with CAP_PERFMON, or: sysctl kernel.perf_event_paranoid=2",
        Some(EPERM) => "; raise RLIMIT_MEMLOCK or: sysctl kernel.perf_event_mlock_kb=2064",
        Some(EMFILE) => "; one descriptor is needed for each thread and processor (ulimit -n)",
        Some(ENOENT | ENOSYS) => "; this kernel or sandbox has no perf events",
        _ => "",
    }
}

pub struct Switches {
    rings: Vec<Ring>,
    /// Events that write into the rings of others.
    _events: Vec<Event>,
    /// Thread that an event was opened for.
    opened: HashMap<u64, i32>,
    threads: HashSet<i32>,
    forks: bool,
}

impl Switches {
    /// Begins to record the switches of all threads that `pids` have and will have, with `forks` also of children that they
    /// fork.
    ///
    /// # Errors
    /// When any processor or thread would not be covered: half of the switches are worse than none.
    pub fn of(pids: &[i32], forks: bool) -> Result<Switches, SwitchesError> {
        fd_reserve::raise_limit();
        let online = fs::read_to_string("/sys/devices/system/cpu/online");
        let cpus = cpus(&online.map_err(SwitchesError::Processors)?);
        let mut switches = Switches {
            rings: Vec::new(),
            _events: Vec::new(),
            opened: HashMap::new(),
            threads: HashSet::new(),
            forks,
        };
        for pid in pids {
            switches.add_process(*pid, &cpus)?;
        }
        Ok(switches)
    }

    /// Threads made meanwhile by a thread not yet opened are found by looking again.
    fn add_process(&mut self, pid: i32, cpus: &[i32]) -> Result<(), SwitchesError> {
        loop {
            let tids = threads_of(pid);
            let new: Vec<i32> = tids
                .into_iter()
                .filter(|tid| !self.threads.contains(tid))
                .collect();
            if new.is_empty() {
                return Ok(());
            }
            for tid in new {
                self.threads.insert(tid);
                for (place, cpu) in cpus.iter().enumerate() {
                    self.add(pid, tid, *cpu, place)?;
                }
            }
        }
    }

    fn add(&mut self, pid: i32, tid: i32, cpu: i32, place: usize) -> Result<(), SwitchesError> {
        let refused = |source| SwitchesError::Open { pid, source };
        let event = match open(tid, cpu, self.forks) {
            Ok(event) => event,
            // The thread is gone.
            Err(e) if e.raw_os_error() == Some(nix::libc::ESRCH) => return Ok(()),
            Err(e) => return Err(refused(e)),
        };
        self.opened.insert(event.id, tid);
        match self.rings.get(place) {
            Some(ring) => {
                event.write_into(ring.event()).map_err(refused)?;
                self._events.push(event);
            }
            None => {
                let ring = Ring::map(event, DATA_PAGES);
                let ring = ring.map_err(|source| SwitchesError::Map { source })?;
                self.rings.push(ring);
            }
        }
        Ok(())
    }

    /// Takes what the rings hold, ring after ring: not in order of time.
    pub fn read(&mut self, out: &mut Vec<Switch>) {
        let from = out.len();
        for ring in &mut self.rings {
            ring.read(out);
        }
        // A thread that was opened by itself and by inheritance says everything twice.
        let (opened, threads) = (&self.opened, &self.threads);
        let mut kept = from;
        for at in from..out.len() {
            let is_own = match out[at].said {
                Said::Out { tid, .. } | Said::Back { tid } => {
                    !threads.contains(&tid) || opened.get(&out[at].event) == Some(&tid)
                }
                Said::Lost { .. } => true,
            };
            if is_own {
                out[kept] = out[at];
                kept += 1;
            }
        }
        out.truncate(kept);
    }
}

fn open(tid: i32, cpu: i32, forks: bool) -> io::Result<Event> {
    if forks {
        return Event::open(tid, cpu, 0);
    }
    let first = Event::open(tid, cpu, INHERIT_THREAD);
    match &first {
        // Linux before 5.13. Switches of forked children come too, and are nobody's here.
        Err(e) if e.raw_os_error() == Some(nix::libc::EINVAL) => Event::open(tid, cpu, 0),
        _ => first,
    }
}

fn threads_of(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .collect()
}

/// `0-3,8` as in /sys/devices/system/cpu/online.
fn cpus(text: &str) -> Vec<i32> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.parse().ok()?..=to.parse().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(cpus("0-1\n"), [0, 1]);
        assert_eq!(cpus("0,2-4,7"), [0, 2, 3, 4, 7]);
    }
}
