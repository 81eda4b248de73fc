//! Who takes part, and who must not: what the kernel's faults and other people's programs forbid.
use super::args::Common;
use anyhow::{bail, ensure};
use hopscope_splice::cgroup;
use hopscope_splice::interpreters;
use hopscope_splice::programs::{
    Accelerator, Incompatibility, Options, RingUsers, SpliceError, Spoil, policies,
};
use hopscope_splice::readers::{self, Judge, Reason};
use hopscope_splice::trial::{self, TrialResult, Weight};
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What this kernel allows, found out on connections of our own.
pub(super) struct Kernel {
    /// Programs that ask FIONREAD would hang.
    pub hurts_fionread: bool,
    /// A thread that waits in recv is woken, and told EAGAIN, when another one may send.
    pub hurts_sharing: bool,
}

impl Kernel {
    pub(super) fn try_out() -> anyhow::Result<Kernel> {
        let (mut hurts_fionread, mut hurts_sharing) = (false, false);
        for case in trial::deciding()? {
            let why = match &case.outcome {
                TrialResult::Ok(_) => continue,
                TrialResult::Broken(why) | TrialResult::Unknown(why) => why,
            };
            match case.weight {
                Weight::Vital => bail!(
                    "this kernel fails the test {} ({why}): {}; no connection is accelerated (see hopscope check splice)",
                    case.name,
                    case.means
                ),
                Weight::Fionread => hurts_fionread = true,
                Weight::Shared => hurts_sharing = true,
                Weight::Said | Weight::Waits => {}
            }
        }
        Ok(Kernel {
            hurts_fionread,
            hurts_sharing,
        })
    }

    fn must_refuse(&self, found: &Reason, common: &Common) -> bool {
        self.hurts_fionread && !common.allows(&found.name)
    }

    /// Programs that are refused by name, whenever they come.
    pub(super) fn refused(&self, common: &Common) -> Vec<String> {
        let known = readers::KNOWN.iter().map(|name| (*name).to_owned());
        if self.hurts_fionread {
            known.filter(|name| !common.allow.contains(name)).collect()
        } else {
            Vec::new()
        }
    }

    /// Interpreters: their scripts may ask.
    fn refused_versions(&self, common: &Common) -> Vec<String> {
        let known = interpreters::NAMES.iter().map(|name| (*name).to_owned());
        if self.hurts_fionread {
            known.filter(|name| !common.allow.contains(name)).collect()
        } else {
            Vec::new()
        }
    }

    /// Refuses a command by its program's file. What an interpreter runs may start others, and ask nothing: only
    /// its own connections stay on TCP.
    pub(super) fn judge_command(&self, program: &Path, common: &Common) -> anyhow::Result<()> {
        if let Some(found) = readers::judge_file(program)?
            && self.must_refuse(&found, common)
            && !found.depends_on_script
        {
            bail!("{}", refusal(&found));
        }
        Ok(())
    }
}

fn refusal(found: &Reason) -> String {
    let allowed_if = if found.depends_on_script {
        "they do not"
    } else {
        "it only asks of other files"
    };
    format!(
        "{}: {}, which this kernel answers wrongly at joined sockets: it could wait for ever, \
         and is not joined (hopscope check splice; --allow {} if {allowed_if})",
        found.name, found.why, found.name
    )
}

/// Threads are known to the kernel programs by their numbers in the first PID namespace.
pub(super) fn check_pair(common: &Common) -> anyhow::Result<()> {
    /// PROC_PID_INIT_INO, include/linux/proc_ns.h
    const FIRST: u64 = 0xEFFF_FFFC;
    let own = std::fs::metadata("/proc/self/ns/pid").map(|found| found.ino())?;
    ensure!(
        !common.pair || own == FIRST,
        "--pair has to be started outside of containers: threads have other numbers in this PID namespace"
    );
    Ok(())
}

pub(super) fn options(common: &Common, cgroups: Vec<PathBuf>, kernel: &Kernel) -> Options {
    Options {
        cgroups,
        ports: common.port.clone(),
        connections: common.connections,
        limit_bytes: common.limit as u64,
        guard: !common.no_guard,
        verify: common.verify,
        blocking: common.blocking,
        across_users: common.across_users,
        pair: common.pair,
        spoil: Spoil {
            change_each: common.change_each,
            lose_each: common.lose_each,
        },
        refused: kernel.refused(common),
        refused_versions: kernel.refused_versions(common),
        allowed: common.allow.clone(),
        watches_calls: true,
    }
}

/// Programs of others that would not see what takes the short cut: not without being asked.
pub(super) fn ask_about_policies(groups: &[PathBuf], common: &Common) -> anyhow::Result<()> {
    for group in groups {
        let found = policies(group)?;
        if found.is_empty() || common.yes {
            continue;
        }
        let words = found.iter().map(|policy| {
            let ids: Vec<String> = policy.programs.iter().map(u32::to_string).collect();
            format!("{} (program {})", policy.what, ids.join(", "))
        });
        bail!(
            "BPF programs of others watch {} of {}: bytes that take the short cut pass them by; \
             say --yes if that is meant",
            words.collect::<Vec<_>>().join(" and "),
            group.display()
        );
    }
    Ok(())
}

