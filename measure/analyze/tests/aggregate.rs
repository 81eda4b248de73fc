//! From batches to rows and paths: recursion, modules, gaps between batches, windows.
use RecordKind::{Entry, Exit, TailExit};
use hopscope_analyze::tree::Parent;
use hopscope_analyze::{
    Analysis, AnalysisOptions, AnalysisResult, Batch, Group, Index, Quantile, Window,
};
use hopscope_event::table::ModuleIx;
use hopscope_event::{
    FunctionEntry, FunctionId, ProcessIx, Record, RecordKind, ThreadEntry, ThreadIx, Tsc,
};

fn index() -> Index {
    let function = |id: u32| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(id / 2),
        name: format!("f{id}"),
        svma: u64::from(id),
        size: 1,
        file: None,
        line: None,
    };
    let thread = |ix: u32| ThreadEntry {
        ix: ThreadIx(ix),
        process: ProcessIx(ix / 2),
        tid: 100 + ix as i32,
        comm: String::new(),
    };
    let functions: Vec<_> = (0..4).map(function).collect();
    let threads: Vec<_> = (0..4).map(thread).collect();
    Index::new(&functions, &threads)
}

/// `(tick, kind, function, depth)`
fn records(events: &[(u64, RecordKind, u32, u32)]) -> Vec<Record> {
    let record = |&(tsc, kind, function, depth): &(u64, RecordKind, u32, u32)| {
        Record::new(tsc, FunctionId(function), kind, 0x7000_0000 - depth * 32)
    };
    events.iter().map(record).collect()
}

fn batch(first_index: u64, records: &[Record]) -> Batch<'_> {
    Batch {
        thread: ThreadIx(0),
        first_index,
        lost: 0,
        torn: 0,
        records,
        taken: &[],
        early: false,
    }
}

