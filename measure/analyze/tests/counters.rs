//! What is known of a call's counts, and what is not.
use hopscope_analyze::balance::{Fate, Orphan};
use hopscope_analyze::pair::{Call, Enter, Gap, Mark, Pairer, Sink};
use hopscope_analyze::trail::{Begun, End, Observer, Trail};
use hopscope_analyze::{
    Analysis, AnalysisOptions, AnalysisResult, Batch, CallCounts, CounterKind, CounterStats, Group,
    Index, LeftOut, Oddities, Window,
};
use hopscope_event::counter::capture_number;
use hopscope_event::table::{ModuleIx, ProcessIx, ThreadEntry};
use hopscope_event::{
    CapturePlace, Content, Count, CounterCost, CounterEntry, CounterEvent, FunctionEntry,
    FunctionId, Record, RecordKind, ThreadIx, Tsc, Value,
};

const HERE: u32 = 0x7ffe_1000;
const ELSEWHERE: u32 = 0x1000_0000;

fn counter(number: u8, kind: u32, bits: u8) -> CounterEntry {
    CounterEntry {
        number,
        name: format!("counter{number}"),
        event: CounterEvent { kind, config: 1 },
        bits,
        cost: None,
        emulated: false,
    }
}

/// A processor's of 40 bits, and one of the kernel.
fn kinds() -> Vec<CounterEntry> {
    vec![counter(0, 0, 40), counter(1, 1, 48)]
}

fn index() -> Index {
    let function = |id: u32| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(id / 4),
        name: String::new(),
        svma: 0,
        size: 0,
        file: None,
        line: None,
    };
    let functions: Vec<_> = (0..8).map(function).collect();
    let thread = |ix| ThreadEntry {
        ix: ThreadIx(ix),
        process: ProcessIx(0),
        tid: ix as i32,
        comm: String::new(),
    };
    Index::new(&functions, &[thread(0), thread(1)]).with_counters(&kinds())
}

/// What a probe stores: the call, and what it read of counters.
type Reading = (u8, Result<u64, Content>, u32);

fn values(function: u32, at: CapturePlace, readings: &[Reading]) -> Vec<Record> {
    let value = |&(counter, read, updates): &Reading| {
        let (content, element) = match read {
            Ok(count) => Count { count, updates }.parts(),
            Err(absent) => (absent, 0),
        };
        let capture = capture_number(at, counter);
        let value = Value {
            capture,
            element,
            content,
        };
        value.record(FunctionId(function))
    };
    readings.iter().map(value).collect()
}

fn entry(tsc: u64, function: u32, rsp: u32, readings: &[Reading]) -> Vec<Record> {
    let record = Record::new(tsc, FunctionId(function), RecordKind::Entry, rsp);
    let mut records = vec![record];
    records.extend(values(function, CapturePlace::Entry, readings));
    records
}

fn end(kind: RecordKind, tsc: u64, function: u32, rsp: u32, readings: &[Reading]) -> Vec<Record> {
    let mut records = values(function, CapturePlace::Return, readings);
    records.push(Record::new(tsc, FunctionId(function), kind, rsp));
    records
}

fn exit(tsc: u64, function: u32, rsp: u32, readings: &[Reading]) -> Vec<Record> {
    end(RecordKind::Exit, tsc, function, rsp, readings)
}

fn at(count: u64) -> Vec<Reading> {
    vec![(0, Ok(count), 7)]
}

fn analyzed_of(records: &[Vec<Record>], options: AnalysisOptions) -> AnalysisResult {
    let mut analysis = Analysis::new(index(), options);
    analysis.feed(&Batch {
        thread: ThreadIx(0),
        first_index: 0,
        lost: 0,
        torn: 0,
        records: &records.concat(),
        taken: &[],
        early: false,
    });
    analysis.finish()
}

fn analyzed(records: &[Vec<Record>]) -> AnalysisResult {
    analyzed_of(records, AnalysisOptions::default())
}

fn stats(outcome: &AnalysisResult, function: u32, counter: u8) -> CounterStats {
    let mut rows = outcome.rows.iter();
    let row = rows.find(|r| r.key.function == Some(FunctionId(function)));
    let counted = row.and_then(|row| row.stats.counter(counter));
    *counted.unwrap_or_else(|| panic!("function {function} has counter {counter}"))
}

