//! Network calls of a command and of its children that do not come by the preloaded library: calls within libc, of programs that it
//! cannot be loaded into, and by instructions of their own. A BPF program looks at each call of the command's processes when
//! it enters the kernel; nothing of theirs is changed or slowed down but by its run.
#![forbid(unsafe_code)]

mod calls;
mod contract;
mod said;

pub use contract::LIBRARY;
use contract::{Config, Counters, Event, Row};
use hopscope_bpf::object::{self, has_capabilities, variables};
use hopscope_bpf::{BpfError, Ring, compiled, run_stats};
use libbpf_rs::{Link, MapCore, MapFlags, Object};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

static OBJECT: &[u8] = compiled!("bypass");
/// Wake-ups are lost now and then (seen on Linux 6.18: entries were there, and epoll_wait slept on).
const SPAN: Duration = Duration::from_millis(200);
const PROGRAMS: [&str; 3] = ["bypass_call", "bypass_fork", "bypass_exit"];

/// Who is watched.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// The process that is going to execute the command, or has, by its number here.
    pub process: u32,
    /// The process of `stack serve`, whose pairs of sockets are the stack's.
    pub instance: Option<u32>,
}

pub struct Watch {
    command: Command,
    object: Object,
    ring: Ring,
    seen: Rc<RefCell<Vec<Event>>>,
    /// Calls by (process, instruction, number) that are the library's after all.
    own: BTreeSet<(u32, u64, u32)>,
    has_told: bool,
    _links: Vec<Link>,
}

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Bpf(#[from] BpfError),
    #[error("/proc/self/ns/pid: {0}")]
    Namespace(std::io::Error),
}

impl Watch {
    /// From when it returns, no call is missed.
    ///
    /// # Errors
    /// Not allowed (CAP_BPF and CAP_PERFMON), or a kernel before 5.17.
    pub fn start(command: Command) -> Result<Watch, WatchError> {
        let namespace = std::fs::metadata("/proc/self/ns/pid").map_err(WatchError::Namespace)?;
        let config = Config {
            namespace_device: namespace.dev(),
            namespace_inode: namespace.ino(),
            root: command.process,
            instance: command.instance.unwrap_or(0),
        };
        let object = object::load(OBJECT, "hopbypass", has_capabilities, |open| {
            object::set_rodata(open, &config.to_bytes())
        })?;
        let seen = Rc::new(RefCell::new(Vec::new()));
        let to = Rc::clone(&seen);
        let ring = Ring::open(
            &object::map(&object, "events")?,
            "reading calls",
            move |bytes| {
                to.borrow_mut().extend(Event::read(bytes));
            },
        )?;
        let attach = |name| {
            object::program(&object, name)?
                .attach()
                .map_err(BpfError::with_cause("attaching a program"))
        };
        // Children are followed before there is anybody to have them.
        let links = PROGRAMS
            .iter()
            .rev()
            .map(|name| attach(name))
            .collect::<Result<_, _>>()?;
        Ok(Watch {
            command,
            object,
            ring,
            seen,
            own: BTreeSet::new(),
            has_told: false,
            _links: links,
        })
    }

    /// Tells of each call, one line, until the last process of the command has ended; or only others than the command's own run,
    /// and `is_heard` says of their numbers that nobody hears them.
    ///
    /// # Errors
    /// The kernel's answers cannot be read.
    pub fn run(
        mut self,
        mut say: impl FnMut(&str),
        mut is_heard: impl FnMut(&[u32]) -> bool,
    ) -> Result<(), WatchError> {
        loop {
            self.ring.wait(SPAN)?;
            let events = std::mem::take(&mut *self.seen.borrow_mut());
            for event in events {
                if let Some(line) = self.line(&event) {
                    self.has_told = true;
                    say(&line);
                }
            }
            let counters = self.counters()?;
            // The end of each is told before it is counted.
            let is_over = match counters.processes {
                0 => !Path::new(&format!("/proc/{}", self.command.process)).exists(),
                _ => counters.running == 0 || self.all_are_gone()?,
            };
            if is_over {
                self.ring.consume(usize::MAX)?;
                if self.seen.borrow().is_empty() {
                    return self.end(counters, say);
                }
            } else if counters.processes > 0 {
                let left = self.watched()?;
                if !left.is_empty() && !left.contains(&self.command.process) && !is_heard(&left) {
                    self.has_told = true;
                    say(&format!(
                        "the command has ended; {} of its processes, which have closed its standard error, are not watched any more",
                        left.len()
                    ));
                    return self.end(counters, say);
                }
            }
        }
    }

