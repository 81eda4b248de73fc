//! How often each thread is stopped, and what is counted of it.
use super::attaching::{attach_with, choose};
use super::target::{Target, compile};
use hopscope_probe::live::install::{InstallOptions, Stores, host_has_bmi2};
use hopscope_probe::live::remove::{self, Reaped};
use hopscope_process::stop_times::{self, StopTimes};

/// Attaches to a process with so many threads beside its main one, and detaches.
fn stops_of(threads: usize) -> (i32, StopTimes, StopTimes) {
    let mut target = Target::start(&compile("threads"), &threads.to_string());
    assert_eq!(target.line(), "ready");
    let (plan, items) = choose(&target, &["kept_function"]);
    let options = InstallOptions {
        contexts: threads as u32,
        ring_records_log2: 8,
        bmi2: host_has_bmi2(),
        stores: Stores::Records,
        switchable: false,
        ordered_stamps: false,
        follow_forks: false,
        fused_stamps: true,
    };
    let installed = attach_with(&target, &plan, &items, &options).unwrap();
    // One ring less than threads: the last has none.
    assert_eq!(installed.threads.len(), threads);
    target.tell();
    assert_eq!(target.line(), "OK");
    let (memory, table) = (&installed.memory, &installed.table);
    remove::restore(target.pid(), memory, table, remove::Origin::Ourselves).unwrap();
    let reaped = remove::reap(target.pid(), memory, table, None).unwrap();
    assert_eq!(reaped, Reaped::Unmapped);
    let pid = target.pid();
    (pid, installed.stops.clone(), stop_times::take(pid))
}

fn counts(ledger: &StopTimes, main: i32) -> (usize, u64, u64) {
    let stops = |of_main| {
        let threads = ledger
            .threads()
            .filter(move |(tid, _)| (*tid == main) == of_main);
        threads.map(|(_, stops)| stops.stops).max().unwrap()
    };
    (ledger.threads().count(), stops(true), stops(false))
}

#[test]
fn a_few_threads_are_stopped_once_and_the_main_one_twice() {
    // On a machine that is busy with others a thread may have to be asked twice.
    let mut tries = (0..3).map(|_| stops_of(3));
    let expected = (4, 2, 1);
    let found = tries.find(|(pid, attach, _)| counts(attach, *pid) == expected);
    let (pid, attach, detach) = found.expect("stops at an attach: 1, of the main thread 2");
    // Entries, the search for references; by the main thread text is given back, and all unmapped.
    let (threads, of_main, of_others) = counts(&detach, pid);
    assert_eq!((threads, of_others), (4, 2));
    assert!((3..=5).contains(&of_main), "{of_main}");
    let totals = attach.totals(pid);
    assert!(totals.longest_ns > 0 && totals.longest_ns <= totals.sum_ns);
}

#[test]
fn of_many_threads_each_is_given_its_ring_in_a_stop_of_its_own() {
    let (pid, attach, _) = stops_of(40);
    assert_eq!(counts(&attach, pid), (41, 3, 2));
}
