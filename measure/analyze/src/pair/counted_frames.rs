//! What is kept beside the frames goes with them.
use super::*;
use crate::balance::Orphan;
use crate::counts::{CallCounts, CounterKind};
use crate::taken::{Taken, page};
use hopscope_event::counter::capture_number;
use hopscope_event::{Count, CounterEntry, CounterEvent};

const F: FunctionId = FunctionId(1);
const HERE: u32 = 0x7ffe_1000;

/// Totals of calls.
#[derive(Default)]
struct Totals(Vec<u64>);

impl Sink for Totals {
    fn enter(&mut self, _: Enter<'_>) -> Mark {
        Mark::default()
    }
    fn call(&mut self, _: &Call) {}
    fn fate(&mut self, _: FunctionId, _: Mark, _: u64, _: Fate) {}
    fn orphan(&mut self, _: FunctionId, _: u64, _: Orphan) {}
    fn counts(&mut self, _: &Call, counts: &CallCounts) {
        let counts = counts.iter().flatten();
        self.0.extend(counts.filter_map(|count| count.total.ok()));
    }
    fn counter(&self, number: u8) -> Option<CounterKind> {
        let entry = CounterEntry {
            number,
            name: String::new(),
            event: CounterEvent { kind: 0, config: 0 },
            bits: 48,
            cost: None,
            emulated: false,
        };
        Some(CounterKind::of(&entry))
    }
    fn known(&self, _: FunctionId) -> bool {
        true
    }
}

fn reading(at: CapturePlace, count: u64) -> Record {
    let (content, element) = Count { count, updates: 3 }.parts();
    let value = Value {
        capture: capture_number(at, 0),
        element,
        content,
    };
    value.record(F)
}

fn enter(pairer: &mut Pairer, sink: &mut Totals, tsc: u64, rsp: u32) {
    pairer.feed(Record::new(tsc, F, RecordKind::Entry, rsp), sink);
    pairer.feed(reading(CapturePlace::Entry, tsc), sink);
}

fn leave(pairer: &mut Pairer, sink: &mut Totals, tsc: u64, rsp: u32) {
    pairer.feed(reading(CapturePlace::Return, tsc), sink);
    pairer.feed(Record::new(tsc, F, RecordKind::Exit, rsp), sink);
}

#[test]
fn no_place_is_kept_for_frames_cut_off_by_a_loss() {
    let (mut pairer, mut sink) = (Pairer::new(), Totals::default());
    let rounds = 20_000;
    for round in 0..rounds {
        let at = round * 100;
        enter(&mut pairer, &mut sink, at + 1, HERE);
        // Left without an exit.
        enter(&mut pairer, &mut sink, at + 2, HERE - 64);
        leave(&mut pairer, &mut sink, at + 9, HERE);
        // Cut off by a loss.
        enter(&mut pairer, &mut sink, at + 20, HERE);
        let gap = Gap {
            lost: 1,
            ..Gap::default()
        };
        pairer.gap(gap, &mut sink);
    }
    assert_eq!(sink.0, vec![8; rounds as usize]);
    let counting = pairer.counting.as_ref().expect("there were readings");
    assert!(counting.places() < 5_000, "{}", counting.places());
}

#[test]
fn no_place_is_kept_for_frames_left_without_an_exit() {
    let (mut pairer, mut sink) = (Pairer::new(), Totals::default());
    for round in 0..20_000 {
        let at = round * 100;
        enter(&mut pairer, &mut sink, at + 1, HERE);
        enter(&mut pairer, &mut sink, at + 2, HERE - 64);
        leave(&mut pairer, &mut sink, at + 9, HERE);
    }
    let counting = pairer.counting.as_ref().expect("there were readings");
    // What may be found again is kept for a while.
    assert!(counting.places() < 5_000, "{}", counting.places());
}

/// Another thread had the page later than this call begins: its reading is not that of the call around it.
#[test]
fn a_call_that_may_have_moved_gives_its_readings_to_no_other() {
    let (mut pairer, mut sink) = (Pairer::new(), Totals::default());
    enter(&mut pairer, &mut sink, 1, HERE);
    let deep = HERE - (64 << 10);
    pairer.taken = Some(Box::default());
    if let Some(taken) = &mut pairer.taken {
        taken.add(&Taken {
            before: 0,
            page: page(deep),
            until: 50,
        });
    }
    enter(&mut pairer, &mut sink, 5, deep);
    leave(&mut pairer, &mut sink, 9, HERE);
    assert_eq!(sink.0, [8]);
    assert_eq!(pairer.oddities().readings_homeless, 1);
}
