//! Pairing against programs that know the truth.
mod program;

use hopscope_analyze::balance::{Balance, Fate, Orphan};
use hopscope_analyze::pair::{Call, Enter, Gap, Mark, Pairer, Sink};
use hopscope_event::{Content, FunctionId, Record, RecordKind, Value};
use program::{AT_ENTRY, AT_RETURN, Batch, FUNCTIONS, Habits, IN_BODY, Program, TrueCall, acts};
use proptest::prelude::*;

/// Frames soon lie across the wrap of the low half of rsp.
const MAIN: u32 = 0x0000_0100;
/// Megabytes apart, one of them across the wrap of the low half of rsp.
const FAR: [u32; 4] = [0x8fff_e000, 0x1000_0000, 0x2000_0400, 0x0000_0040];
/// Side by side, as coroutine libraries allocate them.
const CLOSE: [u32; 5] = [MAIN, 0x1008_0000, 0x1010_0000, 0x1018_0000, 0x1020_0000];

#[derive(Default)]
struct Seen {
    balance: Balance,
    per_function: Vec<Balance>,
    calls: Vec<(TrueCall, i64)>,
    /// Entry stamp and caller's entry stamp by mark.
    entered: Vec<Option<u64>>,
    stamps: Vec<u64>,
    /// Captures and entry stamps of the calls they were told of, and those they were made in.
    values: Vec<(u16, u64, u64)>,
}

impl Seen {
    fn of(batches: &[Batch]) -> (Seen, hopscope_analyze::Oddities) {
        let mut seen = Seen {
            per_function: vec![Balance::default(); FUNCTIONS as usize],
            ..Seen::default()
        };
        let mut pairer = Pairer::new();
        for batch in batches {
            let gap = Gap {
                lost: batch.lost,
                ..Gap::default()
            };
            pairer.gap(gap, &mut seen);
            for record in &batch.records {
                pairer.feed(*record, &mut seen);
            }
        }
        let oddities = pairer.finish(&mut seen);
        (seen, oddities)
    }

    fn count(&mut self, function: FunctionId, change: impl Fn(&mut Balance)) {
        change(&mut self.balance);
        change(&mut self.per_function[function.0 as usize]);
    }

    fn holds(&self) -> bool {
        self.balance.holds() && self.per_function.iter().all(Balance::holds)
    }

    /// Values told of a call that they were not made in, by where they were captured.
    fn misplaced(&self, at: &[u16]) -> usize {
        let wrong = |(capture, told, made): &&(u16, u64, u64)| at.contains(capture) && told != made;
        self.values.iter().filter(wrong).count()
    }

    fn told(&self, at: &[u16]) -> usize {
        self.values.iter().filter(|v| at.contains(&v.0)).count()
    }

    fn sorted(&self) -> Vec<TrueCall> {
        let mut calls: Vec<_> = self.calls.iter().map(|(c, _)| *c).collect();
        calls.sort();
        calls
    }
}

impl Sink for Seen {
    fn enter(&mut self, enter: Enter<'_>) -> Mark {
        self.count(enter.function, |b| b.entries += 1);
        // The caller whose clock was already running, as the truth has it.
        let callers = enter.open.iter().rev();
        let stamps = callers.map(|f| self.stamps[mark_of(f) as usize]);
        let caller = stamps.clone().find(|stamp| *stamp <= enter.tsc);
        self.entered.push(caller);
        self.stamps.push(enter.tsc);
        Mark {
            node: self.stamps.len() as u32 - 1,
            ..Mark::default()
        }
    }

    fn call(&mut self, call: &Call) {
        self.count(call.function, |b| match call.tail {
            true => b.tail_exits += 1,
            false => b.exits += 1,
        });
        let seen = TrueCall {
            function: call.function.0,
            entry: call.entry,
            exit: call.entry.wrapping_add(call.inclusive as u64),
            callee_ticks: call.callee_ticks as u64,
            callees: call.callees.calls,
            caller: self.entered[call.mark.node as usize],
        };
        self.calls.push((seen, call.inclusive));
    }

