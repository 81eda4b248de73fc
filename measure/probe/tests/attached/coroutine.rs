//! A coroutine that is suspended in a copy when the recording ends goes on in it.
use super::attaching::{attach, choose};
use super::target::{Target, compile};
use hopscope_probe::live::remove::{self, Arena, Reaped};

fn suspended_in(memory_kind: &str) {
    let mut target = Target::start(&compile("coroutine"), memory_kind);
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["suspended"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    target.tell();
    assert_eq!(target.line(), "back");
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    let reaped = remove::reap(target.pid(), memory, table, Some(Arena::Mapped)).unwrap();
    target.tell();
    assert_eq!(target.line(), "back", "after {reaped:?}");
    assert!(matches!(reaped, Reaped::Retired(_)), "{reaped:?}");
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}

#[test]
fn below_the_running_stack_in_the_same_mapping() {
    suspended_in("private");
}

#[test]
fn in_shared_memory() {
    suspended_in("shared");
}
