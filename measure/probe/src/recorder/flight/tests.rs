mod simulated;

use super::*;
use hopscope_event::value::number;
use hopscope_event::{CapturePlace, Content, Record, RecordKind, Value};
use hopscope_trace::TraceReader;
use proptest::prelude::*;
use simulated::{How, MS, SLOW, Simulated, meta, simulate, sync};

fn summary() -> Summary {
    Summary {
        end: sync(0),
        ended_because: String::new(),
        recorded: 0,
        lost: 0,
        torn: 0,
        threads_measured: 0,
        calls_unmeasured: Some(0),
        attach_pause_ns: Vec::new(),
        detach_pause_ns: Vec::new(),
        stops: Default::default(),
        recorder_cpu_ns: Some(0),
        notes: Vec::new(),
    }
}
/// Stamps of a thread in a file, which must be whole.
fn held(file: &TraceReader, thread: u32) -> Vec<u64> {
    let t = file.tables();
    assert_eq!((&t.damage, t.threads.len()), (&None, 2));
    assert!(t.summary.is_some());
    let batches = file.batches().map(Result::unwrap);
    let own = batches.filter(|b| b.thread == ThreadIx(thread));
    own.flat_map(|b| b.records.into_iter().map(|r| r.tsc))
        .collect()
}

fn within(stamps: &[u64], from_ms: u64, to_ms: u64) -> Vec<u64> {
    let window = from_ms * MS..=to_ms * MS;
    stamps
        .iter()
        .copied()
        .filter(|s| window.contains(s))
        .collect()
}

fn expect_window(s: &Simulated, file: usize, from_ms: u64, to_ms: u64) {
    for thread in 0..2 {
        let expected = within(&s.stamps[thread], from_ms, to_ms);
        assert!(!expected.is_empty());
        assert_eq!(
            held(&s.files[file], thread as u32),
            expected,
            "thread {thread}"
        );
    }
    let rows = s.files[file].off_cpu().flat_map(|b| b.unwrap().rows);
    let rows: Vec<u64> = rows.map(|r| r.out.0).collect();
    let expected: Vec<u64> = (1..)
        .map(|visit| (visit * 100 - 60) * MS)
        .skip_while(|out| out + 10 * MS < from_ms * MS)
        .take_while(|out| *out <= to_ms * MS)
        .collect();
    assert_eq!(rows, expected);
}

fn total(s: &Simulated) -> u64 {
    s.stamps.iter().map(|t| t.len() as u64).sum()
}

#[test]
fn each_trigger_saves_its_window_and_nothing_else() {
    let s = simulate(60_000, &[20_000, 40_000], 1 << 30, None);
    assert_eq!((s.files.len(), s.counts.fired), (2, 2));
    expect_window(&s, 0, 18_050, 21_050);
    expect_window(&s, 1, 38_050, 41_050);
    let trigger = &s.files[1].tables().triggers[0];
    assert_eq!(trigger.at, Tsc(40_050 * MS));
    assert_eq!(trigger.took_ticks, Some(50 * MS));
    assert_eq!(s.counts.saved.records + s.counts.left_out, total(&s));
    assert_eq!(s.counts.left_out_for_room, 0);
}

#[test]
fn windows_that_touch_are_one_file() {
    let s = simulate(60_000, &[20_000, 22_500, 25_300], 1 << 30, None);
    assert_eq!((s.files.len(), s.counts.fired), (1, 3));
    expect_window(&s, 0, 18_050, 26_350);
    assert_eq!(s.files[0].tables().triggers.len(), 3);
    assert_eq!(s.counts.saved.records + s.counts.left_out, total(&s));
}

#[test]
fn a_signal_is_a_trigger() {
    let s = simulate(10_000, &[], 1 << 30, Some(5_000));
    assert_eq!(s.files.len(), 1);
    expect_window(&s, 0, 3_100, 6_100);
    assert_eq!(s.files[0].tables().triggers[0].trigger, "SIGUSR1");
}

