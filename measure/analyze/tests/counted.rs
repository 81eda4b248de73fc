//! Counts of calls against programs that know whose work was counted.
#[path = "counted/program.rs"]
mod program;

use hopscope_analyze::{
    Analysis, AnalysisOptions, AnalysisResult, Batch, CounterStats, Index, LeftOutCalls,
};
use hopscope_event::table::ModuleIx;
use hopscope_event::{FunctionEntry, FunctionId, Record, ThreadIx};
use program::{Act, FUNCTIONS, Program, Truth, acts, counters};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn analyzed(records: &[Record]) -> AnalysisResult {
    let function = |id| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: String::new(),
        svma: 0,
        size: 0,
        file: None,
        line: None,
    };
    let functions: Vec<_> = (0..FUNCTIONS).map(function).collect();
    let index = Index::new(&functions, &[]).with_counters(&counters());
    let mut analysis = Analysis::new(index, AnalysisOptions::default());
    analysis.feed(&Batch {
        thread: ThreadIx(0),
        first_index: 0,
        lost: 0,
        torn: 0,
        records,
        taken: &[],
        early: false,
    });
    analysis.finish()
}

fn told(stats: &CounterStats, counter: usize) -> Truth {
    let reasons = |left_out: &LeftOutCalls| left_out.reasons().collect::<BTreeMap<_, _>>();
    let counters = counters();
    let cost = counters[counter].cost.as_ref();
    Truth {
        calls: stats.calls,
        left_out: reasons(&stats.left_out),
        own_left_out: reasons(&stats.own_left_out),
        mixed_calls: stats.mixed_calls,
        total_calls: stats.total.calls,
        total_raw: stats.total.raw,
        total: stats.total.corrected(cost).expect("the cost is known"),
        own_calls: stats.own.calls,
        own_raw: stats.own.raw,
        own: stats.own.corrected(cost).expect("the cost is known"),
    }
}

/// By function and counter.
fn all_told(program: &Program) -> (BTreeMap<(u32, usize), Truth>, u64) {
    let outcome = analyzed(&program.records);
    let mut all = BTreeMap::new();
    for row in &outcome.rows {
        let function = row.key.function.expect("rows are of functions").0;
        for counter in 0..2 {
            if let Some(stats) = row.stats.counter(counter as u8) {
                all.insert((function, counter), told(stats, counter));
            }
        }
    }
    (all, outcome.oddities.readings_homeless)
}

proptest! {
    /// Preemptions, multiplexed counters, counters opened late, tail calls, frames left by longjmp, functions
    /// without a counter: as read and corrected, total and own.
    #[test]
    fn counts_are_those_of_the_work(acts in acts(true, false), open_after in 0usize..20) {
        let program = Program::run(&acts, open_after);
        let (told, homeless) = all_told(&program);
        prop_assert_eq!(told, program.truth);
        prop_assert_eq!(homeless, 0);
    }

    /// Coroutines: what other stacks counted is in no own count.
    #[test]
    fn suspended_calls_have_no_own_count(acts in acts(false, true), open_after in 0usize..20) {
        let program = Program::run(&acts, open_after);
        let (mut told, _) = all_told(&program);
        let mut truth = program.truth;
        // In the total are the other stack's probes, too.
        told.values_mut().chain(truth.values_mut()).for_each(|t| t.total = 0);
        prop_assert_eq!(told, truth);
    }
}

/// The cases that the properties are about do come up.
#[test]
fn the_programs_are_worth_it() {
    use hopscope_analyze::LeftOut::{NotCounting, NotOpened, Rescheduled, Suspended};
    let call = |function| Act::Call { function };
    let acts = [
        call(1),
        call(3),
        Act::Work { events: 5 },
        Act::Return,
        Act::Return,
        call(3),
        call(2),
        Act::Preempt,
        Act::Switch { function: 3 },
        Act::Return,
        Act::Switch { function: 1 },
        Act::Multiplex,
        Act::Return,
        Act::Multiplex,
        Act::Return,
        Act::Return,
        call(1),
        call(0),
        Act::Return,
        Act::Return,
    ];
    let truth = Program::run(&acts, 3).truth;
    let left_out = truth
        .values()
        .flat_map(|t| t.left_out.keys().chain(t.own_left_out.keys()));
    let reasons: std::collections::BTreeSet<_> = left_out.copied().collect();
    assert_eq!(
        reasons,
        [Rescheduled, NotCounting, NotOpened, Suspended].into()
    );
    assert!(truth.values().any(|t| t.mixed_calls > 0));
}
