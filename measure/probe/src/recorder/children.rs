//! Children that a target forks while it is recorded. They run its code, and their threads take rings of its pool; each
//! child is a process of its own in the recording.
use super::numbers::Numbers;
use super::owner::{self, Owner};
use super::sink::Sink;
use crate::live::found;
use crate::live::table::PatchTable;
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
    /// A thread's own id is not the one by which it is listed.
    nested: bool,
    seen: Vec<Child>,
    /// That have called nothing yet: looked for once their parent, and all that have, are gone.
    silent: Vec<TargetMemory>,
}

struct Child {
    pid: i32,
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
            nested: owner::is_nested(table.process.pid),
            seen: Vec::new(),
            silent: Vec::new(),
        }
    }

    /// Whose ring it is, by the id that its thread has for itself; `forked`: by that of the child, 0 in the parent.
    pub(super) fn owner(&self, inside: i32, forked: i32) -> Owner {
        match (forked, inside) {
            (0, _) => Owner::claimed(self.parent, inside),
            (..0, _) | (_, 0) => Owner::Unknown,
            _ => match self.find(inside) {
                Some((pid, tid)) => Owner::seen(pid, tid),
                // The thread has ended, or the child: by its own number then, which nobody else knows it by either.
                None => Owner::Thread {
                    pid: self.find(forked).map_or(forked, |(pid, _)| pid),
                    tid: inside,
                    started: None,
                },
            },
        }
    }

    /// Process and thread, as they are listed.
    fn find(&self, inside: i32) -> Option<(i32, i32)> {
        if !self.nested {
            let pid = Status::read(inside, inside).ok()?;
            let pid: i32 = pid.field("Tgid")?.trim().parse().ok()?;
            return self.runs_it(pid).then_some((pid, inside));
        }
        let all = found::everywhere().into_iter();
        let all = all.filter(|f| f.inode == self.inode && f.pid != self.parent);
        let mut threads = all.flat_map(|f| {
            let tids = procfs::threads(f.pid).unwrap_or_default();
            tids.into_iter().map(move |tid| (f.pid, tid))
        });
        threads.find(|(pid, tid)| procfs::tid_inside(*pid, *tid).is_ok_and(|id| id == inside))
    }

    fn runs_it(&self, pid: i32) -> bool {
        let found = found::in_process(pid);
        pid != self.parent && found.iter().any(|f| f.inode == self.inode)
    }

    /// The number of a child, which the sink is told of once.
    pub(super) fn process<S: Sink>(
        &mut self,
        pid: i32,
        numbers: &mut Numbers,
        sink: &mut S,
    ) -> Result<ProcessIx, TraceError> {
        let started = procfs::start_time(pid).filter(|_| self.runs_it(pid));
        let known = self.seen.iter().find(|c| {
            let is_it = c.started == started || started.is_none();
            c.pid == pid && is_it
        });
        if let Some(known) = known {
            return Ok(known.process);
        }
        let process = numbers.process();
        let (comm, command_line) = match started {
            Some(_) => (programs::comm(pid), programs::command_line(pid)),
            None => (String::new(), vec![ENDED.to_owned()]),
        };
        sink.process(&ProcessEntry {
            ix: process,
            pid,
            comm,
            command_line,
        })?;
        self.seen.push(Child {
            pid,
            started,
            process,
            memory: started.and_then(|_| TargetMemory::open(pid).ok()),
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
