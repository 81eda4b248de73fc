//! Children that a target forks while it is recorded. They run its code, and their threads take rings of its pool; each
//! child is a process of its own in the recording.
use super::numbers::Numbers;
use super::owner::Owner;
use super::sink::Sink;
use crate::live::found;
use crate::live::table::PatchTable;
use hopscope_event::ring::Ring;
use hopscope_event::{ProcessEntry, ProcessIx};
use hopscope_process::memory::TargetMemory;
use hopscope_process::procfs::{self, Status};
use hopscope_process::programs;
use hopscope_trace::TraceError;

pub struct Children {
    parent: i32,
    /// Of the arena, by which they are known.
    inode: u64,
    /// Where they have its table.
    header_at: u64,
    seen: Vec<Child>,
    /// That have called nothing yet: looked for once their parent, and all that have, are gone.
    silent: Vec<TargetMemory>,
    /// Those that there are, and their memory: looked for where an id does not say enough.
    there: Option<Vec<(i32, TargetMemory)>>,
}

struct Child {
    pid: i32,
    /// By which it knows itself.
    inside: i32,
    /// `None`: it was gone before anybody looked.
    started: Option<u64>,
    process: ProcessIx,
    /// Of the program that it was forked with.
    memory: Option<TargetMemory>,
}

/// In place of a command line that nobody saw.
const ENDED: &str = "(a forked child that had ended)";

impl Children {
    pub(super) fn of(table: &PatchTable, inode: u64) -> Children {
        Children {
            parent: table.process.pid,
            inode,
            header_at: table.header.at,
            seen: Vec::new(),
            silent: Vec::new(),
            there: None,
        }
    }

    /// Rings that are claimed by now may be of children that come only now.
    pub(super) fn look_again(&mut self) {
        self.there = None;
    }

    /// Whose ring it is, of whom `context_at` is the context; `None`: that cannot be said yet.
    ///
    /// Ids are those of a child's own pid namespace, and of its parent where it was forked past the C library: the process
    /// is the one in whose memory the context has the ring's owner, which it has in no other.
    pub(super) fn owner(&mut self, ring: &Ring, context_at: u64) -> Option<Owner> {
        let (inside, forked) = (ring.tid(), ring.forked());
        if forked == 0 {
            return Some(Owner::claimed(self.parent, inside));
        }
        let has_it = |memory: &TargetMemory| {
            let mut word = [0u8; 8];
            let read = memory.read(context_at, &mut word).is_ok();
            read && u64::from_le_bytes(word) == ring.owner()
        };
        // Nearly all have the id by which they are listed.
        let listed = Status::read(inside, inside).ok();
        let listed = listed.and_then(|status| status.field("Tgid")?.trim().parse().ok());
        let listed = listed.filter(|pid| *pid != self.parent && self.runs_it(*pid));
        if let Some(pid) = listed
            && TargetMemory::open(pid).is_ok_and(|memory| has_it(&memory))
        {
            return Some(Owner::seen(pid, inside));
        }
        let there = self.there();
        if let Some((pid, _)) = there.iter().find(|(_, memory)| has_it(memory)) {
            return Some(Owner::seen(*pid, thread_of(*pid, inside).unwrap_or(*pid)));
        }
        // It may be about to fill its context.
        let may_be = |(pid, _): &(i32, TargetMemory)| thread_of(*pid, inside).is_some();
        match there.iter().any(may_be) {
            true => None,
            false => Some(Owner::GoneChild {
                pid: forked,
                tid: inside,
            }),
        }
    }

    fn there(&mut self) -> &[(i32, TargetMemory)] {
        let (parent, inode) = (self.parent, self.inode);
        self.there.get_or_insert_with(|| {
            let all = found::everywhere().into_iter();
            let its = all.filter(|f| f.inode == inode && f.pid != parent);
            let memories = its.filter_map(|f| Some((f.pid, TargetMemory::open(f.pid).ok()?)));
            memories.collect()
        })
    }

    fn runs_it(&self, pid: i32) -> bool {
        let found = found::in_process(pid);
        found.iter().any(|f| f.inode == self.inode)
    }

    /// The number of a child, which the sink is told of once. `inside`: the id by which it knows itself; it is gone, and
    /// had that one, where it has no other.
    pub(super) fn process<S: Sink>(
        &mut self,
        pid: Option<i32>,
        inside: i32,
        numbers: &mut Numbers,
        sink: &mut S,
    ) -> Result<ProcessIx, TraceError> {
        let started = pid.and_then(procfs::start_time);
        let is_it = |c: &&Child| match pid {
            Some(pid) => c.pid == pid && c.started == started,
            None => c.inside == inside,
        };
        if let Some(known) = self.seen.iter().rev().find(is_it) {
            return Ok(known.process);
        }
        let process = numbers.process();
        let (comm, command_line) = match started.and(pid) {
            Some(pid) => (programs::comm(pid), programs::command_line(pid)),
            None => (String::new(), vec![ENDED.to_owned()]),
        };
        let shown = pid.unwrap_or(inside);
        sink.process(&ProcessEntry {
            ix: process,
            pid: shown,
            comm,
            command_line,
        })?;
        self.seen.push(Child {
            pid: shown,
            inside,
            started,
            process,
            memory: pid.and_then(|pid| TargetMemory::open(pid).ok()),
        });
        Ok(process)
    }

    /// Its memory, while it runs what its parent ran.
    pub(super) fn memory(&self, pid: i32) -> Option<&TargetMemory> {
        let children = self.seen.iter().rev().filter(|c| c.pid == pid);
        let mut memories = children.filter_map(|c| c.memory.as_ref());
        memories.find(|memory| self.is_its(memory))
    }

    fn is_its(&self, memory: &TargetMemory) -> bool {
        memory.read(self.header_at, &mut [0u8]).is_ok()
    }

    /// Whether any runs what its parent, which is gone, ran.
    pub(super) fn any_is_alive(&mut self) -> bool {
        let seen = self.seen.iter().filter_map(|c| c.memory.as_ref());
        if self
            .silent
            .iter()
            .chain(seen)
            .any(|memory| self.is_its(memory))
        {
            return true;
        }
        let all = found::everywhere().into_iter();
        let its = all.filter(|f| f.inode == self.inode);
        let memories = its.filter_map(|f| TargetMemory::open(f.pid).ok());
        self.silent = memories.collect();
        self.silent.iter().any(|memory| self.is_its(memory))
    }

    /// What the user should know of them.
    pub(super) fn note(&self) -> Option<String> {
        let (first, n) = (self.seen.first()?.pid, self.seen.len());
        let more = match n - 1 {
            0 => String::new(),
            more => format!(" and {more} others"),
        };
        Some(format!(
            "process {}: {n} forked children were measured as processes of their own ({first}{more})",
            self.parent
        ))
    }
}

/// As it is listed.
fn thread_of(pid: i32, inside: i32) -> Option<i32> {
    let tids = procfs::threads(pid).unwrap_or_default();
    let is_it = |tid: &i32| procfs::tid_inside(pid, *tid).is_ok_and(|id| id == inside);
    tids.into_iter().find(is_it)
}