fn reasons(stats: &CounterStats) -> Vec<(LeftOut, u64)> {
    stats.left_out.reasons().collect()
}

fn own_reasons(stats: &CounterStats) -> Vec<(LeftOut, u64)> {
    stats.own_left_out.reasons().collect()
}

/// A call with these readings at both ends, of one counter.
fn one(before: Reading, after: Reading) -> CounterStats {
    let records = [entry(10, 1, HERE, &[before]), exit(20, 1, HERE, &[after])];
    stats(&analyzed(&records), 1, before.0)
}

#[test]
fn recursion_counts_once_in_the_total() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 1, HERE - 64, &at(130)),
        exit(30, 1, HERE - 64, &at(180)),
        exit(40, 1, HERE, &at(200)),
    ]);
    let s = stats(&outcome, 1, 0);
    assert_eq!((s.calls, s.total.calls, s.total.raw), (2, 1, 100));
    assert_eq!((s.own.calls, s.own.raw), (2, 100));
}

#[test]
fn what_the_kernel_interrupted_is_left_out_unless_the_kernel_counts() {
    let hardware = one((0, Ok(100), 7), (0, Ok(150), 9));
    assert_eq!(reasons(&hardware), [(LeftOut::Rescheduled, 1)]);
    assert_eq!((hardware.own.calls, hardware.total.calls), (0, 0));
    let software = one((1, Ok(3), 7), (1, Ok(5), 9));
    assert_eq!((software.own.calls, software.total.raw), (1, 2));
}

#[test]
fn absent_readings_say_why() {
    let read = |content| (0, content, 7);
    let absent = |before, after| reasons(&one(read(before), read(after)));
    let (off, closed) = (Err(Content::NotCounting), Err(Content::NotOpened));
    assert_eq!(absent(off, Ok(5)), [(LeftOut::NotCounting, 1)]);
    assert_eq!(absent(Ok(5), off), [(LeftOut::NotCounting, 1)]);
    assert_eq!(absent(closed, Ok(5)), [(LeftOut::NotOpened, 1)]);
    let odd = Err(Content::Unknown(10));
    assert_eq!(absent(odd, Ok(5)), [(LeftOut::Incomplete, 1)]);
}

#[test]
fn a_reading_that_is_missing_or_twice_there_makes_no_count() {
    let twice = [(0, Ok(100), 7), (0, Ok(100), 7)];
    for (before, after) in [
        (&at(100)[..], &[][..]),
        (&[][..], &at(100)[..]),
        (&twice[..], &at(150)[..]),
        (&at(100)[..], &twice[..]),
    ] {
        let records = [entry(10, 1, HERE, before), exit(20, 1, HERE, after)];
        let s = stats(&analyzed(&records), 1, 0);
        assert_eq!(
            reasons(&s),
            [(LeftOut::Incomplete, 1)],
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn counters_come_round_at_their_width() {
    let s = one((0, Ok((1 << 40) - 5), 7), (0, Ok(10), 7));
    assert_eq!(s.total.raw, 15);
}

#[test]
fn a_call_so_long_that_its_counter_may_have_come_round_is_left_out() {
    let call = |ticks: u64| {
        let records = [
            entry(10, 1, HERE, &at(100)),
            exit(10 + ticks, 1, HERE, &at(150)),
        ];
        reasons(&stats(&analyzed(&records), 1, 0))
    };
    assert_eq!(call((1 << 36) - 1), []);
    assert_eq!(call(1 << 36), [(LeftOut::MayHaveWrapped, 1)]);
}

#[test]
fn a_call_without_the_counter_is_its_caller_s_own_and_what_it_calls_is_not() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 64, &[]),
        entry(30, 3, HERE - 128, &at(150)),
        exit(40, 3, HERE - 128, &at(450)),
        exit(50, 2, HERE - 64, &[]),
        exit(60, 1, HERE, &at(500)),
    ]);
    let s = stats(&outcome, 1, 0);
    assert_eq!((s.own.raw, s.total.raw, s.mixed_calls), (100, 400, 1));
    assert_eq!(stats(&outcome, 3, 0).mixed_calls, 0);
    // Biases: its own, less its callee's; pairs: of both calls, less none in the callee.
    let cost = CounterCost {
        bias: [9, 10, 11],
        pair: Some(30),
    };
    assert_eq!(s.own.corrected(Some(&cost)), Some(100 - 10 + 10 - 2 * 30));
    assert_eq!(s.total.corrected(Some(&cost)), Some(400 - 10 - 2 * 30));
}

