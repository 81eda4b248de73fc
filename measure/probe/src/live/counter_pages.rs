//! Where the pages of events lie in a target: four for each context and one behind them, whether or not they are mapped,
//! and a last one that never is. The place is kept by a mapping of the rings' memfd that nobody may touch; events are mapped
//! over parts of it.
//!
//! A forked child has no pages of events (VM_DONTCOPY), and may have been forked by a signal handler in the middle of a
//! probe that reads one. So a page that grows down lies right behind those of each context: in the child it grows into
//! their place at the first touch (expand_stack(), mm/vma.c), and reads zeros, which are of no counter.
use super::counter_room::{OF_A_CONTEXT, SCRATCH_BYTES};
use super::table::{ARENA_NAME, Area, POOL_NAME, PatchTable};
use hopscope_process::maps::Mapping;

/// As `/proc/PID/maps` calls the page of an event.
const EVENT: &str = "anon_inode:[perf_event]";

/// The first of a context's pages.
pub(super) fn of(table: &PatchTable, context: u32) -> u64 {
    table.counter_pages.at + u64::from(context) * OF_A_CONTEXT as u64
}

/// Where [`SCRATCH_BYTES`] may be written.
pub(super) fn scratch(table: &PatchTable) -> u64 {
    (table.contexts.at + table.contexts.len) - SCRATCH_BYTES as u64
}

/// Whether `area` is such a place, with any events in it: its last page is always of the memfd.
pub(super) fn are_mapped(mappings: &[Mapping], area: Area) -> bool {
    let (start, end) = (area.at, area.at + area.len);
    let within = |m: &&Mapping| m.range.start < end && start < m.range.end;
    let is_ours = |m: &Mapping| {
        let named = |name: &&str| m.name == format!("/memfd:{name} (deleted)");
        m.is_memfd() && [ARENA_NAME, POOL_NAME].iter().any(named)
    };
    let grows = |m: &Mapping| m.inode == 0 && m.name.is_empty() && !m.executable;
    let last = mappings.iter().rfind(within);
    area.len > 0
        && last.is_some_and(|m| is_ours(m) && m.range.end >= end)
        && mappings
            .iter()
            .filter(within)
            .all(|m| is_ours(m) || m.name == EVENT || grows(m))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_process::maps;
    use hopscope_process::memfd;

    #[test]
    fn a_place_is_known_by_its_last_page() {
        let (major, minor) = memfd::device().unwrap();
        let ours = |range: &str| {
            format!(
                "{range} ---s 00000000 {major:02x}:{minor:02x} 7 /memfd:hopscope-rings (deleted)\n"
            )
        };
        let event = |range: &str| format!("{range} r--s 00000000 00:10 1038 {EVENT}\n");
        let grows = |range: &str| format!("{range} r--p 00000000 00:00 0\n");
        let other = |range: &str| format!("{range} r-xp 00000000 fe:00 7 /lib/other\n");
        let area = Area {
            at: 0x10000,
            len: 0x5000,
        };
        let is_ours = |lines: &[String]| are_mapped(&maps::parse(&lines.concat()), area);
        assert!(is_ours(&[ours("10000-15000")]));
        assert!(is_ours(&[
            event("10000-11000"),
            event("11000-12000"),
            grows("12000-13000"),
            ours("13000-15000")
        ]));
        assert!(!is_ours(&[event("10000-15000")]));
        assert!(!is_ours(&[other("10000-12000"), ours("12000-15000")]));
        assert!(!is_ours(&[ours("10000-12000"), other("14000-15000")]));
        assert!(!is_ours(&[]));
    }
}