fn analyzed(options: AnalysisOptions, batches: &[Batch<'_>]) -> AnalysisResult {
    let mut analysis = Analysis::new(index(), options);
    batches.iter().for_each(|b| analysis.feed(b));
    let outcome = analysis.finish();
    assert!(outcome.balance.holds());
    assert!(outcome.rows.iter().all(|r| r.stats.balance.holds()));
    outcome
}

fn by(group: Group) -> AnalysisOptions {
    AnalysisOptions {
        group,
        ..AnalysisOptions::default()
    }
}

fn stats(outcome: &AnalysisResult, function: u32) -> &hopscope_analyze::Stats {
    let is_it = |r: &&hopscope_analyze::Row| r.key.function == Some(FunctionId(function));
    &outcome.rows.iter().find(is_it).expect("it has a row").stats
}

#[test]
fn recursion_counts_once_in_the_total_and_each_call_in_the_distribution() {
    let events = [
        (0, Entry, 0, 0),
        (10, Entry, 1, 1),
        (20, Entry, 0, 2),
        (70, Exit, 0, 2),
        (90, Exit, 1, 1),
        (100, Exit, 0, 0),
    ];
    let outcome = analyzed(by(Group::Function), &[batch(0, &records(&events))]);
    let f0 = stats(&outcome, 0);
    assert_eq!((f0.outer_ticks, f0.self_ticks, f0.timed), (100, 20 + 50, 2));
    assert_eq!(f0.inclusive.quantile(500), Quantile::Ticks(50));
    assert_eq!(f0.inclusive.max(), Quantile::Ticks(100));
    assert_eq!(stats(&outcome, 1).self_ticks, 30);
}

#[test]
fn recursion_three_thousand_deep_exceeds_the_tree_and_is_still_right() {
    const DEPTH: u64 = 3000;
    let down = (0..DEPTH).map(|d| (d, Entry, 0, d as u32));
    let up = (0..DEPTH).rev().map(|d| (2 * DEPTH - d, Exit, 0, d as u32));
    let events: Vec<_> = down.chain(up).collect();
    let outcome = analyzed(by(Group::Function), &[batch(0, &records(&events))]);
    let f0 = stats(&outcome, 0);
    assert_eq!((f0.timed, f0.outer_calls), (DEPTH, 1));
    assert_eq!(f0.outer_ticks, 2 * i128::from(DEPTH));
    assert_eq!(f0.self_ticks, 2 * i128::from(DEPTH));
    assert!(outcome.tree.beyond() > 0 && outcome.tree.beyond() < DEPTH);
    let paths: u64 = outcome.tree.nodes().iter().map(|n| n.calls).sum();
    assert_eq!(paths, DEPTH);
    // The row of calls that are too deep: their outermost call has the time of all of them.
    let beyond = outcome.tree.nodes().iter();
    let beyond: Vec<_> = beyond.filter(|n| n.parent == Parent::Beyond).collect();
    assert_eq!((beyond.len(), beyond[0].outer_calls), (1, 1));
    assert_eq!(beyond[0].ticks, 2 * i128::from(outcome.tree.beyond()));
    assert_eq!(beyond[0].ticks, beyond[0].self_ticks);
    assert_eq!(beyond[0].descendants.calls, outcome.tree.beyond() - 1);
}

#[test]
fn a_module_counts_from_outside() {
    // f0 and f1 are of one module, f2 of another: f0 → f1 → f2 → f1.
    let events = [
        (0, Entry, 0, 0),
        (10, Entry, 1, 1),
        (20, Entry, 2, 2),
        (30, Entry, 1, 3),
        (40, Exit, 1, 3),
        (60, Exit, 2, 2),
        (80, Exit, 1, 1),
        (100, Exit, 0, 0),
    ];
    let outcome = analyzed(by(Group::Module), &[batch(0, &records(&events))]);
    let module = |ix| {
        let is_it = |r: &&hopscope_analyze::Row| r.key.module == Some(ModuleIx(ix));
        &outcome.rows.iter().find(is_it).expect("it has a row").stats
    };
    assert_eq!((module(0).outer_ticks, module(0).outer_calls), (100, 1));
    assert_eq!((module(0).self_ticks, module(0).timed), (100 - 30, 3));
    assert_eq!((module(1).outer_ticks, module(1).self_ticks), (40, 30));
}

#[test]
fn a_tail_call_is_a_sibling_with_a_link() {
    let events = [
        (0, Entry, 0, 0),
        (10, Entry, 1, 1),
        (30, TailExit, 1, 1),
        (31, Entry, 2, 1),
        (50, Exit, 2, 1),
        (100, Exit, 0, 0),
    ];
    let outcome = analyzed(by(Group::Function), &[batch(0, &records(&events))]);
    let is_it = |n: &&hopscope_analyze::Node| n.function == FunctionId(2);
    let node = outcome
        .tree
        .nodes()
        .iter()
        .find(is_it)
        .expect("it was called");
    assert_eq!((node.tail_called, node.tail_from), (1, Some(FunctionId(1))));
    assert!(matches!(node.parent, Parent::Node(ix) if outcome.tree.node(ix).function.0 == 0));
    assert_eq!(stats(&outcome, 0).self_ticks, 100 - 20 - 19);
    assert_eq!(outcome.balance.tail_exits, 1);
}

#[test]
fn a_gap_cuts_open_calls_and_the_callers_stay_unknown() {
    let before = records(&[(0, Entry, 0, 0), (10, Entry, 1, 1)]);
    let after = records(&[
        (50, Exit, 1, 1),
        (60, Entry, 2, 1),
        (70, Exit, 2, 1),
        (100, Exit, 0, 0),
        (110, Entry, 0, 0),
        (120, Exit, 0, 0),
    ]);
    let lost = Batch {
        lost: 6,
        ..batch(8, &after)
    };
    let torn = Batch {
        torn: 1,
        ..batch(2, &after)
    };
    let missing = batch(9, &after);
    for (second, expected) in [(lost, (6, 0, 0)), (torn, (0, 1, 0)), (missing, (0, 0, 7))] {
        let outcome = analyzed(by(Group::Function), &[batch(0, &before), second]);
        let o = outcome.oddities;
        assert_eq!((o.lost, o.torn, o.missing), expected);
        assert_eq!(o.gaps, 1);
        let b = outcome.balance;
        assert_eq!((b.cut, b.ends_cut, b.exits), (2, 2, 2));
        let parents: Vec<_> = outcome
            .tree
            .nodes()
            .iter()
            .map(|n| (n.function.0, n.parent))
            .collect();
        assert!(parents.contains(&(2, Parent::AfterGap)));
        assert!(
            !parents.contains(&(0, Parent::AfterGap)),
            "its position was known before"
        );
    }
}

#[test]
fn a_long_batch_cut_by_the_writer_has_no_gap_inside() {
    let all = records(&[
        (0, Entry, 0, 0),
        (9, Exit, 0, 0),
        (10, Entry, 0, 0),
        (20, Exit, 0, 0),
    ]);
    let torn = Batch {
        torn: 1,
        ..batch(5, &all[..1])
    };
    // The torn slot lies in the middle of the second part, and the next batch follows it.
    let batches = [torn, batch(6, &all[1..3]), batch(9, &all[3..])];
    let outcome = analyzed(by(Group::Function), &batches);
    assert_eq!((outcome.oddities.gaps, outcome.oddities.missing), (1, 0));
    assert_eq!(outcome.balance.exits, 2);
}

#[test]
fn adjoining_windows_add_up() {
    let events: Vec<_> = (0..100u64)
        .flat_map(|n| [(n * 10, Entry, 0, 0), (n * 10 + 15 % 10, Exit, 0, 0)])
        .chain([(1000, Entry, 1, 0)])
        .collect();
    let records = records(&events);
    let part = |from, to| {
        let window = Window { from, to };
        let options = AnalysisOptions {
            window,
            ..AnalysisOptions::default()
        };
        analyzed(options, &[batch(0, &records)]).balance
    };
    let mut sum = part(None, Some(Tsc(333)));
    sum += part(Some(Tsc(333)), None);
    assert_eq!(sum, part(None, None));
    assert_eq!(part(Some(Tsc(20)), Some(Tsc(40))).entries, 2);
}

#[test]
fn threads_and_processes_have_rows_of_their_own() {
    let records = records(&[(0, Entry, 0, 0), (5, Exit, 0, 0)]);
    let batches: Vec<_> = [0, 1, 2, 0]
        .into_iter()
        .scan([0u64; 3], |next, thread| {
            let first_index = next[thread];
            next[thread] += 2;
            Some(Batch {
                thread: ThreadIx(thread as u32),
                ..batch(first_index, &records)
            })
        })
        .collect();
    let rows = |group| {
        let outcome = analyzed(by(group), &batches);
        let of = |r: &hopscope_analyze::Row| (r.key.process, r.key.thread, r.stats.timed);
        let mut rows: Vec<_> = outcome.rows.iter().map(of).collect();
        rows.sort();
        rows
    };
    let (p, t) = (|ix| Some(ProcessIx(ix)), |ix| Some(ThreadIx(ix)));
    assert_eq!(rows(Group::Function), [(None, None, 4)]);
    assert_eq!(rows(Group::Process), [(p(0), None, 3), (p(1), None, 1)]);
    assert_eq!(
        rows(Group::Thread),
        [(p(0), t(0), 2), (p(0), t(1), 1), (p(1), t(2), 1)]
    );
}

#[test]
fn a_clock_that_runs_backwards_is_counted_and_not_timed() {
    let events = [
        (50, Entry, 0, 0),
        (60, Entry, 1, 1),
        (40, Exit, 1, 1),
        (90, Exit, 0, 0),
    ];
    let outcome = analyzed(by(Group::Function), &[batch(0, &records(&events))]);
    assert_eq!(
        (outcome.oddities.negative, outcome.oddities.inversions),
        (1, 1)
    );
    assert_eq!((outcome.balance.exits, stats(&outcome, 1).timed), (2, 0));
    assert_eq!(stats(&outcome, 0).self_ticks, 40);
}

#[test]
fn records_that_mean_nothing_are_counted() {
    let mut all = records(&[
        (1, Entry, 0, 0),
        (2, Entry, 99, 1),
        (3, Entry, 1, 1),
        (4, Exit, 0, 0),
    ]);
    all[2].id_kind |= 7;
    let outcome = analyzed(by(Group::Function), &[batch(0, &all)]);
    assert_eq!((outcome.oddities.unknown, outcome.balance.exits), (2, 1));
}
