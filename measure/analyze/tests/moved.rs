//! Coroutines that move between threads, against programs that know the truth: no call is stated that was none.
mod moving;

use RecordKind::{Entry, Exit};
use hopscope_analyze::OwnedBatch;
use hopscope_analyze::balance::Orphan;
use hopscope_event::{FunctionId, Record, RecordKind, ThreadIx};
use moving::world::{World, acts, frames, overwritten};
use moving::{CO, NATIVE, Seen, Timed, in_order, index, seen};
use proptest::prelude::*;

type Event = (u64, RecordKind, u32, u32);

/// Batches of threads: `(thread, [(tick, kind, function, place)])`.
fn batches(of: &[(u32, &[Event])]) -> Vec<OwnedBatch> {
    let mut next = [0u64; 8];
    let batch = |(thread, records): &(u32, &[Event])| {
        let record =
            |&(tsc, kind, function, rsp): &Event| Record::new(tsc, FunctionId(function), kind, rsp);
        let records: Vec<_> = records.iter().map(record).collect();
        let first_index = next[*thread as usize];
        next[*thread as usize] += records.len() as u64;
        OwnedBatch::new(ThreadIx(*thread), first_index, records)
    };
    of.iter().map(batch).collect()
}

fn times(seen: &Seen) -> Vec<(u32, u64, u64)> {
    seen.calls
        .iter()
        .map(|c| (c.function, c.entry, c.exit))
        .collect()
}

#[test]
fn two_calls_that_move_are_not_taken_for_one() {
    // Alone, the first thread's records would make one call from 10 to 40.
    let file = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Exit, 1, CO), (30, Entry, 1, CO)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), []);
    let b = totals.balance;
    assert_eq!((b.entries, b.moved, b.open_at_end), (2, 1, 1));
    assert_eq!((b.ends_moved, b.ends_open_at_start), (2, 0));
}

#[test]
fn a_call_that_comes_back_is_not_stated_without_what_it_called_elsewhere() {
    let file = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Entry, 2, CO - 64), (30, Exit, 2, CO - 64)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(2, 20, 30)]);
    assert_eq!((totals.balance.moved, totals.balance.ends_moved), (1, 1));
}

#[test]
fn what_ended_elsewhere_is_no_caller() {
    let file = batches(&[
        (0, &[(10, Entry, 1, CO)]),
        (1, &[(20, Exit, 1, CO), (21, Entry, 2, CO)]),
        (0, &[(30, Entry, 3, CO - 64), (31, Exit, 3, CO - 64)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(3, 30, 31)]);
    assert_eq!(seen.calls[0].caller, None);
    assert_eq!((totals.balance.moved, totals.balance.open_at_end), (1, 1));
}

#[test]
fn the_time_of_a_caller_whose_callee_ended_elsewhere_is_not_known() {
    // Farther apart than what counts as the same call's stack.
    let deep = CO - 5000;
    let file = batches(&[
        (
            0,
            &[(10, Entry, 1, CO), (11, Entry, 2, deep), (40, Exit, 1, CO)],
        ),
        (1, &[(20, Exit, 2, deep)]),
    ]);
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), []);
    assert_eq!((totals.balance.moved, totals.balance.ends_moved), (2, 2));
}

#[test]
fn records_that_are_lost_may_have_ended_the_call() {
    let mut file = batches(&[
        (0, &[(10, Entry, 1, CO)]),
        (1, &[(15, Exit, 1, CO), (16, Entry, 1, CO)]),
        (0, &[(20, Exit, 1, CO), (21, Entry, 1, CO)]),
        (1, &[(30, Entry, 2, NATIVE), (31, Exit, 2, NATIVE)]),
        (0, &[(40, Exit, 1, CO)]),
    ]);
    // Thread 1 may have ended the call that began at 21, and begun the one that ended at 40.
    file[3].lost = 2;
    file[3].first_index += 2;
    let (seen, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(2, 30, 31)]);
    assert_eq!(totals.balance.ends_moved, 3);
}

#[test]
fn what_is_lost_without_a_record_behind_it_is_waited_for() {
    let mut file = batches(&[
        (0, &[(10, Entry, 1, CO - 16), (11, Exit, 1, CO - 16)]),
        (
            1,
            &[
                (20, Entry, 1, CO - 16),
                (25, Entry, 2, CO - 64),
                (30, Exit, 2, CO - 64),
                (40, Exit, 1, CO - 16),
            ],
        ),
        (0, &[]),
        (0, &[(50, Entry, 3, NATIVE), (51, Exit, 3, NATIVE)]),
    ]);
    // Thread 0 may have been on that stack until 50: when the loss is read, it is not known yet up to when.
    file[2].lost = 2;
    file[2].first_index += 2;
    file[3].first_index += 2;
    let (seen, _) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&seen), [(1, 10, 11), (3, 50, 51)]);
}

