//! Arenas in running processes: who is recorded, what a killed recorder left, which forked
//! children inherited patched code.
use super::error::LiveError;
use super::fused;
use super::got;
use super::site::Patch;
use super::table::{ARENA_NAME, Area, HEAD_BYTES, Head, POOL_NAME, PatchTable, State, TableError};
use hopscope_process::maps::{self, Mapping};
use hopscope_process::memory::TargetMemory;
use hopscope_process::{mark, memfd, procfs};
use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// An arena seen in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub pid: i32,
    pub inode: u64,
    /// The mapping of the patch table; `None` when only copies are still mapped.
    pub header: Option<Area>,
    /// Those parts that are mapped executable.
    pub code: Vec<Area>,
}

/// Descriptors that `pid` has of memfds that were made in it under one of our names. One that it
/// was handed by a process of another user is none of ours to close, and those of another hopscope are its own.
pub(super) fn own_descriptors(pid: i32) -> Vec<u64> {
    let holder = procfs::memory_holder(pid);
    let Ok(fds) = fs::read_dir(format!("/proc/{holder}/fd")) else {
        return Vec::new();
    };
    let uid = procfs::uid(pid);
    let ours = |entry: &fs::DirEntry| {
        let path = entry.path();
        let link = path.to_str()?;
        let name = named(&fs::read_link(link).ok()?)?;
        let seen = memfd::look(link, name).ok()??;
        (Some(seen.uid) == uid).then(|| entry.file_name().to_str()?.parse().ok())?
    };
    let found: Vec<u64> = fds.flatten().filter_map(|entry| ours(&entry)).collect();
    // Looked at last: it was there before any of them.
    match !found.is_empty() && mark::is_held_by(holder) {
        true => Vec::new(),
        false => found,
    }
}

/// Which of our names a link says, by the whole of it: `vnet drive` gives memory called
/// `hopscope-vnet` to back ends by others.
fn named(link: &Path) -> Option<&'static str> {
    let name = link.to_str()?.strip_prefix("/memfd:")?;
    let name = name.strip_suffix(" (deleted)")?;
    [ARENA_NAME, POOL_NAME].into_iter().find(|n| *n == name)
}

/// Whether `pid` has a descriptor of one of our memfds: left by a recorder that was killed between
/// two system calls of its attach, before anything was mapped.
pub fn has_descriptors(pid: i32) -> bool {
    !own_descriptors(pid).is_empty()
}

/// Whether a recorder that was killed may have left `pid` about to make a call: not while the
/// thread that makes them sleeps. Only a stop can tell for sure.
pub fn may_be_in_a_call(pid: i32) -> bool {
    matches!(procfs::state(pid, pid), 'R' | 'T' | 'Z')
}

/// Processes that have nothing of ours but such descriptors.
pub fn with_descriptors_only() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok());
    // A recorder has such descriptors too, rightly: they must not be closed under it. One of an older version has no mark.
    pids.filter(|pid| {
        has_descriptors(*pid) && in_process(*pid).is_empty() && !procfs::is_hopscope(*pid)
    })
    .collect()
}

/// By the kernel's own device for memfds too: a file may have any name.
fn is_arena(mapping: &Mapping) -> bool {
    let name = mapping.name.strip_prefix("/memfd:");
    name.and_then(|n| n.strip_suffix(" (deleted)")) == Some(ARENA_NAME) && mapping.is_memfd()
}

/// Arenas mapped in `pid`; empty when the process is gone.
pub fn in_process(pid: i32) -> Vec<Found> {
    let mut found: BTreeMap<u64, Found> = BTreeMap::new();
    for m in maps::read(pid)
        .unwrap_or_default()
        .iter()
        .filter(|m| is_arena(m))
    {
        let area = Area {
            at: m.range.start,
            len: m.range.end - m.range.start,
        };
        let f = found.entry(m.inode).or_insert_with(|| Found {
            pid,
            inode: m.inode,
            header: None,
            code: Vec::new(),
        });
        match m.executable {
            true => f.code.push(area),
            false if m.offset == 0 => f.header = Some(area),
            false => {}
        }
    }
    found.into_values().collect()
}

/// Arenas of all processes.
pub fn everywhere() -> Vec<Found> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .flat_map(in_process)
        .collect()
}

impl Found {
    /// The patch table, read out of the process. The process may have written anything there.
    pub fn table(&self, memory: &TargetMemory) -> Result<(PatchTable, State), LiveError> {
        let head = self.head(memory)?;
        self.read(memory, head)
    }

