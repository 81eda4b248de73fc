//! Two rings for threads that come and go: whoever ends gives its ring back, though it never made a
//! measured call, and though it knows itself by another number (a nested pid namespace).
use super::attaching::{attach, choose, reap};
use super::target::{Target, compile};
use hopscope_event::ProcessIx;
use hopscope_event::ring::Visit;
use hopscope_probe::live::remove;
use hopscope_probe::recorder::{self, Numbers};
use hopscope_trace::TraceWriter;

fn rings_come_back(mut target: Target) {
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["one_step"]);
    let installed = attach(&target, &plan, &items, 14).unwrap();
    let meta = installed.table.meta.clone();
    let mut recorded = recorder::Target::new(installed, ProcessIx(0));
    let mut sink = TraceWriter::new(Vec::new(), &meta).unwrap();
    let (mut numbers, mut buffer) = (Numbers::default(), Vec::new());
    for _ in 0..4 {
        target.tell();
        assert_eq!(target.line(), "gone");
        recorded
            .drain(Visit::Live, &mut numbers, &mut buffer, &mut sink)
            .unwrap();
        recorded
            .recycle(&mut numbers, &mut buffer, &mut sink)
            .unwrap();
    }
    assert_eq!(recorded.calls_unmeasured(), 0);
    assert_eq!(recorded.counts.recorded, 3 * 2000);
    let (memory, table) = (&recorded.installed.memory, &recorded.installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    reap(&recorded.installed);
    target.close_input();
    assert_eq!(target.exit_code(), Some(0));
}

#[test]
fn of_threads_that_made_no_call() {
    rings_come_back(Target::start(&compile("silent"), ""));
}

#[test]
fn in_a_nested_pid_namespace() {
    match Target::start_nested(&compile("silent")) {
        Some(target) => rings_come_back(target),
        None => println!("SKIP: no pid namespace can be made here"),
    }
}
