//! Rings that copies of several arenas write into: a recording's own, and those that were added to it while it ran.
use super::found::{self, Found};
use super::leftover;
use super::table::PatchTable;
use hopscope_process::memory::TargetMemory;

/// Why rings stay.
pub(super) const STAY: &str = "copies that were added to them later stay, and need their rings";

/// Of each of `tables`, whether copies of an arena that is none of theirs need its contexts and rings.
pub(super) fn in_use(pid: i32, memory: &TargetMemory, tables: &[&PatchTable]) -> Vec<bool> {
    let is_owner = |table: &&PatchTable| table.pool.len > 0 && !table.shares_rings;
    let mut found = Vec::new();
    if tables.iter().any(is_owner) {
        found = found::in_process(pid);
        let is_theirs = |f: &Found| {
            let header = f.header.map(|header| header.at);
            tables.iter().any(|table| header == Some(table.header.at))
        };
        found.retain(|f| !f.code.is_empty() && !is_theirs(f) && f.is_added(memory));
    }
    // A process that overwrites such a table harms itself alone.
    let needs = |f: &Found, owner: &PatchTable| {
        let is_added = |table: &PatchTable| table.shares_rings && table.pool == owner.pool;
        let table = f.table(memory);
        table.is_ok_and(|(table, state)| is_added(&table) && !leftover::is_retired(&table, state))
    };
    let in_use = |table: &&PatchTable| is_owner(table) && found.iter().any(|f| needs(f, table));
    tables.iter().map(in_use).collect()
}