#[test]
fn without_the_pair_only_the_bias_is_taken_out_and_without_both_nothing() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 64, &at(110)),
        exit(30, 2, HERE - 64, &at(160)),
        exit(40, 1, HERE, &at(200)),
    ]);
    let (caller, leaf) = (stats(&outcome, 1, 0), stats(&outcome, 2, 0));
    let cost = CounterCost {
        bias: [9, 60, 61],
        pair: None,
    };
    assert_eq!(caller.own.corrected(Some(&cost)), Some(50 - 60));
    assert_eq!(caller.total.corrected(Some(&cost)), Some(100 - 60));
    assert_eq!(leaf.own.corrected(Some(&cost)), Some(50 - 60));
    assert_eq!(leaf.own.corrected(None), None);
    assert!(caller.own.has_callees() && !leaf.own.has_callees());
}

#[test]
fn a_callee_left_out_leaves_out_its_caller_s_own_count() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 64, &[(0, Err(Content::NotOpened), 0)]),
        exit(30, 2, HERE - 64, &at(160)),
        exit(40, 1, HERE, &at(200)),
    ]);
    let s = stats(&outcome, 1, 0);
    assert_eq!((s.total.raw, s.own.calls), (100, 0));
    assert_eq!(own_reasons(&s), [(LeftOut::Callee, 1)]);
}

/// The handler's call came before the reading of the call that its probe interrupted.
#[test]
fn a_signal_between_the_clock_and_the_counter_makes_no_negative_count() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(900)),
        entry(20, 2, HERE - 512, &at(100)),
        exit(30, 2, HERE - 512, &at(800)),
        exit(40, 1, HERE, &at(950)),
    ]);
    let s = stats(&outcome, 1, 0);
    assert_eq!((s.total.raw, s.own.calls), (50, 0));
    assert_eq!(own_reasons(&s), [(LeftOut::Callee, 1)]);
    assert_eq!(stats(&outcome, 2, 0).own.raw, 700);
}

#[test]
fn a_tail_call_counts_apart_from_what_it_jumped_to() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 64, &at(110)),
        end(RecordKind::TailExit, 30, 2, HERE - 64, &at(150)),
        entry(31, 3, HERE - 64, &at(152)),
        exit(40, 3, HERE - 64, &at(160)),
        exit(50, 1, HERE, &at(200)),
    ]);
    let own = |function| stats(&outcome, function, 0).own.raw;
    assert_eq!((own(1), own(2), own(3)), (52, 40, 8));
}

#[test]
fn a_frame_left_without_an_exit_counts_for_the_one_that_it_leaves_behind() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 64, &at(110)),
        entry(30, 3, HERE - 128, &at(120)),
        exit(40, 3, HERE - 128, &at(150)),
        exit(50, 1, HERE, &at(200)),
    ]);
    assert_eq!(outcome.balance.unwound, 1);
    assert_eq!(stats(&outcome, 1, 0).own.raw, 70);
    let row = outcome
        .rows
        .iter()
        .find(|r| r.key.function == Some(FunctionId(2)));
    assert_eq!(row.and_then(|row| row.stats.counter(0)), None);
}

/// The other stack makes one record only: no time is known to have passed there.
#[test]
fn a_suspended_call_has_a_total_and_no_own_count() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 4, HERE - 64, &at(110)),
        entry(30, 2, ELSEWHERE, &at(120)),
        exit(40, 4, HERE - 64, &at(190)),
        exit(50, 1, HERE, &at(200)),
        exit(60, 2, ELSEWHERE, &at(230)),
    ]);
    let resumed = stats(&outcome, 4, 0);
    assert_eq!((resumed.total.raw, resumed.own.calls), (80, 0));
    assert_eq!(own_reasons(&resumed), [(LeftOut::Suspended, 1)]);
    // Its caller's own count is what is left of it.
    assert_eq!(stats(&outcome, 1, 0).own.raw, 20);
    assert_eq!(
        own_reasons(&stats(&outcome, 2, 0)),
        [(LeftOut::Suspended, 1)]
    );
}

