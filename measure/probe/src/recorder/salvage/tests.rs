//! The process whose rings are saved is this test itself.
use super::*;
use crate::live::table::tests::table;
use crate::memory::SharedWords;
use hopscope_event::layout::ring_header_offset;
use hopscope_event::record::STRIDE;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::sync::atomic::Ordering;

const RECORDS_LOG2: u32 = 4;

/// Two rings, each with a record that was reserved and never stored; the target cuts off what follows
/// the first.
#[test]
fn rings_that_are_not_there_any_more_are_counted() {
    let memfd = File::from(memfd_create(c"rings", MFdFlags::MFD_CLOEXEC).unwrap());
    let mut table = table();
    memfd.set_len(table.pool.len).unwrap();
    let pool = SharedWords::map(&memfd, table.pool.len as usize).unwrap();
    for ring in 0..2 {
        let cursor = ring_header_offset(ring, RECORDS_LOG2) / 8;
        pool.words()[cursor].store(STRIDE as u64, Ordering::Relaxed);
    }
    table.pool.at = pool.words().as_ptr() as u64;
    let memory = TargetMemory::open(std::process::id() as i32).unwrap();
    let whole = salvage(&table, &[], &memory, Vec::new()).unwrap();
    assert_eq!((whole.torn, whole.damaged), (2, 0));

    memfd.set_len(ring_offset(1, RECORDS_LOG2) as u64).unwrap();
    let cut = salvage(&table, &[], &memory, Vec::new()).unwrap();
    assert_eq!((cut.torn, cut.damaged), (1, 1));
}