    /// The same; `None` where it has more than `bytes`, of which nothing is read then.
    pub(super) fn table_at_most(
        &self,
        memory: &TargetMemory,
        bytes: u64,
    ) -> Result<Option<(PatchTable, State)>, LiveError> {
        let head = self.head(memory)?;
        let len = head.json.end - head.json.start;
        (len <= bytes).then(|| self.read(memory, head)).transpose()
    }

    fn read(&self, memory: &TargetMemory, head: Head) -> Result<(PatchTable, State), LiveError> {
        let reading = |what| LiveError::io(self.pid, what);
        let area = self.header.ok_or(TableError::NotOurs)?;
        let mut json = Vec::new();
        let len = (head.json.end - head.json.start) as usize;
        let room = json.try_reserve_exact(len).map_err(io::Error::from);
        room.map_err(reading("making room for its table"))?;
        json.resize(len, 0);
        let read = memory.read(area.at + head.json.start, &mut json);
        read.map_err(reading("reading the arena"))?;
        let table = PatchTable::from_json(&json)?;
        if table.header.at != area.at || table.header.len > area.len {
            let why = "it lies elsewhere than it says".to_owned();
            return Err(TableError::Damaged(why).into());
        }
        Ok((table, head.state))
    }

    /// How far the recording has come, without reading the table.
    pub fn state(&self, memory: &TargetMemory) -> Result<State, LiveError> {
        Ok(self.head(memory)?.state)
    }

    /// Whether it was added to a recording while that ran, without reading the table.
    pub fn is_added(&self, memory: &TargetMemory) -> bool {
        self.head(memory).is_ok_and(|head| head.shares_rings)
    }

    fn head(&self, memory: &TargetMemory) -> Result<Head, LiveError> {
        let area = self.header.ok_or(TableError::NotOurs)?;
        let mut head = [0u8; HEAD_BYTES];
        let read = memory.read(area.at, &mut head);
        read.map_err(LiveError::io(self.pid, "reading the arena"))?;
        Ok(Head::parse(&head, area.len)?)
    }

    fn executes(&self, segment: &Area) -> bool {
        let end = segment.at + segment.len;
        let mut code = self.code.iter();
        code.any(|c| c.at <= segment.at && end <= c.at + c.len)
    }

    /// Whether the process can be one that `table` was written for. A process can be handed a memfd
    /// and map it to read it; what an unprivileged one wrote there must not tell us what to change in
    /// a privileged one. No process maps it executable, at the very addresses that it names, but the
    /// one that was attached to and its children. Before that was done, the user tells.
    pub fn belongs(&self, table: &PatchTable) -> bool {
        table.segments.iter().any(|s| self.executes(s)) || self.made_by_its_user()
    }

    /// Whether every entry and slot that the table says was replaced leads into a copy that this process
    /// executes.
    pub(super) fn executes_all(&self, table: &PatchTable) -> bool {
        let mut last = None;
        let patches = table.patches.iter().map(|p| table.segment_of(p));
        let slots = table.slots.iter().map(|s| table.segment_at(s.replaced));
        let fused = table.fused.iter().map(|f| table.segment_at(f.at));
        patches.chain(slots).chain(fused).all(|segment| {
            let known = segment.is_some() && segment == last;
            last = segment;
            known || segment.is_some_and(|s| self.executes(s))
        })
    }