/// Another stack, which lies close, ran in between: it is not known what it counted, nor how the innermost frame ended.
#[test]
fn a_frame_that_was_taken_for_dead_keeps_its_readings() {
    let outcome = analyzed(&[
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 4096, &at(110)),
        entry(25, 5, HERE - 4160, &at(115)),
        entry(30, 3, HERE - 64, &at(120)),
        exit(40, 3, HERE - 64, &at(130)),
        exit(50, 2, HERE - 4096, &at(180)),
        exit(60, 1, HERE, &at(200)),
    ]);
    assert_eq!(outcome.oddities.revived, 1);
    let found = stats(&outcome, 2, 0);
    assert_eq!((found.total.raw, found.own.calls), (70, 0));
    assert_eq!(own_reasons(&found), [(LeftOut::Suspended, 1)]);
}

#[test]
fn what_began_before_a_loss_has_no_count_after_it() {
    let mut analysis = Analysis::new(index(), AnalysisOptions::default());
    let parts = [entry(10, 1, HERE, &at(100)), exit(20, 1, HERE, &at(150))];
    let mut first_index = 0;
    for (part, lost) in parts.iter().zip([0, 4]) {
        analysis.feed(&Batch {
            thread: ThreadIx(0),
            first_index: first_index + lost,
            lost,
            torn: 0,
            records: part,
            taken: &[],
            early: false,
        });
        first_index += part.len() as u64;
    }
    let outcome = analysis.finish();
    assert!(outcome.rows.iter().all(|r| r.stats.counter(0).is_none()));
    let odd = outcome.oddities;
    assert_eq!((odd.readings, odd.readings_homeless, odd.values), (2, 1, 0));
}

#[test]
fn readings_without_their_call_have_no_home() {
    let records = [
        values(1, CapturePlace::Entry, &at(1)),
        values(1, CapturePlace::Return, &at(2)),
        entry(10, 2, HERE, &at(100)),
        values(2, CapturePlace::Body, &at(101)),
        exit(20, 2, HERE, &at(150)),
    ];
    let outcome = analyzed(&records);
    let odd = outcome.oddities;
    assert_eq!((odd.readings, odd.readings_homeless), (5, 3));
    assert_eq!(stats(&outcome, 2, 0).own.raw, 50);
}

fn two_calls() -> [Vec<Record>; 4] {
    [
        entry(10, 1, HERE, &at(100)),
        exit(20, 1, HERE, &at(130)),
        entry(30, 1, HERE, &at(140)),
        exit(40, 1, HERE, &at(150)),
    ]
}

#[test]
fn a_window_has_the_calls_that_begin_in_it() {
    let window = Window {
        from: Some(Tsc(25)),
        to: None,
    };
    let options = AnalysisOptions {
        window,
        ..AnalysisOptions::default()
    };
    let s = stats(&analyzed_of(&two_calls(), options), 1, 0);
    assert_eq!((s.calls, s.own.raw), (1, 10));
}

/// Functions 1 and 2 are of one module, 4 is of another.
#[test]
fn a_module_s_total_is_of_calls_from_outside() {
    let records = [
        entry(10, 1, HERE, &at(100)),
        entry(20, 2, HERE - 64, &at(110)),
        entry(30, 4, HERE - 128, &at(120)),
        exit(40, 4, HERE - 128, &at(150)),
        exit(50, 2, HERE - 64, &at(180)),
        exit(60, 1, HERE, &at(200)),
    ];
    let options = AnalysisOptions {
        group: Group::Module,
        ..AnalysisOptions::default()
    };
    let outcome = analyzed_of(&records, options);
    let of = |module| {
        let row = outcome
            .rows
            .iter()
            .find(|r| r.key.module == Some(ModuleIx(module)));
        let counted = row.and_then(|row| row.stats.counter(0)).expect("counted");
        (counted.total.calls, counted.total.raw, counted.own.raw)
    };
    assert_eq!((of(0), of(1)), ((1, 100, 70), (1, 30, 30)));
}