#[test]
fn without_a_trigger_there_is_no_file() {
    let s = simulate(20_000, &[], 1 << 30, None);
    assert_eq!((s.files.len(), s.counts.saved.records), (0, 0));
    assert_eq!(s.counts.left_out, total(&s));
}

/// What a file says of its window is what it holds; and it starts and ends with it.
fn entry(s: &Simulated, file: usize) -> FlightEntry {
    let t = s.files[file].tables();
    let entry = t.flight.clone().expect("it is said");
    let end = t.summary.as_ref().expect("it ends in order").end;
    assert_eq!((t.meta.start.tsc, end.tsc), (entry.from, entry.until));
    assert_eq!(
        t.meta.start.realtime_ns, entry.from.0,
        "the clocks agree here"
    );
    entry
}

#[test]
fn the_file_says_what_it_holds_and_what_was_left_out() {
    let s = simulate(60_000, &[20_000, 40_000], 1 << 30, None);
    let (first, second) = (entry(&s, 0), entry(&s, 1));
    assert_eq!(
        (first.from, first.until),
        (Tsc(18_050 * MS), Tsc(21_050 * MS))
    );
    assert_eq!((first.begins_late, first.ends_early), (None, None));
    assert_eq!((first.fired, second.fired), (1, 1));
    // When the second is ended, 45 s are over; what is in memory may still be saved.
    let until_second: usize = s.stamps.iter().map(|t| within(t, 0, 38_049).len()).sum();
    let in_first: usize = s
        .stamps
        .iter()
        .map(|t| within(t, 18_050, 21_050).len())
        .sum();
    assert!(second.records_left_out >= (until_second - in_first) as u64);
    assert!(second.records_left_out <= s.counts.left_out);
}

#[test]
fn a_window_that_cannot_be_whole_says_why() {
    let s = simulate(10_000, &[1_000], 1 << 30, None);
    assert_eq!(entry(&s, 0).begins_late, Some(BeginsLate::RecordingBegan));
    expect_window(&s, 0, 0, 2_050);
    let s = simulate(20_200, &[20_000], 1 << 30, None);
    let cut = entry(&s, 0);
    assert_eq!(
        (cut.until, cut.ends_early),
        (Tsc(20_200 * MS), Some(EndsEarly::RecordingEnded))
    );
}

/// Everything from where it says that it begins is there, of all threads.
#[test]
fn memory_is_bounded_and_what_it_costs_is_said() {
    let bytes_max = 8_000;
    let s = simulate(30_000, &[20_000], bytes_max, None);
    assert!(s.most_bytes <= bytes_max, "{} bytes", s.most_bytes);
    assert!(s.counts.left_out_for_room > 0);
    assert_eq!(s.counts.saved.records + s.counts.left_out, total(&s));
    let entry = entry(&s, 0);
    assert_eq!(entry.begins_late, Some(BeginsLate::MemoryFull));
    assert_eq!(s.counts.files_short_of_room, 1);
    assert!(
        Tsc(18_050 * MS) < entry.from && entry.from < Tsc(20_000 * MS),
        "{entry:?}"
    );
    for thread in 0..2 {
        let window = entry.from.0..=entry.until.0;
        let expected = s.stamps[thread]
            .iter()
            .copied()
            .filter(|t| window.contains(t));
        assert_eq!(
            held(&s.files[0], thread as u32),
            expected.collect::<Vec<_>>()
        );
    }
}

