//! The run builder against threads that know their runs.
mod passes;

use hopscope_analyze::{Batch, Index, Root, RootChoice, Run, RunCounts, RunOptions, Runs, Window};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, ProbeCost};
use passes::{FUNCTIONS, ROOT, TrueRun, World, acts};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn functions() -> Vec<FunctionEntry> {
    let entry = |id| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: format!("f{id}"),
        svma: u64::from(id),
        size: 1,
        file: None,
        line: None,
    };
    (0..FUNCTIONS).map(entry).collect()
}

fn built(world: &World, choice: RootChoice) -> (Vec<Run>, RunCounts) {
    let mut runs = Runs::new(
        Index::new(&functions(), &[]),
        RunOptions {
            root: Root {
                choice,
                suggested_because: None,
            },
            window: Window::default(),
            probe_cost: Some(ProbeCost::in_a_loop([1; 3], [3; 3])),
        },
    );
    let mut out = Vec::new();
    for batch in &world.batches {
        runs.feed(&Batch {
            thread: batch.thread,
            first_index: batch.first_index,
            lost: batch.lost,
            torn: 0,
            records: &batch.records,
            taken: &[],
            early: false,
        });
        while let Some(run) = runs.ready() {
            out.push(run);
        }
    }
    runs.finish();
    while let Some(run) = runs.ready() {
        out.push(run);
    }
    (out, *runs.counts())
}

fn key(run: &Run) -> (usize, Vec<passes::TrueCall>) {
    let calls = run.calls.iter();
    let calls = calls.map(|c| (c.function.0, c.depth, c.entry.0, c.exit.0));
    (run.thread.0 as usize, calls.collect())
}

fn check_run(run: &Run) -> Result<(), TestCaseError> {
    prop_assert_eq!(run.start, run.calls[0].entry);
    let outermost = run.calls.iter().filter(|c| c.depth == 0);
    if run.complete {
        prop_assert_eq!(Some(run.end), outermost.map(|c| c.exit).max());
    }
    for (at, call) in run.calls.iter().enumerate() {
        let callees = run.calls.iter().filter(|c| c.parent == Some(at as u32));
        let (n, below) = callees.fold((0, 0), |(n, t), c| (n + 1, t + c.ticks()));
        prop_assert_eq!(call.own_ticks, call.ticks() - below);
        if run.complete {
            prop_assert_eq!(call.own_corrected, call.own_ticks - 1 - n * 2);
        }
        if let Some(parent) = call.parent {
            let parent = run.calls[parent as usize];
            prop_assert_eq!(parent.depth + 1, call.depth);
            prop_assert!(parent.entry <= call.entry && call.exit <= parent.exit);
        }
    }
    Ok(())
}

fn check(world: &World, choice: RootChoice) -> Result<(), TestCaseError> {
    let (runs, counts) = built(world, choice);
    runs.iter().try_for_each(check_run)?;
    let is_loop = matches!(choice, RootChoice::PollingLoop(_));
    let idle = |run: &&TrueRun| is_loop && run.calls.len() == 1;
    let whole: Vec<_> = world.runs.iter().filter(|r| world.is_whole(r)).collect();
    let complete: BTreeSet<_> = runs.iter().filter(|r| r.complete).map(key).collect();
    let true_key = |r: &&TrueRun| (r.thread, r.calls.clone());
    let all: BTreeSet<_> = whole.iter().copied().map(|r| true_key(&r)).collect();
    prop_assert!(complete.is_subset(&all), "{:?} of {:?}", complete, all);
    let lossy = |thread| world.lost.iter().any(|(t, _, _)| *t == thread);
    for run in whole.iter().filter(|r| !idle(r)) {
        let doubtful = run.below_others && lossy(run.thread);
        prop_assert!(doubtful || complete.contains(&true_key(run)), "{:?}", run);
    }
    prop_assert_eq!(
        counts.idle_passes,
        whole.iter().filter(|r| idle(r)).count() as u64
    );

    // A run of which anything was lost or that goes on is given out as such, if its begin is there.
    for run in world.runs.iter().filter(|r| !world.is_whole(r)) {
        if !world.was_lost(run.thread, run.records.0) {
            let is_it = |r: &&Run| r.thread.0 as usize == run.thread && r.start.0 == run.start();
            let given = runs.iter().find(is_it);
            prop_assert!(
                given.is_some_and(|r| !r.complete),
                "{:?} is {:?}",
                run,
                given
            );
        }
    }
    prop_assert_eq!(counts.runs, runs.len() as u64);
    prop_assert_eq!(counts.runs, counts.complete + counts.incomplete());
    prop_assert_eq!(
        counts.complete,
        runs.iter().filter(|r| r.complete).count() as u64
    );
    for (at, run) in runs.iter().enumerate() {
        prop_assert_eq!(run.ix.0, at as u64);
    }
    // A run that has no end may be told late; those that have one never are.
    if !is_loop {
        let ends: Vec<_> = runs.iter().filter(|r| r.complete).map(|r| r.end).collect();
        prop_assert!(ends.is_sorted());
    }
    let disorder = runs.windows(2).filter(|w| w[1].end < w[0].end).count();
    prop_assert!(disorder == 0 || counts.out_of_order > 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn runs_of_a_root_function_are_the_true_ones(acts in acts(3)) {
        let world = World::new(3, false).run(&acts);
        check(&world, RootChoice::Function(FunctionId(ROOT)))?;
    }

    #[test]
    fn passes_of_a_polling_loop_are_the_true_ones(acts in acts(1)) {
        let world = World::new(1, true).run(&acts);
        check(&world, RootChoice::PollingLoop(FunctionId(ROOT)))?;
    }

    #[test]
    fn passes_of_several_loops_are_the_true_ones(acts in acts(3)) {
        let world = World::new(3, true).run(&acts);
        let (runs, counts) = built(&world, RootChoice::PollingLoop(FunctionId(ROOT)));
        let disorder = runs.windows(2).filter(|w| w[1].end < w[0].end).count();
        prop_assert!(disorder == 0 || counts.out_of_order > 0);
    }
}
