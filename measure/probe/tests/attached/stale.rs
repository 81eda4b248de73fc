//! Old return addresses into probes, of threads that have no ring: whoever waits with them on its
//! stack is in no probe, and the process can be recorded again.
use super::attaching::{attach, choose};
use super::target::{Target, compile};
use hopscope_probe::live::remove::{self, Arena, Reaped};

#[test]
fn an_old_return_address_is_no_thread_in_a_probe() {
    let mut target = Target::start(&compile("stale"), "");
    assert_eq!(target.line(), "waiting");
    let (plan, items) = choose(&target, &["one_step"]);
    for round in 0..3 {
        // Two rings for five threads.
        let installed = attach(&target, &plan, &items, 14).unwrap();
        target.tell();
        assert_eq!(target.line(), "waiting");
        let (memory, table) = (&installed.memory, &installed.table);
        remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
        let reaped = remove::reap(target.pid(), memory, table, Some(Arena::Mapped)).unwrap();
        assert!(
            !matches!(reaped, Reaped::Kept(_)),
            "round {round}: {reaped:?}"
        );
    }
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}