/// Said whenever an accelerator starts.
pub(super) fn say_what_is_not_seen() {
    log::warn!(
        "bytes that take the short cut are no packets: captures, firewall and conntrack counters, and \
         TCP_INFO do not see them"
    );
}

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
}

impl Watch {
    pub(super) fn new(groups: Vec<PathBuf>, kernel: &Kernel) -> Watch {
        Watch {
            groups,
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
        }
    }

    /// Refuses to begin where a program that would hang already listens for these connections. An interpreter's are
    /// left out once they are accepted, which is before they join unless they do so at once.
    pub(super) fn begin(&mut self, common: &Common) -> anyhow::Result<Vec<String>> {
        let mut refused = Vec::new();
        for (pid, found) in self.look() {
            if common.allows(&found.name) {
                continue;
            }
            let listens = readers::listening_ports(pid);
            let bitten = |port: &u16| common.port.is_empty() || common.port.contains(port);
            let is_left_out = found.depends_on_script && !common.blocking;
            ensure!(
                is_left_out || !listens.iter().any(bitten),
                "process {pid}, {}",
                refusal(&found)
            );
            self.refused.insert(pid);
            refused.push(found.name);
        }
        Ok(refused)
    }

    /// Has the sockets of programs that came meanwhile, and would hang, take no part.
    pub(super) fn again(
        &mut self,
        accelerator: &Accelerator,
        common: &Common,
    ) -> Result<(), SpliceError> {
        for (pid, found) in self.look() {
            if common.allows(&found.name) {
                continue;
            }
            accelerator.refuse(&found.name)?;
            self.refused.insert(pid);
            if self.said.insert(found.name.clone()) {
                crate::status::say!("process {pid}, {}", refusal(&found));
            }
        }
        self.look_for_incompatible_uses(accelerator, common)?;
        self.look_for_rings(accelerator)?;
        self.again_sharing(accelerator, common)
    }

    /// Has programs take no part any more that let one thread send and another one wait on one
    /// connection. Those that are joined stay so.
    fn again_sharing(
        &mut self,
        accelerator: &Accelerator,
        common: &Common,
    ) -> Result<(), SpliceError> {
        for found in accelerator.take_sharing()? {
            if !self.hurts_sharing || common.allows(&found.name) {
                continue;
            }
            accelerator.refuse(&found.name)?;
            if let Some(listener) = found.listener {
                accelerator.refuse_listener(listener)?;
            }
            if self.sharing.insert(found.name.clone()) {
                crate::status::say!(
                    "process {}, {}: one thread sends on a connection while another waits for it; \
                     recv may fail with EAGAIN there, and its further connections are plain TCP (hopscope \
                     check splice; --allow {} if it tries again)",
                    found.pid,
                    found.name,
                    found.name
                );
            }
        }
        Ok(())
    }

    /// Says what keeps connections on TCP, once for each program. What a program's calls say of one connection is
    /// true of its others: these are released.
    fn look_for_incompatible_uses(
        &mut self,
        accelerator: &Accelerator,
        common: &Common,
    ) -> Result<(), SpliceError> {
        for found in accelerator.take_incompatible_uses()? {
            let is_call = matches!(found.what, Incompatibility::Call(_));
            if is_call && !common.allows(&found.name) {
                self.refused.insert(found.pid);
            }
            let (pid, name, what) = (found.pid, found.name, found.what);
            if self.uses_known.insert((name.clone(), what)) {
                let whose = if is_call {
                    "its connections are plain TCP"
                } else {
                    "such connections are plain TCP"
                };
                crate::status::say!("process {pid}, {name}, {what}: {whose}");
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
            let pids = groups.iter().flat_map(|group| all_below(group));
            pids.collect::<Vec<u32>>()
        };
        for user in self.rings.update(found, processes) {
            if self.said_of_rings.insert(user.name.clone()) {
                crate::status::say!(
                    "process {}, {}, has an io_uring: its connections are plain TCP, since IORING_OP_SEND_ZC fails on \
                     redirected ones (--allow {} if it does not use that)",
                    user.pid,
                    user.name,
                    user.name
                );
            }
        }
        Ok(())
    }

    /// Of all groups.
    pub(super) fn processes(&self) -> Vec<u32> {
        let groups = self.groups.iter();
        groups.flat_map(|group| all_below(group)).collect()
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

/// Processes of a group and of those below it.
pub(super) fn all_below(group: &Path) -> Vec<u32> {
    let mut found = cgroup::processes(group).unwrap_or_default();
    for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(all_below(&entry.path()));
        }
    }
    found
}