    fn fate(&mut self, function: FunctionId, _: Mark, _: u64, fate: Fate) {
        self.count(function, |b| b.add_fate(fate));
    }

    fn orphan(&mut self, function: FunctionId, _: u64, orphan: Orphan) {
        self.count(function, |b| b.add_orphan(orphan));
    }

    fn value(&mut self, _: FunctionId, mark: Mark, entry: u64, value: &Value) {
        assert_eq!(self.stamps.get(mark.node as usize), Some(&entry));
        if let Content::Value(made_in) = value.content {
            self.values.push((value.capture, entry, made_in));
        }
    }

    fn known(&self, function: FunctionId) -> bool {
        function.0 < FUNCTIONS
    }
}

fn mark_of(frame: &hopscope_analyze::pair::Frame) -> u32 {
    frame.mark().node
}

fn bare(calls: &[TrueCall]) -> Vec<(u32, u64, u64)> {
    let mut bare: Vec<_> = calls
        .iter()
        .map(|c| (c.function, c.entry, c.exit))
        .collect();
    bare.sort_unstable();
    bare
}

/// Captures whose place among the records says all.
const ENDS: [u16; 2] = [AT_ENTRY, AT_RETURN];

const ALL: Habits = Habits {
    traceless: true,
    switches: true,
    uneven: true,
    losses: false,
};