#[test]
fn threads_have_rows_of_their_own() {
    let mut analysis = Analysis::new(
        index(),
        AnalysisOptions {
            group: Group::Thread,
            ..AnalysisOptions::default()
        },
    );
    for thread in [0, 1] {
        let calls = two_calls().concat();
        analysis.feed(&Batch {
            thread: ThreadIx(thread),
            first_index: 0,
            lost: 0,
            torn: 0,
            records: &calls[..calls.len() >> thread],
            taken: &[],
            early: false,
        });
    }
    let outcome = analysis.finish();
    let mut rows: Vec<_> = outcome
        .rows
        .iter()
        .map(|r| (r.key.thread, r.stats.counter(0).map(|c| c.own.raw)))
        .collect();
    rows.sort_unstable();
    let expected = [(0, 40), (1, 30)].map(|(ix, raw)| (Some(ThreadIx(ix)), Some(raw)));
    assert_eq!(rows, expected);
}

#[derive(Default)]
struct Seen {
    counts: Vec<(u64, [Option<i64>; 2])>,
    ended: Vec<u64>,
    values: u64,
}

impl Observer for Seen {
    fn counts(&mut self, call: &Begun, counts: &CallCounts) {
        let own = |n: usize| counts[n].as_ref().and_then(|c| c.own().ok());
        assert!(!self.ended.contains(&call.call));
        self.counts.push((call.call, [own(0), own(1)]));
    }

    fn ended(&mut self, call: &Begun, _: &End) {
        self.ended.push(call.call);
    }

    fn value(&mut self, _: &Begun, _: &Value) {
        self.values += 1;
    }
}

#[test]
fn each_call_is_told_its_counts_before_its_end_and_no_reading_as_a_value() {
    let mut trail = Trail::new(index(), Window::default(), None);
    let records = [
        entry(10, 1, HERE, &[(0, Ok(100), 7), (1, Ok(4), 7)]),
        entry(20, 2, HERE - 64, &at(110)),
        exit(30, 2, HERE - 64, &at(130)),
        exit(40, 1, HERE, &[(0, Ok(150), 7), (1, Ok(5), 7)]),
    ]
    .concat();
    let mut seen = Seen::default();
    let batch = Batch {
        thread: ThreadIx(0),
        first_index: 0,
        lost: 0,
        torn: 0,
        records: &records,
        taken: &[],
        early: false,
    };
    trail.feed(&batch, &mut seen);
    trail.finish(&mut seen);
    assert_eq!(
        seen.counts,
        [(1, [Some(20), None]), (0, [Some(30), Some(1)])]
    );
    assert_eq!((seen.ended, seen.values), (vec![1, 0], 0));
}

/// A sink that does not ask for counts.
#[derive(Default)]
struct Plain(u64);

impl Sink for Plain {
    fn enter(&mut self, _: Enter<'_>) -> Mark {
        Mark::default()
    }
    fn call(&mut self, _: &Call) {
        self.0 += 1;
    }
    fn fate(&mut self, _: FunctionId, _: Mark, _: u64, _: Fate) {}
    fn orphan(&mut self, _: FunctionId, _: u64, _: Orphan) {}
    fn value(&mut self, _: FunctionId, _: Mark, _: u64, _: &Value) {
        panic!("a reading is no captured value");
    }
    fn counts(&mut self, _: &Call, _: &CallCounts) {
        panic!("not asked for");
    }
    fn counter(&self, _: u8) -> Option<CounterKind> {
        None
    }
    fn known(&self, _: FunctionId) -> bool {
        true
    }
}

#[test]
fn who_does_not_ask_is_told_of_neither_counts_nor_readings() {
    let (mut pairer, mut sink) = (Pairer::new(), Plain::default());
    pairer.gap(Gap::default(), &mut sink);
    for record in two_calls().concat() {
        pairer.feed(record, &mut sink);
    }
    let odd: Oddities = pairer.finish(&mut sink);
    assert_eq!((sink.0, odd.readings, odd.readings_homeless), (2, 4, 0));
}
