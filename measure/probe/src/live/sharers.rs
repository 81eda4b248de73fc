//! Processes that have the same copies mapped.
use super::found;
use super::table::PatchTable;
use std::collections::BTreeSet;

/// Processes that may have a table's copies mapped too: forked children, and a child's parent.
/// Looking through all processes takes long, so that it is done before the stop; in it only those
/// are looked at that are new.
pub(super) struct Sharers {
    inode: u64,
    seen: BTreeSet<i32>,
}

impl Sharers {
    /// `None` when the copies are not mapped in `pid` any more.
    pub(super) fn of(pid: i32, table: &PatchTable) -> Option<Sharers> {
        let own = found::in_process(pid);
        let own = own
            .iter()
            .find(|f| f.header.is_some_and(|h| h.at == table.header.at))?;
        let inode = own.inode;
        let seen = processes();
        let seen = seen.filter(|p| *p == pid || !Sharers::maps(*p, inode));
        Some(Sharers {
            inode,
            seen: seen.collect(),
        })
    }

    fn maps(pid: i32, inode: u64) -> bool {
        let found = found::in_process(pid);
        // Whoever only reads it was handed it: it is none of theirs.
        found.iter().any(|f| f.inode == inode && !f.code.is_empty())
    }

    /// Those that have them now.
    pub(super) fn now(&self) -> Vec<i32> {
        processes()
            .filter(|p| !self.seen.contains(p) && Sharers::maps(*p, self.inode))
            .collect()
    }
}

fn processes() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
}
