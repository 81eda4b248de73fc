//! What unwinders are told of copies, in a page of the target's own: where they lie, and where their tables are.
use super::error::LiveError;
use super::found;
use super::table::{Area, PatchTable};
use crate::instrument::emit::lookup::{self, Slot};
use hopscope_event::layout::PAGE;
use hopscope_process::memory::TargetMemory;
use std::io;

/// Those in `pid`, in use or not.
pub(super) fn in_process(pid: i32, memory: &TargetMemory) -> Vec<PatchTable> {
    let found = found::in_process(pid).into_iter();
    let tables = found.filter_map(|f| {
        let (table, _) = f.table_at_most(memory, TABLE_BYTES_AT_MOST).ok()??;
        (table.answers_unwinders && f.belongs(&table)).then_some(table)
    });
    tables.collect()
}

/// Of JSON, with a few entries.
const TABLE_BYTES_AT_MOST: u64 = 64 << 10;

/// Where copies of the recording that begins lie, and their tables. Before anything leads there.
pub(super) fn add(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    copies: &[(Area, u64)],
) -> Result<(), LiveError> {
    let failed = |e| LiveError::io(pid, "writing where copies have their unwind tables")(e);
    let page = Page::read(memory, table).map_err(failed)?;
    let mut count = page.count;
    let mut free = (0..lookup::SLOTS).filter(|n| page.slots[*n].len == 0);
    for (area, tables) in copies {
        let n = free.next().ok_or_else(|| LiveError::Lookup {
            pid,
            why: format!(
                "{} recordings have left copies with unwind tables",
                lookup::SLOTS
            ),
        })?;
        let at = table.contexts.at + lookup::slot_at(n);
        // The length last: until then it is empty.
        let words = [(0, area.at), (16, *tables), (8, area.len)];
        for (offset, word) in words {
            memory
                .write(at + offset, &word.to_le_bytes())
                .map_err(failed)?;
        }
        count = count.max(n as u64 + 1);
        memory
            .write(table.contexts.at, &count.to_le_bytes())
            .map_err(failed)?;
    }
    Ok(())
}

/// Copies in `gone` go: nobody asks for them any more. True when none is left that somebody may ask for. All threads
/// stand still.
pub(super) fn release(
    memory: &TargetMemory,
    table: &PatchTable,
    gone: &[Area],
) -> io::Result<bool> {
    let page = Page::read(memory, table)?;
    let mut unused = true;
    for (n, slot) in page.slots.iter().enumerate().filter(|(_, s)| s.len > 0) {
        match gone.iter().any(|area| area.contains(slot.start)) {
            true => memory.write(table.contexts.at + lookup::slot_at(n) + 8, &[0; 8])?,
            false => unused = false,
        }
    }
    Ok(unused)
}

/// Whether copies other than those of `tables` are answered for.
pub(super) fn serves_others(
    memory: &TargetMemory,
    lookup: &PatchTable,
    tables: &[&PatchTable],
) -> bool {
    let known = |start| {
        tables
            .iter()
            .flat_map(|t| &t.segments)
            .any(|s| s.contains(start))
    };
    let page = Page::read(memory, lookup);
    page.is_ok_and(|page| page.slots.iter().any(|s| s.len > 0 && !known(s.start)))
}

/// As the process has it, which may have written anything there.
struct Page {
    count: u64,
    slots: Vec<Slot>,
}

impl Page {
    fn read(memory: &TargetMemory, table: &PatchTable) -> io::Result<Page> {
        let mut bytes = [0; PAGE];
        memory.read(table.contexts.at, &mut bytes)?;
        let word = |at: u64| {
            u64::from_le_bytes(
                bytes[at as usize..at as usize + 8]
                    .try_into()
                    .expect("8 bytes"),
            )
        };
        let slots = (0..lookup::SLOTS).map(lookup::slot_at).map(|at| Slot {
            start: word(at),
            len: word(at + 8),
            tables: word(at + 16),
            unused: 0,
        });
        Ok(Page {
            count: word(0).min(lookup::SLOTS as u64),
            slots: slots.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::table;
    use super::*;
    use crate::memory::SharedWords;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;

    fn area(at: u64) -> Area {
        Area { at, len: 0x1000 }
    }

    /// The process whose page it is is this test itself.
    #[test]
    fn a_slot_is_used_until_its_copies_go() {
        let memfd = File::from(memfd_create("slots", MFdFlags::MFD_CLOEXEC).unwrap());
        memfd.set_len(PAGE as u64).unwrap();
        let page = SharedWords::map(&memfd, PAGE).unwrap();
        let pid = std::process::id() as i32;
        let memory = TargetMemory::open(pid).unwrap();
        let (mut lookup, mut copies) = (table(), table());
        lookup.contexts = area(page.words().as_ptr() as u64);
        let (first, second) = (area(0x10000), area(0x20000));
        add(
            pid,
            &memory,
            &lookup,
            &[(first, 0x10800), (second, 0x20800)],
        )
        .unwrap();
        let read = || Page::read(&memory, &lookup).unwrap();
        assert_eq!((read().count, read().slots[1].tables), (2, 0x20800));

        copies.segments = vec![first];
        assert!(serves_others(&memory, &lookup, &[&copies]));
        assert!(!release(&memory, &lookup, &[first]).unwrap());
        copies.segments = vec![second];
        assert!(!serves_others(&memory, &lookup, &[&copies]));
        assert!(release(&memory, &lookup, &[second]).unwrap());
        // The first one that is free is taken again.
        add(pid, &memory, &lookup, &[(second, 0x20800)]).unwrap();
        assert_eq!((read().count, read().slots[0].start), (2, second.at));
    }

    #[test]
    fn more_copies_than_slots_are_refused() {
        let memfd = File::from(memfd_create("slots", MFdFlags::MFD_CLOEXEC).unwrap());
        memfd.set_len(PAGE as u64).unwrap();
        let page = SharedWords::map(&memfd, PAGE).unwrap();
        let pid = std::process::id() as i32;
        let memory = TargetMemory::open(pid).unwrap();
        let mut lookup = table();
        lookup.contexts = area(page.words().as_ptr() as u64);
        let all: Vec<_> = (1..=lookup::SLOTS as u64)
            .map(|n| (area(n << 16), n))
            .collect();
        add(pid, &memory, &lookup, &all).unwrap();
        let refused = add(pid, &memory, &lookup, &all[..1]);
        assert!(matches!(refused, Err(LiveError::Lookup { .. })));
    }
}