/// A visit may bring many times what may be held, before anybody hears that it is over.
#[test]
fn memory_is_bounded_within_a_visit() {
    let options = FlightOptions {
        before: Duration::from_secs(2),
        after: Duration::from_secs(1),
        cool_down: Duration::ZERO,
        bytes_max: 100_000,
        at_exit: None,
        recording: sync(0),
        frequency: TscFrequency(1_000_000_000),
    };
    let parts: FlightParts<'_, Vec<u8>> = FlightParts {
        triggers: Triggers::new(Vec::new()),
        asked: &|| None,
        open: &mut |_| unreachable!("nothing fires"),
        saved: &mut |_, _, _| unreachable!("nothing fires"),
        now: &|| sync(0),
    };
    let mut flight = Flight::new(options, parts);
    let mut all = 0;
    for batch in 0..20 {
        let kind = |n: u64| [RecordKind::Entry, RecordKind::Exit][n as usize % 2];
        let record = |n| Record::new(batch * 1_000_000 + n * 31, SLOW, kind(n), 4096);
        let records: Vec<Record> = (0..20_000).map(record).collect();
        let batch = RecordBatch {
            thread: ThreadIx(0),
            first_index: all,
            lost_before: 0,
            torn_before: 0,
            records: &records,
        };
        flight.records(batch).unwrap();
        all += records.len() as u64;
        assert!(
            flight.held.bytes() <= 100_000,
            "{} bytes",
            flight.held.bytes()
        );
    }
    let counts = flight.finish(&Ended::Asked).unwrap();
    assert_eq!(counts.left_out, all);
    assert!(0 < counts.left_out_for_room && counts.left_out_for_room < all);
}