#[test]
fn other_processes_and_stacks_beside_are_apart() {
    let other_process = batches(&[
        (0, &[(10, Entry, 1, CO), (40, Exit, 1, CO)]),
        (1, &[(20, Entry, 1, CO), (30, Exit, 1, CO)]),
    ]);
    let two = seen(&index(2, 2), 2, &other_process).0;
    assert_eq!(times(&two), [(1, 10, 40), (1, 20, 30)]);
    // Stacks of 8 KiB in turn on two threads that never exchange them.
    let file = batches(&[
        (
            0,
            &[
                (10, Entry, 1, CO),
                (15, Entry, 2, CO - 16384),
                (40, Exit, 1, CO),
                (41, Exit, 2, CO - 16384),
            ],
        ),
        (1, &[(20, Entry, 1, CO - 8192), (30, Exit, 1, CO - 8192)]),
    ]);
    let (small, totals) = seen(&index(2, 1), 2, &file);
    assert_eq!(times(&small), [(1, 10, 40), (2, 15, 41), (1, 20, 30)]);
    assert_eq!(totals.balance.calls_moved(), 0);
}

/// A stack that the next thread gets when the one before has ended costs nothing and concerns nobody.
#[test]
fn a_stack_inherited_by_the_next_thread_is_not_shared() {
    let file = batches(&[
        (0, &[(10, Entry, 1, NATIVE), (20, Exit, 1, NATIVE)]),
        (1, &[(5, Entry, 1, CO)]),
        (2, &[(30, Entry, 1, NATIVE), (40, Exit, 1, NATIVE)]),
        (1, &[(50, Exit, 1, CO)]),
    ]);
    for (batch, passed_on) in file.iter().zip(in_order(&index(3, 1), 3, &file)) {
        let known = |b: &OwnedBatch| (b.thread, b.first_index, b.records.clone());
        assert_eq!(known(&passed_on), known(batch), "in the order of the file");
        // Only that there was somebody before, in the page and in the one above.
        assert!(passed_on.taken.len() <= 2);
    }
    let (seen, totals) = seen(&index(3, 1), 3, &file);
    assert_eq!(times(&seen), [(1, 5, 50), (1, 10, 20), (1, 30, 40)]);
    assert_eq!(totals.balance.calls_moved(), 0);
}

proptest! {
    /// Whatever is stated of a call is so: when it began and ended, how many it called, and who called it.
    #[test]
    fn no_call_is_stated_that_was_none(acts in acts(0), frame in frames()) {
        let world = World::run(&acts, false, frame);
        let (seen, totals) = world.seen();
        for call in &seen.calls {
            let Some(truth) = world.call(call.entry) else {
                return Err(TestCaseError::fail(format!("{call:?} has not returned")));
            };
            let known = |of: &Timed| (of.function, of.exit, of.callees);
            prop_assert_eq!(known(call), known(&truth));
            prop_assert!(call.caller.is_none() || call.caller == truth.caller);
        }
        prop_assert_eq!(seen.calls.len() + seen.orphans.len(), world.calls.len());
        prop_assert!(totals.balance.ends_moved >= world.moved);
        prop_assert_eq!(totals.balance.ends_open_at_start, 0);
    }

    /// Nor where stacks are given up unfinished and calls are left by jumps: nothing that comes later at their
    /// place ends them.
    #[test]
    fn what_is_left_unfinished_pairs_with_nothing(acts in acts(1), frame in frames()) {
        let world = World::run(&acts, false, frame);
        let (seen, _) = world.seen();
        for call in &seen.calls {
            let truth = world.call(call.entry).map(|t| (t.function, t.exit));
            prop_assert_eq!(truth, Some((call.function, call.exit)));
        }
        prop_assert_eq!(seen.calls.len() + seen.orphans.len(), world.calls.len());
        prop_assert!(seen.orphans.iter().all(|(_, orphan)| *orphan == Orphan::Moved));
    }

    /// Nor where records are lost, on stacks that are known to move.
    #[test]
    fn what_may_have_moved_in_lost_records_is_not_stated(acts in overwritten(), frame in 16..40u32) {
        let world = World::run(&acts, false, frame);
        let (seen, _) = world.seen();
        for call in &seen.calls {
            let truth = world.call(call.entry).map(|t| (t.function, t.exit, t.callees));
            prop_assert_eq!(truth, Some((call.function, call.exit, call.callees)));
        }
    }

    /// Where stacks stay with their threads every call is found, whatever else runs beside.
    #[test]
    fn where_nothing_moves_every_call_is_found(acts in acts(0), frame in frames()) {
        let world = World::run(&acts, true, frame);
        let (seen, totals) = world.seen();
        let stated: Vec<_> = seen.calls.iter().map(|c| (c.entry, c.function, c.exit)).collect();
        let truth: Vec<_> = world.calls.iter().map(|c| (c.entry, c.function, c.exit)).collect();
        prop_assert_eq!(stated, truth);
        prop_assert_eq!(totals.balance.calls_moved(), 0);
        prop_assert!(seen.orphans.is_empty());
    }
}