    fn made_by_its_user(&self) -> bool {
        let Some(area) = self.header else {
            return false;
        };
        let (start, end) = (area.at, area.at + area.len);
        let holder = procfs::memory_holder(self.pid);
        let link = format!("/proc/{holder}/map_files/{start:x}-{end:x}");
        match memfd::look(&link, ARENA_NAME) {
            Ok(seen) => seen.is_some_and(|s| Some(s.uid) == procfs::uid(self.pid)),
            // Who may not look there has no more rights than the process.
            Err(e) => e.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

/// Whether the recorder of `table` still runs. A table may name any process: one that is no recorder
/// is not taken for one.
pub fn recorder_alive(table: &PatchTable) -> bool {
    procfs::start_time(table.recorder) == Some(table.recorder_started)
        && (procfs::is_hopscope(table.recorder) || holds_an_arena(table.recorder))
}

/// Whether it was made by another recorder, which still runs: what nothing is answered by yet may be about to be used.
pub(super) fn is_of_another(table: &PatchTable) -> bool {
    table.recorder != std::process::id() as i32 && recorder_alive(table)
}

/// As a recorder does, whatever its program is called.
fn holds_an_arena(pid: i32) -> bool {
    let fds = fs::read_dir(format!("/proc/{pid}/fd"));
    let arena = format!("/memfd:{ARENA_NAME} (deleted)");
    fds.is_ok_and(|fds| {
        fds.flatten()
            .any(|e| fs::read_link(e.path()).is_ok_and(|link| link.as_os_str() == arena.as_str()))
    })
}

/// Whether any entry, or GOT slot, still leads where this table says.
pub fn is_patched(memory: &TargetMemory, table: &PatchTable) -> bool {
    let is_replaced = |p: &Patch| {
        let mut now = [0u8; 5];
        memory.read(p.at, &mut now).is_ok() && now == p.replaced
    };
    table.patches.iter().any(is_replaced)
        || got::any_leads(memory, &table.slots)
        || got::any_leads(memory, &fused::slots(&table.fused))
}

/// The recorder, other than this one, that is at work in `pid`, however far it has come.
pub(super) fn another_recorder(pid: i32, memory: &TargetMemory) -> Option<i32> {
    let us = std::process::id() as i32;
    let found = in_process(pid).into_iter().filter(|f| f.header.is_some());
    let tables = found.filter_map(|f| {
        let (table, _) = f.table(memory).ok()?;
        f.belongs(&table).then_some(table)
    });
    let mut others =
        tables.filter(|t| t.recorder != us && !t.answers_unwinders && recorder_alive(t));
    others.next().map(|t| t.recorder)
}

/// Refuses a process that carries live or orphaned probes.
pub fn check_free(pid: i32) -> Result<(), LiveError> {
    let found = in_process(pid);
    if found.is_empty() {
        return Ok(());
    }
    let memory = TargetMemory::open(pid)?;
    // What a process only has mapped, and does not execute, is none of its own: a table that it was handed.
    let runs_it = |f: &&Found| f.header.is_some() && !f.code.is_empty();
    for f in found.iter().filter(runs_it) {
        let (table, _) = f.table(&memory)?;
        if !f.belongs(&table) || table.answers_unwinders {
            continue;
        }
        if recorder_alive(&table) {
            return Err(LiveError::AlreadyRecorded {
                pid,
                recorder: table.recorder,
            });
        }
        if is_patched(&memory, &table) {
            return Err(LiveError::Orphan { pid });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::table;
    use super::*;

    /// A table may name any process as its recorder, and the user is told to stop that one.
    #[test]
    fn a_process_that_is_no_recorder_is_not_taken_for_one() {
        let believed = |pid: i32| {
            let mut claims = table();
            (claims.recorder, claims.recorder_started) = (pid, procfs::start_time(pid).unwrap());
            recorder_alive(&claims)
        };
        assert!(believed(std::process::id() as i32));
        let mut innocent = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let taken = believed(innocent.id() as i32);
        innocent.kill().unwrap();
        innocent.wait().unwrap();
        assert!(!taken);
    }

    /// What the copies of `table` are to be mapped at, of an arena whose table is mapped nowhere.
    fn found(code: &[Area]) -> Found {
        Found {
            pid: 0,
            inode: 1,
            header: None,
            code: code.to_vec(),
        }
    }

    #[test]
    fn only_who_executes_the_copies_is_changed() {
        let table = table();
        let copies = table.segments[0];
        let part = Area {
            len: copies.len - 0x1000,
            ..copies
        };
        let elsewhere = Area {
            at: copies.at + 0x1000,
            ..copies
        };
        assert!(found(&[copies]).belongs(&table) && found(&[copies]).executes_all(&table));
        for code in [&[][..], &[part], &[elsewhere]] {
            assert!(!found(code).belongs(&table) && !found(code).executes_all(&table));
        }
    }

    #[test]
    fn descriptors_are_ours_by_their_whole_name() {
        for (link, ours) in [
            ("/memfd:hopscope-code (deleted)", true),
            ("/memfd:hopscope-rings (deleted)", true),
            ("/memfd:hopscope-vnet (deleted)", false),
            ("/memfd:hopscope-rings", false),
            ("/memfd:hopscope-rings-2 (deleted)", false),
            ("/tmp/hopscope-code (deleted)", false),
        ] {
            assert_eq!(named(Path::new(link)).is_some(), ours, "{link}");
        }
    }
}