/// Windows that never end make files of bounded size, which together hold everything.
#[test]
fn a_full_file_goes_on_in_the_next() {
    let bytes_max = 20_000;
    let always: Vec<u64> = (50..600).map(|n| n * 100).collect();
    let s = simulate(60_000, &always, bytes_max, None);
    assert!(s.files.len() > 3, "{} files", s.files.len());
    for file in 1..s.files.len() {
        let (before, this) = (entry(&s, file - 1), entry(&s, file));
        assert_eq!(before.ends_early, Some(EndsEarly::FileFull));
        assert_eq!(this.begins_late, Some(BeginsLate::PreviousFile));
        assert_eq!(this.from, before.until + 1);
        assert!(s.files[file].tables().file_bytes < 3 * bytes_max);
    }
    let from = entry(&s, 0).from.0;
    for thread in 0..2usize {
        let files = s.files.iter().flat_map(|f| held(f, thread as u32));
        let expected = s.stamps[thread].iter().copied().filter(|t| *t >= from);
        assert_eq!(files.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
    assert_eq!(s.counts.saved.records + s.counts.left_out, total(&s));
}

#[test]
fn what_fires_in_the_cool_down_is_counted_and_not_saved() {
    let how = How {
        total_ms: 60_000,
        slow_at: &[10_000, 20_000, 50_000],
        bytes_max: 1 << 30,
        signal_at: None,
        cool_down_ms: 20_000,
        ended: Ended::Asked,
    };
    let s = how.simulate();
    assert_eq!((s.files.len(), s.counts.fired), (2, 3));
    assert_eq!(s.counts.fired_in_cool_down, 1);
    expect_window(&s, 1, 48_050, 51_050);
    assert_eq!(entry(&s, 0).fired_in_cool_down, 0);
    assert_eq!(entry(&s, 1).fired_in_cool_down, 1);
}

/// Only of the targets, not when the user ends the recording.
#[test]
fn the_exit_of_the_targets_is_a_trigger() {
    for (ended, files) in [(Ended::Asked, 0), (Ended::TargetsGone, 1)] {
        let how = How {
            total_ms: 10_000,
            slow_at: &[],
            bytes_max: 1 << 30,
            signal_at: None,
            cool_down_ms: 0,
            ended,
        };
        let s = how.simulate();
        assert_eq!(s.files.len(), files);
        if files > 0 {
            expect_window(&s, 0, 8_000, 10_000);
            assert_eq!(s.files[0].tables().triggers[0].trigger, "exit");
        }
    }
}

#[test]
fn the_end_of_the_recording_saves_what_had_fired() {
    let s = simulate(20_200, &[20_000], 1 << 30, None);
    assert_eq!(s.files.len(), 1);
    expect_window(&s, 0, 18_050, 20_200);
}

/// Values of a return lie before its exit: they are on the same side of the window's end.
#[test]
fn values_stay_with_their_records() {
    let value = |at: CapturePlace| Value {
        capture: number(at, 0),
        element: 0,
        content: Content::Value(7),
    };
    let record = |tsc, kind| Record::new(tsc, SLOW, kind, 4096);
    let records = [
        record(10, RecordKind::Entry),
        value(CapturePlace::Entry).record(SLOW),
        value(CapturePlace::Return).record(SLOW),
        record(20, RecordKind::Exit),
        record(30, RecordKind::Entry),
        value(CapturePlace::Entry).record(SLOW),
        value(CapturePlace::Return).record(SLOW),
        record(40, RecordKind::Exit),
    ];
    for (from, until, expected) in [
        (10, 40, &records[..]),
        (11, 40, &records[3..]),
        (10, 39, &records[..6]),
        (10, 29, &records[..4]),
        (10, 30, &records[..6]),
        (10, 19, &records[..2]),
        (25, 35, &records[4..6]),
    ] {
        let mut held = Held::default();
        let batch = RecordBatch {
            thread: ThreadIx(0),
            first_index: 5,
            lost_before: 3,
            torn_before: 0,
            records: &records,
        };
        held.records_of(&batch);
        let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
        let (from, until) = (Tsc(from), Tsc(until));
        let (kept, _) = held.save(from, until, &mut writer, |_, _| Ok(())).unwrap();
        assert_eq!(kept.records, expected.len() as u64, "{from:?} {until:?}");
        let file = TraceReader::from_bytes(writer.finish(&summary()).unwrap()).unwrap();
        let batch = file.batches().next().unwrap().unwrap();
        assert_eq!(batch.records, expected);
        // What was lost before the first is not before one in the middle.
        assert_eq!(batch.lost_before, if from.0 == 10 { 3 } else { 0 });
        let rest = held.records();
        let begins = records.iter().position(|r| *r == expected[0]).unwrap();
        assert_eq!(rest as usize, records.len() - begins - expected.len());
    }
}

proptest! {
    /// Whatever the batches, the memory and the triggers: all that was recorded is accounted for,
    /// and each file holds all of the time that it says, and nothing else.
    #[test]
    fn all_is_accounted_for(
        slow in proptest::collection::btree_set(0u64..300, 0..6),
        bytes_max in prop_oneof![Just(1u64 << 30), 3_000u64..30_000],
        signal_at in proptest::option::of(0u64..30_000),
        cool_down_ms in prop_oneof![Just(0u64), 0u64..20_000],
    ) {
        let slow_at: Vec<u64> = slow.iter().map(|n| n * 100).collect();
        let how = How {
            total_ms: 30_000,
            slow_at: &slow_at,
            bytes_max,
            signal_at,
            cool_down_ms,
            ended: Ended::Asked,
        };
        let s = how.simulate();
        prop_assert_eq!(s.counts.saved.records + s.counts.left_out, total(&s));
        let listed: usize = s.files.iter().map(|f| f.tables().triggers.len()).sum();
        prop_assert_eq!(listed as u64 + s.counts.fired_in_cool_down, s.counts.fired);
        prop_assert_eq!(s.counts.fired, (slow.len() + usize::from(signal_at.is_some())) as u64);
        let mut last = None;
        for (n, file) in s.files.iter().enumerate() {
            let entry = entry(&s, n);
            prop_assert!(last < Some(entry.from), "{:?}", entry);
            last = Some(entry.until);
            for thread in 0..2usize {
                let window = entry.from.0..=entry.until.0;
                let expected: Vec<u64> =
                    s.stamps[thread].iter().copied().filter(|t| window.contains(t)).collect();
                let batches = file.batches().map(Result::unwrap);
                let own = batches.filter(|b| b.thread == ThreadIx(thread as u32));
                let saved: Vec<u64> = own.flat_map(|b| b.records).map(|r| r.tsc).collect();
                prop_assert_eq!(saved, expected);
            }
        }
    }
}
