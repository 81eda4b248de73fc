//! Arenas in running processes: who is recorded, what a killed recorder left, which forked
//! children inherited patched code.
use super::error::LiveError;
use super::maps::{self, Mapping};
use super::table::{ARENA_NAME, Area, PatchTable, State};
use crate::attach::memory::TargetMemory;
use crate::attach::proc;
use std::fs;

/// An arena seen in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub pid: i32,
    pub inode: u64,
    /// The mapping of the patch table; `None` when only copies are still mapped.
    pub header: Option<Area>,
    /// Everything of this arena that is mapped here.
    pub areas: Vec<Area>,
}

/// Whether `pid` has a descriptor of one of our memfds: left by a recorder that was killed between
/// two system calls of its attach, before anything was mapped.
pub fn has_descriptors(pid: i32) -> bool {
    let Ok(fds) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    let ours = |link: &std::path::Path| {
        link.to_str()
            .is_some_and(|l| l.starts_with("/memfd:hopscope-") && l.ends_with(" (deleted)"))
    };
    fds.flatten()
        .any(|e| fs::read_link(e.path()).is_ok_and(|link| ours(&link)))
}

/// Whether a recorder that was killed may have left `pid` about to make a call: not while the
/// thread that makes them sleeps. Only a stop can tell for sure.
pub fn may_be_in_a_call(pid: i32) -> bool {
    matches!(proc::state(pid, pid), 'R' | 'T' | 'Z')
}

/// Processes that have nothing of ours but such descriptors.
pub fn with_descriptors_only() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok());
    pids.filter(|pid| has_descriptors(*pid) && in_process(*pid).is_empty() && !is_hopscope(*pid))
        .collect()
}

/// A recorder has such descriptors too, rightly: they must not be closed under it.
fn is_hopscope(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let exe = |pid: &str| {
        let m = fs::metadata(format!("/proc/{pid}/exe")).ok()?;
        Some((m.dev(), m.ino()))
    };
    let theirs = exe(&pid.to_string());
    let named =
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim_end() == "hopscope");
    named || theirs.is_none() || theirs == exe("self")
}

fn is_arena(mapping: &Mapping) -> bool {
    mapping
        .name
        .strip_prefix("/memfd:")
        .and_then(|n| n.strip_suffix(" (deleted)"))
        == Some(ARENA_NAME)
}

/// Arenas mapped in `pid`; empty when the process is gone.
pub fn in_process(pid: i32) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for m in maps::read(pid)
        .unwrap_or_default()
        .iter()
        .filter(|m| is_arena(m))
    {
        let area = Area {
            at: m.range.start,
            len: m.range.end - m.range.start,
        };
        let i = found
            .iter()
            .position(|f| f.inode == m.inode)
            .unwrap_or_else(|| {
                found.push(Found {
                    pid,
                    inode: m.inode,
                    header: None,
                    areas: Vec::new(),
                });
                found.len() - 1
            });
        found[i].areas.push(area);
        if m.offset == 0 && !m.executable {
            found[i].header = Some(area);
        }
    }
    found
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
    /// The patch table, read out of the process.
    pub fn table(&self, memory: &TargetMemory) -> Result<(PatchTable, State), LiveError> {
        let Some(header) = self.header else {
            return Err(super::table::TableError::NotOurs.into());
        };
        let mut bytes = vec![0u8; header.len as usize];
        memory
            .read(header.at, &mut bytes)
            .map_err(LiveError::io(self.pid, "reading the arena"))?;
        Ok(PatchTable::from_bytes(&bytes)?)
    }
}

/// Whether the recorder of `table` still runs.
pub fn recorder_alive(table: &PatchTable) -> bool {
    start_time(table.recorder) == Some(table.recorder_started)
}

/// Field 22 of /proc/PID/stat: start time in clock ticks after boot; `None` for a zombie.
pub fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Whether any entry still carries the jump of this table.
pub fn is_patched(memory: &TargetMemory, table: &PatchTable) -> bool {
    table.patches.iter().any(|p| {
        let mut now = [0u8; 5];
        memory.read(p.at, &mut now).is_ok() && now == p.replaced
    })
}

/// Refuses a process that carries live or orphaned probes.
pub fn check_free(pid: i32) -> Result<(), LiveError> {
    let found = in_process(pid);
    if found.is_empty() {
        return Ok(());
    }
    let memory = TargetMemory::open(pid)?;
    for f in found.iter().filter(|f| f.header.is_some()) {
        let (table, _) = f.table(&memory)?;
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