proptest! {
    /// Coroutines on stacks far from each other: calls, callers and own times are the true ones.
    #[test]
    fn far_stacks_are_exact(acts in acts(Habits { traceless: false, ..ALL })) {
        let program = Program::new(&FAR).run(&acts);
        let (seen, odd) = Seen::of(&program.batches);
        let mut truth = program.truth.calls.clone();
        truth.sort();
        prop_assert_eq!(seen.sorted(), truth);
        prop_assert_eq!(seen.balance.open_at_end, program.truth.unfinished);
        prop_assert!(seen.holds());
        prop_assert_eq!(seen.misplaced(&ENDS), 0);
        prop_assert_eq!(seen.told(&ENDS), program.stored(&ENDS));
        // Switches of stacks leave no record.
        prop_assert!(seen.misplaced(&[IN_BODY]) as u64 <= odd.values_ambiguous);
        prop_assert_eq!(seen.values.len() as u64 + odd.values_homeless, odd.values);
    }

    /// One stack left by longjmp, each frame calling from one depth: exact too. What dead frames
    /// had measured is not taken for the own time of the frame that goes on.
    #[test]
    fn longjmp_is_exact(acts in acts(Habits { switches: false, uneven: false, ..ALL })) {
        let program = Program::new(&[MAIN]).run(&acts);
        let (seen, _) = Seen::of(&program.batches);
        let mut truth = program.truth.calls.clone();
        truth.sort();
        prop_assert_eq!(seen.sorted(), truth);
        prop_assert!(seen.holds());
    }

    /// One stack, left by longjmp and escapes as well.
    #[test]
    fn one_stack_pairs_every_call(acts in acts(Habits { switches: false, ..ALL })) {
        let program = Program::new(&[MAIN]).run(&acts);
        let (seen, odd) = Seen::of(&program.batches);
        prop_assert_eq!(bare(&seen.sorted()), bare(&program.truth.calls));
        prop_assert_eq!(seen.balance.entries, program.truth.entries);
        prop_assert_eq!(seen.balance.escaped, program.truth.escaped);
        let unfinished = seen.balance.unwound + seen.balance.open_at_end;
        prop_assert_eq!(unfinished, program.truth.unfinished);
        prop_assert_eq!(seen.balance.ends_open_at_start, 0);
        prop_assert_eq!(odd.negative, 0);
        prop_assert!(seen.holds());
        prop_assert_eq!((seen.misplaced(&ENDS), odd.values_homeless), (0, 0));
        prop_assert_eq!(seen.values.len() as u64, odd.values);
    }

    /// Coroutines side by side: every call is still found, with its true times. (Who called whom
    /// can be mistaken there.)
    #[test]
    fn close_stacks_pair_every_call(acts in acts(ALL)) {
        let program = Program::new(&CLOSE).run(&acts);
        let (seen, _) = Seen::of(&program.batches);
        prop_assert_eq!(bare(&seen.sorted()), bare(&program.truth.calls));
        prop_assert_eq!(seen.balance.entries, program.truth.entries);
        prop_assert!(seen.holds());
    }

    /// Losses anywhere: fewer calls, never a wrong one.
    #[test]
    fn loss_never_makes_a_call_up(acts in acts(Habits { losses: true, ..ALL }), close: bool) {
        let stacks: &[u32] = if close { &CLOSE } else { &FAR };
        let program = Program::new(stacks).run(&acts);
        let (seen, odd) = Seen::of(&program.batches);
        let mut truth = bare(&program.truth.calls);
        truth.sort_unstable();
        for call in bare(&seen.sorted()) {
            prop_assert!(truth.binary_search(&call).is_ok(), "{call:?} never happened");
        }
        let is = |kind| move |r: &&Record| r.kind() == Some(kind);
        let all = || program.batches.iter().flat_map(|b| &b.records);
        prop_assert_eq!(seen.balance.entries, all().filter(is(RecordKind::Entry)).count() as u64);
        prop_assert_eq!(odd.lost, program.batches.iter().map(|b| b.lost).sum::<u64>());
        prop_assert_eq!(seen.misplaced(&ENDS), 0);
        prop_assert_eq!(seen.values.len() as u64 + odd.values_homeless, odd.values);
        prop_assert!(seen.holds());
    }

    /// Any bytes at all: nothing is dropped uncounted.
    #[test]
    fn every_record_is_accounted_for(
        raw in prop::collection::vec((any::<u64>(), 0u32..16, 0u32..8, 0u32..64, any::<bool>()), 0..300),
        gaps in prop::collection::vec((0usize..300, 0u64..3), 0..4),
    ) {
        let mut batches = vec![Batch::default()];
        for (i, (tsc, function, kind, units, far)) in raw.iter().enumerate() {
            if let Some((_, lost)) = gaps.iter().find(|(at, _)| *at == i) {
                batches.push(Batch { lost: *lost, records: Vec::new() });
            }
            let stack = if *far { units * 8 } else { units * 0x0400_0000 };
            let id_kind = function << RecordKind::BITS | kind;
            let record = Record { tsc: *tsc, id_kind, stack };
            batches.last_mut().expect("one is there").records.push(record);
        }
        let (seen, odd) = Seen::of(&batches);
        prop_assert!(seen.holds());
        let b = seen.balance;
        let ends = b.exits + b.tail_exits + b.ends_open_at_start + b.ends_cut;
        let is_end = |k| matches!(k, Some(RecordKind::Exit | RecordKind::TailExit));
        let known = |r: &&Record| r.function().0 < FUNCTIONS && r.kind().is_some();
        let all = || batches.iter().flat_map(|b| &b.records).filter(known);
        let ends_stored = all().filter(|r| is_end(r.kind())).count() as u64;
        prop_assert!(ends >= ends_stored && ends <= ends_stored + odd.escape_records);
        prop_assert_eq!(b.entries, all().filter(|r| r.kind() == Some(RecordKind::Entry)).count() as u64);
        prop_assert_eq!(odd.unknown + all().count() as u64, raw.len() as u64);
        let values = all().filter(|r| r.kind() == Some(RecordKind::Value)).count() as u64;
        prop_assert_eq!(odd.values, values);
        let untold = odd.values_unknown + odd.values_homeless + odd.values_unreadable;
        let told = seen.values.len() as u64 + odd.values_left_out;
        prop_assert!(told + untold >= values);
    }
}
