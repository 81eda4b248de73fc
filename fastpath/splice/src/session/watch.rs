//! Who takes part, and who must not: what the kernel's faults forbid, look after look.
use super::Say;
use super::error::SessionError;
use super::kernel::{Kernel, allows, refusal};
use crate::cgroup;
use crate::programs::{Accelerator, Incompatibility, Options, RingUsers, SpliceError};
use crate::readers::{self, Judge, Reason};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Looks at the programs of groups, again and again: each once, and once more when it has loaded something.
pub(super) struct Watch {
    groups: Vec<PathBuf>,
    seen: HashMap<u32, String>,
    judge: Judge,
    /// Processes that take no part, and programs of which that was said.
    refused: HashSet<u32>,
    said: HashSet<String>,
    /// Programs that were said to share connections between threads.
    sharing: HashSet<String>,
    uses_known: HashSet<(String, Incompatibility)>,
    rings: RingUsers,
    said_of_rings: HashSet<String>,
    is_needed: bool,
    hurts_sharing: bool,
    allowed: Vec<String>,
    say: Say,
}

impl Watch {
    pub(super) fn new(options: &Options, kernel: &Kernel, say: Say) -> Watch {
        Watch {
            groups: options.cgroups.clone(),
            seen: HashMap::new(),
            judge: Judge::default(),
            refused: HashSet::new(),
            said: HashSet::new(),
            sharing: HashSet::new(),
            uses_known: HashSet::new(),
            rings: RingUsers::default(),
            said_of_rings: HashSet::new(),
            is_needed: kernel.hurts_fionread,
            hurts_sharing: kernel.hurts_sharing,
            allowed: options.allowed.clone(),
            say,
        }
    }

    /// Refuses to begin where a program that would hang already listens for these connections. An interpreter's are
    /// left out once they are accepted, which is before they join unless they do so at once.
    pub(super) fn begin(&mut self, options: &Options) -> Result<Vec<String>, SessionError> {
        let mut refused = Vec::new();
        for (pid, found) in self.look() {
            if allows(&self.allowed, &found.name) {
                continue;
            }
            let listens = readers::listening_ports(pid);
            let bitten = |port: &u16| options.ports.is_empty() || options.ports.contains(port);
            let is_left_out = found.depends_on_script && !options.blocking;
            if !is_left_out && listens.iter().any(bitten) {
                let why = refusal(&found);
                return Err(SessionError::Listens { pid, why });
            }
            self.refused.insert(pid);
            refused.push(found.name);
        }
        Ok(refused)
    }

    /// Has the sockets of programs that came meanwhile, and would hang, take no part.
    pub(super) fn again(&mut self, accelerator: &Accelerator) -> Result<(), SpliceError> {
        for (pid, found) in self.look() {
            if allows(&self.allowed, &found.name) {
                continue;
            }
            accelerator.refuse(&found.name)?;
            self.refused.insert(pid);
            if self.said.insert(found.name.clone()) {
                (self.say)(format_args!("process {pid}, {}", refusal(&found)));
            }
        }
        self.look_for_incompatible_uses(accelerator)?;
        self.look_for_rings(accelerator)?;
        self.again_sharing(accelerator)
    }

    /// Has programs take no part any more that let one thread send and another one wait on one
    /// connection. Those that are joined stay so.
    fn again_sharing(&mut self, accelerator: &Accelerator) -> Result<(), SpliceError> {
        for found in accelerator.take_sharing()? {
            if !self.hurts_sharing || allows(&self.allowed, &found.name) {
                continue;
            }
            accelerator.refuse(&found.name)?;
            if let Some(listener) = found.listener {
                accelerator.refuse_listener(listener)?;
            }
            if self.sharing.insert(found.name.clone()) {
                (self.say)(format_args!(
                    "process {}, {}: one thread sends on a connection while another waits for it; \
                     recv may fail with EAGAIN there, and its further connections are plain TCP (hopscope \
                     check splice; --allow {} if it tries again)",
                    found.pid, found.name, found.name
                ));
            }
        }
        Ok(())
    }

    /// Says what keeps connections on TCP, once for each program. What a program's calls say of one connection is
    /// true of its others: these are released.
    fn look_for_incompatible_uses(&mut self, accelerator: &Accelerator) -> Result<(), SpliceError> {
        for found in accelerator.take_incompatible_uses()? {
            let is_call = matches!(found.what, Incompatibility::Call(_));
            if is_call && !found.what.is_peek() && !allows(&self.allowed, &found.name) {
                self.refused.insert(found.pid);
            }
            let (pid, name, what) = (found.pid, found.name, found.what);
            if self.uses_known.insert((name.clone(), what)) {
                let whose = if what.is_peek() {
                    "its connections that are not redirected yet are plain TCP"
                } else if is_call {
                    "its connections are plain TCP"
                } else {
                    "such connections are plain TCP"
                };
                (self.say)(format_args!("process {pid}, {name}, {what}: {whose}"));
            }
        }
        Ok(())
    }

    /// The kernel programs keep such connections on TCP by themselves; what they cannot see is a socket that another
    /// process gave away, or that waits to be accepted.
    fn look_for_rings(&mut self, accelerator: &Accelerator) -> Result<(), SpliceError> {
        let found = accelerator.ring_users()?;
        let groups = &self.groups;
        let processes = || {
            let pids = groups.iter().flat_map(|group| cgroup::all_below(group));
            pids.collect::<Vec<u32>>()
        };
        for user in self.rings.update(found, processes) {
            if self.said_of_rings.insert(user.name.clone()) {
                (self.say)(format_args!(
                    "process {}, {}, has an io_uring: its connections are plain TCP, since IORING_OP_SEND_ZC fails on \
                     redirected ones (--allow {} if it does not use that)",
                    user.pid, user.name, user.name
                ));
            }
        }
        Ok(())
    }

    /// Of all groups.
    pub(super) fn processes(&self) -> Vec<u32> {
        let groups = self.groups.iter();
        groups.flat_map(|group| cgroup::all_below(group)).collect()
    }

    fn look(&mut self) -> Vec<(u32, Reason)> {
        let mut found = Vec::new();
        if !self.is_needed {
            return found;
        }
        let pids: HashSet<u32> = self.processes().into_iter().collect();
        for pid in &pids {
            // It may have ended.
            let Ok(stamp) = readers::stamp(*pid) else {
                continue;
            };
            if self.seen.get(pid) == Some(&stamp) {
                continue;
            }
            self.seen.insert(*pid, stamp);
            // It may be another program than before.
            self.refused.remove(pid);
            if let Ok(Some(reason)) = self.judge.process(*pid) {
                found.push((*pid, reason));
            }
        }
        let is_here = |pid: &u32| pids.contains(pid);
        self.seen.retain(|pid, _| is_here(pid));
        self.refused.retain(is_here);
        found
    }

    /// Inodes of the sockets of processes that take no part: also those that were joined before that was known.
    pub(super) fn refused_sockets(&self) -> HashSet<u64> {
        let pids = self.refused.iter().copied().chain(self.rings.pids());
        pids.flat_map(readers::sockets).collect()
    }
}
