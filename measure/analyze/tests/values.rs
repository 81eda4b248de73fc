//! To which call a captured value is told, record by record.
use hopscope_analyze::Oddities;
use hopscope_analyze::balance::{Fate, Orphan};
use hopscope_analyze::pair::{Call, Enter, Gap, Mark, Pairer, Sink};
use hopscope_event::value::number;
use hopscope_event::{CapturePlace, Content, FunctionId, Record, RecordKind, Value};

const F: FunctionId = FunctionId(1);
const G: FunctionId = FunctionId(2);
const HERE: u32 = 0x1000_0000;
const ELSEWHERE: u32 = 0x8fff_e000;

/// Entry stamp of the call that each value was told of.
#[derive(Default)]
struct Told(Vec<(u64, Content)>);

impl Sink for Told {
    fn enter(&mut self, _: Enter<'_>) -> Mark {
        Mark::default()
    }
    fn call(&mut self, _: &Call) {}
    fn fate(&mut self, _: FunctionId, _: Mark, _: u64, _: Fate) {}
    fn orphan(&mut self, _: FunctionId, _: u64, _: Orphan) {}
    fn value(&mut self, _: FunctionId, _: Mark, entry: u64, value: &Value) {
        self.0.push((entry, value.content));
    }
    fn known(&self, _: FunctionId) -> bool {
        true
    }
}

fn entry(tsc: u64, function: FunctionId, rsp: u32) -> Record {
    Record::new(tsc, function, RecordKind::Entry, rsp)
}

fn exit(tsc: u64, function: FunctionId, rsp: u32) -> Record {
    Record::new(tsc, function, RecordKind::Exit, rsp)
}

fn captured(function: FunctionId, at: CapturePlace, content: Content) -> Record {
    let value = Value {
        capture: number(at, 0),
        element: 0,
        content,
    };
    value.record(function)
}

fn value(function: FunctionId, at: CapturePlace) -> Record {
    captured(function, at, Content::Value(7))
}

fn told(records: &[Record]) -> (Vec<u64>, Oddities) {
    let (mut pairer, mut sink) = (Pairer::new(), Told::default());
    for record in records {
        pairer.feed(*record, &mut sink);
    }
    let oddities = pairer.finish(&mut sink);
    (sink.0.iter().map(|(entry, _)| *entry).collect(), oddities)
}

use CapturePlace::{Body, Entry, Return};

#[test]
fn each_place_has_its_call() {
    let (told, odd) = told(&[
        entry(10, F, HERE),
        value(F, Entry),
        value(F, Entry),
        entry(20, F, HERE - 64),
        value(F, Entry),
        value(F, Body),
        value(F, Return),
        exit(30, F, HERE - 64),
        value(F, Body),
        value(F, Return),
        value(F, Return),
        exit(40, F, HERE),
    ]);
    assert_eq!(told, [10, 10, 20, 20, 20, 10, 10, 10]);
    assert_eq!((odd.values, odd.values_homeless), (8, 0));
    assert_eq!((odd.values_ambiguous, odd.unknown), (0, 0));
}

/// A signal handler's calls come before or after what a probe stores at once, never among it.
#[test]
fn a_signal_between_the_body_and_its_value() {
    let (told, odd) = told(&[
        entry(10, F, HERE),
        entry(20, G, HERE - 512),
        value(G, Return),
        exit(30, G, HERE - 512),
        value(F, Body),
        value(F, Return),
        exit(40, F, HERE),
    ]);
    assert_eq!(told, [20, 10, 10]);
    assert_eq!(odd.values_homeless, 0);
}

#[test]
fn without_its_record_a_value_has_no_home() {
    let (told, odd) = told(&[
        value(F, Entry),
        value(F, Body),
        value(F, Return),
        exit(5, F, HERE),
        entry(10, F, HERE),
        entry(20, G, HERE - 64),
        value(F, Entry),
        value(F, Return),
        exit(30, G, HERE - 64),
        value(F, Entry),
        exit(30, F, HERE),
        value(F, Return),
    ]);
    assert_eq!(told, [0; 0]);
    assert_eq!((odd.values, odd.values_homeless), (7, 7));
}

#[test]
fn a_gap_parts_a_return_from_its_exit() {
    let (mut pairer, mut sink) = (Pairer::new(), Told::default());
    pairer.feed(entry(10, F, HERE), &mut sink);
    pairer.feed(value(F, Return), &mut sink);
    let gap = Gap {
        lost: 1,
        ..Gap::default()
    };
    pairer.gap(gap, &mut sink);
    pairer.feed(exit(20, F, HERE), &mut sink);
    let odd = pairer.finish(&mut sink);
    assert_eq!((sink.0.len(), odd.values_homeless), (0, 1));
}

/// Stacks are switched without a record: a body's value may be any open call's of its function.
#[test]
fn several_stacks() {
    let on_both = [entry(10, F, HERE), entry(20, F, ELSEWHERE), value(F, Body)];
    let (both, odd) = told(&on_both);
    assert_eq!((both, odd.values_ambiguous), (vec![20], 1));
    let on_the_other = [entry(10, F, HERE), entry(20, G, ELSEWHERE), value(F, Body)];
    let (other, odd) = told(&on_the_other);
    assert_eq!((other, odd.values_ambiguous), (vec![10], 0));
}

#[test]
fn what_is_absent_is_told_and_counted() {
    let (told, odd) = told(&[
        entry(10, F, HERE),
        captured(F, Entry, Content::Unreadable),
        captured(F, Entry, Content::LeftOut { elements: 400 }),
        captured(F, Entry, Content::Unknown(10)),
        exit(20, F, HERE),
    ]);
    assert_eq!(told, [10, 10]);
    let absent = (odd.values_unreadable, odd.values_left_out);
    assert_eq!((odd.values, absent, odd.values_unknown), (3, (1, 1), 1));
}