    /// The numbers of those that run, each in its own pid namespace.
    fn watched(&self) -> Result<Vec<u32>, WatchError> {
        let watched = object::map(&self.object, "watched")?;
        let number = |key: Vec<u8>| {
            let number = watched.lookup(&key, MapFlags::ANY).ok()??;
            Some(u32::from_ne_bytes(number.try_into().ok()?))
        };
        Ok(watched.keys().filter_map(number).collect())
    }

    /// Where ends of processes were not seen, they stay among those that run.
    fn all_are_gone(&self) -> Result<bool, WatchError> {
        if self.missed("bypass_exit")? == 0 {
            return Ok(false);
        }
        let is_there = |number: &u32| Path::new(&format!("/proc/{number}")).exists();
        Ok(!self.watched()?.iter().any(is_there))
    }

    /// Runs that the kernel skipped, since the program ran on that processor.
    fn missed(&self, program: &str) -> Result<u64, WatchError> {
        Ok(run_stats::read(&self.object, program)?.missed)
    }

    fn line(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::Call(call) => {
                let line = said::first(call, self.command.instance.is_none());
                if line.is_none() {
                    self.own.insert((call.process.key, call.at, call.number));
                }
                line
            }
            Event::End { process } => said::sum(process, &self.take_rows(process.key)),
        }
    }

    /// Of a process; they are deleted.
    fn take_rows(&mut self, process: u32) -> Vec<Row> {
        let Ok(map) = object::map(&self.object, "calls") else {
            return Vec::new();
        };
        let keys: Vec<Vec<u8>> = map.keys().collect();
        let take = |key: Vec<u8>| {
            let value = map.lookup(&key, MapFlags::ANY).ok()??;
            let row = Row::read(&key, &value).filter(|row| row.process == process)?;
            // It is gone already, where this fails.
            let _ = map.delete(&key);
            (!row.is_own && !self.own.remove(&(process, row.at, row.number))).then_some(row)
        };
        keys.into_iter().filter_map(take).collect()
    }

    fn counters(&self) -> Result<Counters, WatchError> {
        let bytes = variables(&self.object)?
            .lookup(&[0; 4], MapFlags::ANY)
            .map_err(BpfError::with_cause("reading counters"))?;
        Ok(bytes
            .and_then(|bytes| Counters::read(&bytes))
            .unwrap_or_default())
    }

    fn end(&self, counters: Counters, mut say: impl FnMut(&str)) -> Result<(), WatchError> {
        let Counters {
            processes,
            unwatched,
            unnamed,
            untold,
            ..
        } = counters;
        let lost = [
            (unwatched, "processes were not watched (no room)"),
            (
                self.missed("bypass_fork")?,
                "new processes of anybody were not looked at",
            ),
            (
                self.missed("bypass_exit")?,
                "ends of processes of anybody were not seen",
            ),
            (
                unnamed,
                "calls by-passed the hooks of which no more is known (no room)",
            ),
            (untold, "messages had no room"),
            (
                self.missed("bypass_call")?,
                "calls of anybody were not looked at",
            ),
        ];
        for (count, what) in lost.into_iter().filter(|(count, _)| *count > 0) {
            say(&format!("{count} {what}"));
        }
        if !self.has_told {
            let s = if processes == 1 { "" } else { "es" };
            say(&format!(
                "{processes} process{s} ended, no network call seen that by-passed the hooks"
            ));
        }
        Ok(())
    }
}
