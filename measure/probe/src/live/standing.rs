//! Whether what was chosen still stands where it was chosen: until all threads stand still, a
//! plug-in may be unloaded, or give way to another one, at any moment. What is gone is refused; the
//! rest is measured.
use super::build::{Linked, Selected};
use super::error::LiveError;
use super::table::PatchTable;
use crate::locate::Load;
use hopscope_event::FunctionId;
use hopscope_process::maps::{self, Mapping};
use hopscope_process::memory::TargetMemory;
use hopscope_process::vma_query::{self, Vma};
use nix::libc;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;

/// Accepted, but not patched in the end.
pub type LateRefusals = Vec<(FunctionId, String)>;

pub const GONE: &str = "its module was unloaded while hopscope attached";

/// Takes out what does not run as its file says, byte for byte: unloaded, or with a breakpoint, a
/// text relocation, a wrong load address. The copies are made from the file.
///
/// # Errors
/// When that is everything: why the first one had to go.
pub fn keep(
    pid: i32,
    memory: &TargetMemory,
    selected: &mut Vec<Selected>,
) -> Result<LateRefusals, LiveError> {
    let (mut refused, mut first) = (Vec::new(), None);
    selected.retain(|s| {
        let Err(why) = compare(pid, memory, s) else {
            return true;
        };
        let reason = match why {
            LiveError::Breakpoint { at, .. } => {
                format!(
                    "a breakpoint is set at {at:#x} (a uprobe of perf or bpftrace, or a debugger's)"
                )
            }
            LiveError::CodeDiffers { at, .. } => {
                format!("its code at {at:#x} differs from its file")
            }
            _ => GONE.to_owned(),
        };
        refused.push((s.id, reason));
        first.get_or_insert(why);
        false
    });
    match first {
        Some(why) if selected.is_empty() => Err(why),
        _ => Ok(refused),
    }
}

fn compare(pid: i32, memory: &TargetMemory, s: &Selected) -> Result<(), LiveError> {
    let mut running = Vec::new();
    for piece in &s.pieces {
        let at = piece.svma.wrapping_add(s.bias);
        running.resize(piece.bytes.len(), 0);
        if memory.read(at, &mut running).is_err() {
            return Err(LiveError::Gone { pid });
        }
        if let Some(n) = running.iter().zip(piece.bytes).position(|(a, b)| a != b) {
            let at = at + n as u64;
            return Err(match running[n] {
                0xcc => LiveError::Breakpoint { pid, at },
                _ => LiveError::CodeDiffers { pid, at },
            });
        }
    }
    Ok(())
}

/// Entries will lead there: what the target has mapped must be what was written.
pub(super) fn arrived(
    pid: i32,
    memory: &TargetMemory,
    at: u64,
    code: &[u8],
) -> Result<(), LiveError> {
    const AT_ONCE: usize = 1 << 20;
    let mut there = vec![0u8; AT_ONCE.min(code.len())];
    for (at, written) in (at..).step_by(AT_ONCE).zip(code.chunks(AT_ONCE)) {
        let there = &mut there[..written.len()];
        memory
            .read(at, there)
            .map_err(LiveError::io(pid, "reading the copies back"))?;
        if there != written {
            let source =
                std::io::Error::other("the target does not see the copies that were written");
            return Err(LiveError::io(pid, "comparing the copies")(source));
        }
    }
    Ok(())
}

/// Takes the patches at `sites` out of the table, before anything was written: of functions that go also those of
/// their loops.
pub fn leave_out(
    table: &mut PatchTable,
    linked: &[Linked],
    sites: Vec<u64>,
    reason: &str,
) -> LateRefusals {
    let refused = leave_out_written(table, linked, sites, reason);
    leave_out_loops(table, linked, &refused);
    refused
}

/// The same when some of them, and loops, were written.
pub fn leave_out_written(
    table: &mut PatchTable,
    linked: &[Linked],
    mut sites: Vec<u64>,
    reason: &str,
) -> LateRefusals {
    if sites.is_empty() {
        return Vec::new();
    }
    sites.sort_unstable();
    let is_out = |at: u64| sites.binary_search(&at).is_ok();
    table.patches.retain(|p| !is_out(p.at));
    let entries = linked.iter().flat_map(|l| &l.entries);
    entries
        .filter(|e| is_out(e.patch_at))
        .map(|e| (e.id, reason.to_owned()))
        .collect()
}

