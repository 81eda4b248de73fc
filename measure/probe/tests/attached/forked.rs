//! A child that was forked while its parent was measured has the same patched entries and copies.
use super::attaching::{attach, choose, reap};
use super::target::{Target, compile};
use hopscope_event::record::Record;
use hopscope_event::ring::Visit;
use hopscope_probe::live::remove;
use hopscope_probe::live::table::State;
use hopscope_process::memory::TargetMemory;

#[test]
fn a_forked_child_is_put_back_with_its_parent() {
    let mut target = Target::start(&compile("forked"), "");
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["one_step"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    let (memory, table) = (&installed.memory, &installed.table);
    target.tell();
    let child: i32 = target.line().parse().unwrap();
    // It has made a thousand calls, and its parent one before: the child finds no ring, least of all
    // its parent's.
    let pool = installed.pool();
    let mut records: Vec<Record> = Vec::new();
    for ring in (0..pool.contexts()).filter_map(|n| pool.ring(n)) {
        ring.drain(
            &mut Default::default(),
            Visit::Live,
            usize::MAX,
            &mut records,
        );
    }
    assert_eq!(records.len(), 2);
    // Through a shared mapping of the copies a child could change what its parent runs.
    let maps = std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap();
    let arena: Vec<&str> = maps
        .lines()
        .filter(|l| l.contains("/memfd:hopscope-code"))
        .collect();
    assert!(arena.len() >= 2, "{maps}");
    for line in arena {
        assert!(line.contains(" r-xp ") || line.contains(" r--p "), "{line}");
    }
    let childs = TargetMemory::open(child).unwrap();
    let entry = |memory: &TargetMemory| {
        let mut bytes = [0; 5];
        memory.read(table.patches[0].at, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(entry(&childs), table.patches[0].replaced);
    let (pid, inode) = (target.pid(), installed.arena_inode);
    let done = remove::restore_all(
        pid,
        memory,
        table,
        inode,
        State::Patched,
        remove::Origin::Ourselves,
    )
    .unwrap();
    assert_eq!(done.restored, 1);
    let said = format!("process {child}: a forked child, restored too");
    assert_eq!(done.notes, [said]);
    assert_eq!(entry(memory), table.patches[0].original);
    assert_eq!(entry(&childs), table.patches[0].original);
    let notes = reap(&installed);
    target.tell();
    assert_eq!(target.exit_code(), Some(0), "{notes:?}");
}
