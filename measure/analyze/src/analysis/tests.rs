use super::*;
use hopscope_event::{FunctionEntry, Record, RecordKind};

const FUNCTIONS: u32 = 5_000;
const THREADS: u32 = 500;

fn by_thread() -> Analysis {
    let entry = |id| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: format!("f{id}"),
        svma: 0,
        size: 1,
        file: None,
        line: None,
    };
    let functions: Vec<_> = (0..FUNCTIONS).map(entry).collect();
    let options = AnalysisOptions {
        group: Group::Thread,
        ..AnalysisOptions::default()
    };
    Analysis::new(Index::new(&functions, &[]), options)
}

/// The `n`th call of a thread, of this function.
fn call(analysis: &mut Analysis, thread: u32, function: u32, n: u64) {
    let record = |tsc, kind| Record::new(tsc, FunctionId(function), kind, 0x1000);
    analysis.feed(&Batch {
        thread: ThreadIx(thread),
        first_index: 2 * n,
        lost: 0,
        torn: 0,
        records: &[
            record(10 * n + 1, RecordKind::Entry),
            record(10 * n + 9, RecordKind::Exit),
        ],
        taken: &[],
        early: false,
    });
}

#[test]
fn threads_times_functions_is_not_what_by_thread_holds() {
    let mut analysis = by_thread();
    for n in 0..2 {
        (0..THREADS).for_each(|thread| call(&mut analysis, thread, thread * 7 % FUNCTIONS, n));
    }
    let held = &analysis.aggregate;
    let places = held.current.capacity() + held.looked_up.capacity() + held.row_of.capacity();
    assert!(places < (FUNCTIONS + 8 * THREADS) as usize, "{places}");
    let outcome = analysis.finish();
    assert_eq!(outcome.rows.len(), THREADS as usize);
    assert!(outcome.rows.iter().all(|row| row.stats.timed == 2));
}

#[test]
fn rows_beyond_the_bound_are_those_of_all_threads() {
    let mut analysis = by_thread();
    analysis.aggregate.rows_max = 10;
    for n in 0..2 {
        (0..THREADS).for_each(|thread| call(&mut analysis, thread, thread % 2, n));
    }
    let outcome = analysis.finish();
    assert_eq!(outcome.rows.len(), 12);
    let calls = |of_a_thread: bool| -> u64 {
        let rows = outcome.rows.iter();
        let rows = rows.filter(|row| row.key.thread.is_some() == of_a_thread);
        rows.map(|row| row.stats.timed).sum()
    };
    assert_eq!(
        (calls(true), calls(false)),
        (20, 2 * u64::from(THREADS) - 20)
    );
}