/// What runs in a function that is not measured stays where it is.
pub fn leave_out_loops(table: &mut PatchTable, linked: &[Linked], refused: &LateRefusals) {
    if refused.is_empty() {
        return;
    }
    let refused: HashSet<FunctionId> = refused.iter().map(|(id, _)| *id).collect();
    let entries = linked.iter().flat_map(|l| &l.entries);
    let entries = entries.filter(|e| refused.contains(&e.id));
    let loops: HashSet<u64> = entries.flat_map(|e| &e.loops).map(|l| l.at).collect();
    table.patches.retain(|p| !loops.contains(&p.at));
}

/// Functions whose module is not the one any more that they were chosen of.
pub(super) fn other_loads(
    pid: i32,
    selected: &[Selected],
    mappings: &[Mapping],
) -> HashSet<FunctionId> {
    let mut loads = Loads::new(pid, mappings);
    let gone = selected.iter().filter(|s| !loads.has(s.load));
    gone.map(|s| s.id).collect()
}

/// Each load is looked at once.
pub(super) struct Loads<'a> {
    pid: i32,
    mappings: &'a [Mapping],
    known: HashMap<Load, bool>,
}

impl<'a> Loads<'a> {
    pub(super) fn new(pid: i32, mappings: &'a [Mapping]) -> Loads<'a> {
        Loads {
            pid,
            mappings,
            known: HashMap::new(),
        }
    }

    /// Whether it is there; `None` is anything.
    pub(super) fn has(&mut self, load: Option<Load>) -> bool {
        let Loads {
            pid,
            mappings,
            known,
        } = self;
        load.is_none_or(|load| {
            let known = known.entry(load);
            *known.or_insert_with(|| load.is_there(*pid, mappings))
        })
    }
}

/// Sites, ascending, at which another file is mapped now, or the same one elsewhere. Equal bytes there would
/// not show it: only the replaced ones are compared again. `maps` is the open `/proc/PID/maps`.
pub fn moved_away(
    pid: i32,
    sites: impl Iterator<Item = u64> + Clone,
    before: &[Mapping],
    maps: &File,
) -> io::Result<Vec<u64>> {
    let mut last: Option<Vma> = None;
    let mut gone = Vec::new();
    for at in sites.clone() {
        // Sites ascend: most lie in the same mapping as the one before.
        if !last.as_ref().is_some_and(|vma| vma.range.contains(&at)) {
            last = match vma_query::at(maps, at) {
                Ok(found) => found,
                Err(e) if e.raw_os_error() == Some(libc::ENOTTY) => {
                    return Ok(moved_between(sites, before, &maps::read(pid)?));
                }
                Err(e) => return Err(e),
            };
        }
        let now = last.as_ref().filter(|vma| vma.range.contains(&at));
        let now = now.map(|vma| (vma.inode, vma.range.start.wrapping_sub(vma.offset)));
        let was = file_at(before, at);
        if was.is_none() || was != now {
            gone.push(at);
        }
    }
    Ok(gone)
}

/// The same by two whole maps, for kernels before 6.11.
fn moved_between(
    sites: impl Iterator<Item = u64>,
    before: &[Mapping],
    now: &[Mapping],
) -> Vec<u64> {
    sites
        .filter(|at| {
            let was = file_at(before, *at);
            was.is_none() || was != file_at(now, *at)
        })
        .collect()
}

/// Inode, and where its first byte would lie. `mappings` ascend.
fn file_at(mappings: &[Mapping], at: u64) -> Option<(u64, u64)> {
    let after = mappings.partition_point(|m| m.range.start <= at);
    let mapping = &mappings[after.checked_sub(1)?];
    let first_byte = mapping.range.start.wrapping_sub(mapping.offset);
    (at < mapping.range.end).then_some((mapping.inode, first_byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_process::maps::parse;

    #[test]
    fn a_file_is_told_from_its_successor() {
        let before = parse(
            "1000-3000 r-xp 00001000 00:01 7 /a.so\n\
             5000-6000 r-xp 00000000 00:01 8 /b.so\n",
        );
        // Split by a changed protection: the same file at the same place.
        let split = parse(
            "1000-2000 r-xp 00001000 00:01 7 /a.so\n\
             2000-3000 rwxp 00002000 00:01 7 /a.so\n",
        );
        let replaced = parse("1000-3000 r-xp 00001000 00:01 9 /c.so\n");
        let shifted = parse("1000-3000 r-xp 00000000 00:01 7 /a.so\n");
        assert_eq!(file_at(&before, 0x2fff), file_at(&split, 0x2fff));
        assert_ne!(file_at(&before, 0x1000), file_at(&replaced, 0x1000));
        assert_ne!(file_at(&before, 0x1000), file_at(&shifted, 0x1000));
        assert_eq!(file_at(&before, 0x4000), None);
        assert_eq!(file_at(&before, 0xfff), None);
    }
}
