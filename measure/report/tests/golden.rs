//! Reports of a small recording, byte for byte. `GOLDEN=write cargo test -p hopscope-report`
//! writes them anew; the difference is then read in the commit.
mod sample;

use hopscope_analyze::{Group, Packets};
use hopscope_event::value::number;
use hopscope_event::{
    BeginsLate, BudgetEntry, CaptureEntry, CaptureMethod, CapturePlace, Content, CostCheckEntry,
    EndsEarly, FlightEntry, FunctionId, InPlaceCost, LeftOutEntry, Ns, OffCpu, OffCpuEntry,
    ProcessIx, Record, RecordKind, ThinEntry, TriggerEntry,
};
use hopscope_event::{
    RecordingMeta, Stamp, StampFlags, StreamEntry, StreamIx, ThreadIx, Tsc, Value,
};
use hopscope_report::{Event, EventWriter, Layout, Names, PacketWriter, PathLimits, Scale, Sort};
use hopscope_report::{Streams, TimeUnit, View};
use sample::Sample;
use std::path::Path;

fn check(name: &str, got: Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let got = String::from_utf8(got).expect("reports are UTF-8");
    if std::env::var_os("GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(&path, &got).expect("the golden directory is writable");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(got == expected, "{name} differs; it is now:\n{got}");
}

fn view(layout: Layout) -> View {
    View {
        layout,
        sort: Sort::Total,
        time: TimeUnit::Ns,
        in_detail: true,
        paths: PathLimits::default(),
    }
}

fn text(sample: &Sample, group: Group, view: View) -> Vec<u8> {
    let mut out = Vec::new();
    let outcome = sample.analyzed(group);
    hopscope_report::write_text(&mut out, &sample.recording(), &outcome, view).expect("to memory");
    out
}

fn json(sample: &Sample, group: Group, view: View) -> Vec<u8> {
    let mut out = Vec::new();
    let outcome = sample.analyzed(group);
    hopscope_report::write_json(&mut out, &sample.recording(), &outcome, view).expect("to memory");
    out
}

/// With the cost measured in the recorded program itself; and where that came to nothing.
#[test]
fn checked_cost() {
    let layout = Layout::Rows(Group::Function);
    let mut sample = Sample::new();
    let found = InPlaceCost {
        call_ticks: [60, 64, 70],
        pairs: 48,
        not_switched_per_mille: 12,
    };
    let cost = sample.meta.probe_cost.as_mut().expect("calibrated");
    cost.in_place = Some(found);
    let mut check_entry = CostCheckEntry {
        in_place: Some(found),
        why_not: None,
        window_ns: 10_000_000,
        off_ticks: [0, 2, 4],
        functions_not_switched: 3,
    };
    sample.cost_check = Some(check_entry.clone());
    check("checked.txt", text(&sample, Group::Function, view(layout)));
    let cost = sample.meta.probe_cost.as_mut().expect("calibrated");
    cost.in_place = None;
    check_entry.in_place = None;
    check_entry.why_not = Some("the load was not steady".into());
    sample.cost_check = Some(check_entry);
    check(
        "not_checked.txt",
        text(&sample, Group::Function, view(layout)),
    );
}

#[test]
fn by_function() {
    let layout = Layout::Rows(Group::Function);
    check(
        "function.txt",
        text(&Sample::new(), Group::Function, view(layout)),
    );
    check(
        "function.jsonl",
        json(&Sample::new(), Group::Function, view(layout)),
    );
}

/// Sums that may be far off are marked, with times off CPU and without, and where nothing is corrected.
#[test]
fn one_line_a_row() {
    let brief = |group| View {
        in_detail: false,
        ..view(Layout::Rows(group))
    };
    let mut sample = Sample::new();
    let of = |sample: &Sample, group| text(sample, group, brief(group));
    check("one_line.txt", of(&sample, Group::Function));
    check("one_line_thread.txt", of(&sample, Group::Thread));
    sample.meta.probe_cost = None;
    check("one_line_not_corrected.txt", of(&sample, Group::Module));
}

/// What calls counted: a line a row, in detail, for programs, by module and by thread.
#[test]
fn counters() {
    let sample = Sample::counted();
    let one_line = |group| View {
        in_detail: false,
        ..view(Layout::Rows(group))
    };
    let functions = view(Layout::Rows(Group::Function));
    check(
        "counters.txt",
        text(&sample, Group::Function, one_line(Group::Function)),
    );
    check(
        "counters_detail.txt",
        text(&sample, Group::Function, functions),
    );
    check("counters.jsonl", json(&sample, Group::Function, functions));
    check(
        "counters_module.txt",
        text(&sample, Group::Module, one_line(Group::Module)),
    );
    check(
        "counters_thread.txt",
        text(&sample, Group::Thread, one_line(Group::Thread)),
    );
}

/// Readings among events: the count, and nothing else that their records hold.
#[test]
fn readings() {
    let sample = Sample::counted();
    let recording = sample.recording();
    let names = Names::new(&recording);
    for json in [false, true] {
        let writer = EventWriter {
            names: &names,
            scale: Scale::new(TimeUnit::Ns, sample.meta.tsc_frequency),
            start: sample.meta.start.tsc,
            json,
        };
        let mut out = Vec::new();
        let (thread, index, _, records) = &sample.batches[1];
        for (index, record) in (*index..).zip(records) {
            let event = Event {
                thread: *thread,
                index,
                record: *record,
            };
            writer.event(&mut out, event).expect("to memory");
        }
        check(
            if json {
                "readings.jsonl"
            } else {
                "readings.txt"
            },
            out,
        );
    }
}

#[test]
fn by_module_in_ticks() {
    let view = View {
        time: TimeUnit::Tsc,
        ..view(Layout::Rows(Group::Module))
    };
    check("module.txt", text(&Sample::new(), Group::Module, view));
}

/// A main loop that a loss cut has the time of what it called, and comes first; what is not shown is added
/// up; and what would lose less is said.
#[test]
fn a_tree_of_a_lossy_recording_in_few_lines() {
    use RecordKind::{Entry, Exit};
    let mut sample = Sample::new();
    let events = [
        (3_000_000, Entry, 4, 0),
        (3_000_100, Entry, 1, 1),
        (3_900_000, Exit, 1, 1),
    ];
    let (long, more) = (
        sample::records(&events),
        sample::records(&[(3_950_000, Exit, 4, 0)]),
    );
    sample.batches.push((ThreadIx(0), 1001, 0, long));
    sample.batches.push((ThreadIx(0), 71_004, 70_000, more));
    let few = View {
        paths: PathLimits {
            depth: Some(2),
            min_share_ppm: 0,
            number: Some(4),
        },
        ..view(Layout::Tree)
    };
    check("tree_few.txt", text(&sample, Group::Function, few));
    check("tree_few.jsonl", json(&sample, Group::Function, few));
}

#[test]
fn by_thread() {
    check(
        "thread.txt",
        text(
            &Sample::new(),
            Group::Thread,
            view(Layout::Rows(Group::Thread)),
        ),
    );
}

#[test]
fn by_tree() {
    check(
        "tree.txt",
        text(&Sample::new(), Group::Function, view(Layout::Tree)),
    );
    check(
        "tree.jsonl",
        json(&Sample::new(), Group::Function, view(Layout::Tree)),
    );
}

#[test]
fn killed_recorder_damaged_file_no_probe_cost() {
    let mut sample = Sample::new();
    sample.meta.probe_cost = None;
    sample.meta.tsc_invariant = false;
    sample.summary = None;
    sample.damage = Some("chunk 9 at byte 4096: checksum differs; read up to there".into());
    let layout = Layout::Rows(Group::Function);
    check("killed.txt", text(&sample, Group::Function, view(layout)));
}

/// Rounds are 5,000 ticks apart from 1,010,000 on (see the sample): each row says what it falls in.
#[test]
fn off_cpu_times_and_what_was_left_out() {
    let mut sample = Sample::new();
    let begin = sample.batches[0].3[0].tsc;
    let row = |out: u64, back: u64, preempted| OffCpu {
        out: Tsc(begin + out),
        back: Tsc(begin + back),
        preempted,
    };
    sample.off_cpu = Some(OffCpuEntry {
        why_not: None,
        clock_error_ns: 31,
        intervals: 3,
        lost: 4,
        unpaired: 0,
    });
    // In the rule match of the first round; in the input, not the match; between two rounds.
    let rows = vec![
        row(200, 300, true),
        row(1_000, 1_500, false),
        row(3_000, 3_200, true),
    ];
    sample.switches = vec![(ThreadIx(0), 0, rows), (ThreadIx(1), 4, vec![])];
    sample.thin = Some(ThinEntry {
        roots: vec![FunctionId(0)],
        every: 10,
        runs_seen: 1_012,
        runs_kept: 101,
        runs_cut: 0,
        records_left_out: 9_110,
    });
    let left_out = |function, at: Option<u64>| LeftOutEntry {
        function: FunctionId(function),
        process: ProcessIx(0),
        at: at.map(|at| Tsc(begin + at)),
        calls_per_s: 1_200_000,
        percent: 61.25,
        own_ticks: Some(40),
    };
    sample.budget = Some(BudgetEntry {
        percent: 5.0,
        first_pass_ns: Ns(760_000_000),
        first_pass_percent: Some(4.4),
        measured: 3,
        left_out: vec![left_out(3, None), left_out(2, Some(30_000))],
    });
    let fired = |at: u64, took| TriggerEntry {
        trigger: "acl_match > 300ns".into(),
        at: Tsc(begin + at),
        thread: Some(ThreadIx(0)),
        function: Some(FunctionId(2)),
        took_ticks: took,
    };
    sample.triggers = (0..12)
        .map(|n| fired(5_000 * n, (n > 0).then_some(700)))
        .collect();
    sample.flight = Some(FlightEntry {
        before_ns: Ns(5_000_000_000),
        after_ns: Ns(1_000_000_000),
        bytes_max: 256 << 20,
        recording: sample.meta.start,
        from: Tsc(begin),
        until: Tsc(begin + 100_000),
        begins_late: Some(BeginsLate::MemoryFull),
        ends_early: Some(EndsEarly::RecordingEnded),
        fired: 12,
        fired_in_cool_down: 3,
        records_left_out: 1_234_567,
        records_left_out_for_room: 89_012,
    });
    let layout = Layout::Rows(Group::Function);
    check("off_cpu.txt", text(&sample, Group::Function, view(layout)));
    let brief = View {
        in_detail: false,
        ..view(layout)
    };
    check(
        "one_line_off_cpu.txt",
        text(&sample, Group::Function, brief),
    );
    check(
        "off_cpu.jsonl",
        json(&sample, Group::Function, view(layout)),
    );
    sample.off_cpu = Some(OffCpuEntry {
        why_not: Some("disabled by --no-off-cpu".into()),
        ..OffCpuEntry::default()
    });
    if let Some(flight) = &mut sample.flight {
        (flight.begins_late, flight.ends_early) = (None, None);
        (flight.fired_in_cool_down, flight.records_left_out_for_room) = (0, 0);
    }
    let layout = Layout::Rows(Group::Module);
    check("no_off_cpu.txt", text(&sample, Group::Module, view(layout)));
}

#[test]
fn nothing_recorded() {
    let mut sample = Sample::new();
    sample.batches.clear();
    check(
        "empty.txt",
        text(
            &sample,
            Group::Function,
            view(Layout::Rows(Group::Function)),
        ),
    );
    check(
        "empty_tree.txt",
        text(&sample, Group::Function, view(Layout::Tree)),
    );
}

#[test]
fn raw_events() {
    let sample = Sample::new();
    let recording = sample.recording();
    let names = Names::new(&recording);
    for json in [false, true] {
        let mut out = Vec::new();
        let writer = EventWriter {
            names: &names,
            scale: Scale::new(TimeUnit::Ns, sample.meta.tsc_frequency),
            start: sample.meta.start.tsc,
            json,
        };
        writer.titles(&mut out).expect("to memory");
        for (thread, first_index, lost, records) in &sample.batches[1..] {
            if *lost > 0 {
                writer.gap(&mut out, *thread, *lost, 0).expect("to memory");
            }
            for (index, record) in (*first_index..).zip(records) {
                let event = Event {
                    thread: *thread,
                    index,
                    record: *record,
                };
                writer.event(&mut out, event).expect("to memory");
            }
        }
        check(if json { "events.jsonl" } else { "events.txt" }, out);
    }
}

/// What one call captured, absent values and one without an entry in the table among it.
#[test]
fn captured_values() {
    let mut sample = Sample::new();
    let function = FunctionId(0);
    let number = |at, nth| number(at, nth);
    use {CaptureMethod as How, CapturePlace as At};
    let (n, array) = (number(At::Entry, 0), number(At::Entry, 1));
    let (pointer, returned) = (number(At::Body, 0), number(At::Return, 0));
    let entry = |capture, name: &str, at, method, signed| CaptureEntry {
        function,
        capture,
        name: name.into(),
        bits: 32,
        signed,
        at,
        method,
        elements_max: 1,
    };
    sample.captures = vec![
        entry(n, "n", At::Entry, How::Register, false),
        entry(
            array,
            "frame->pkts[].seq",
            At::Entry,
            How::CheckedCopy,
            false,
        ),
        entry(pointer, "frame->port", At::Body, How::OwnLoad, false),
        entry(returned, "return", At::Return, How::Register, true),
    ];
    let value = |capture, element, content| {
        let value = Value {
            capture,
            element,
            content,
        };
        value.record(function)
    };
    let start = sample.meta.start.tsc.0;
    let records = vec![
        Record::new(start + 100, function, RecordKind::Entry, 0x7ffe_1000),
        value(n, 0, Content::Value(300)),
        value(array, 0, Content::Value(7001)),
        value(array, 1, Content::LeftOut { elements: 300 }),
        value(pointer, 0, Content::Unreadable),
        value(number(At::Body, 9), 0, Content::Unknown(10)),
        value(returned, 0, Content::Value((-22i64) as u64)),
        Record::new(start + 900, function, RecordKind::Exit, 0x7ffe_1000),
        value(returned, 0, Content::Value(1)),
    ];
    sample.batches = vec![(ThreadIx(0), 0, 0, records)];
    let recording = sample.recording();
    let names = Names::new(&recording);
    for json in [false, true] {
        let writer = EventWriter {
            names: &names,
            scale: Scale::new(TimeUnit::Ns, sample.meta.tsc_frequency),
            start: sample.meta.start.tsc,
            json,
        };
        let mut out = Vec::new();
        for (index, record) in (0..).zip(&sample.batches[0].3) {
            let event = Event {
                thread: ThreadIx(0),
                index,
                record: *record,
            };
            writer.event(&mut out, event).expect("to memory");
        }
        check(if json { "values.jsonl" } else { "values.txt" }, out);
    }
    let layout = Layout::Rows(Group::Function);
    check(
        "values_losses.txt",
        text(&sample, Group::Function, view(layout)),
    );
}

/// Packets beside calls, and packets alone: then nothing is said of calls.
#[test]
fn packets() {
    let entries = [StreamEntry {
        ix: StreamIx(0),
        sender: "af_packet:veth0".into(),
        receiver: "af_packet:veth1".into(),
        traffic: "64 B UDP, 2 flows".into(),
    }];
    let rows: Vec<Stamp> = (0..1000u64)
        .map(|n| Stamp {
            seq: n,
            flow: (n % 2) as u32,
            len: 64,
            intended: Tsc(1_000_000 + 2_000 * n),
            sent: Tsc(1_000_000 + 2_000 * n + if n > 990 { 60_000 } else { 40 }),
            received: (n % 100 != 7).then_some(Tsc(1_100_000 + 2_010 * n)),
            flags: match n {
                991.. => StampFlags::LATE,
                30 => StampFlags::REORDERED,
                31 => StampFlags::CORRUPTED,
                _ => StampFlags::NONE,
            },
        })
        .collect();
    let again = Stamp {
        flags: StampFlags::DUPLICATE,
        ..rows[5]
    };
    let mut of = Packets::new(StreamIx(0));
    rows.iter().chain([&again]).for_each(|row| of.add(row));
    of.unwritten = 3;
    let packets = [of];
    let sample = Sample::new();
    let mut recording = sample.recording();
    recording.streams = Streams {
        entries: &entries,
        packets: &packets,
    };
    let layout = view(Layout::Rows(Group::Module));
    let outcome = sample.analyzed(Group::Module);
    let mut out = Vec::new();
    hopscope_report::write_text(&mut out, &recording, &outcome, layout).expect("to memory");
    check("packets_and_calls.txt", out);
    (recording.processes, recording.functions) = (&[], &[]);
    let meta = RecordingMeta {
        probe_cost: None,
        ..sample.meta.clone()
    };
    recording.meta = &meta;
    for (name, json) in [("packets.txt", false), ("packets.jsonl", true)] {
        let mut out = Vec::new();
        let write = if json {
            hopscope_report::write_json
        } else {
            hopscope_report::write_text
        };
        write(&mut out, &recording, &outcome, layout).expect("to memory");
        check(name, out);
    }
    for (name, json) in [("packet_rows.txt", false), ("packet_rows.jsonl", true)] {
        let mut out = Vec::new();
        let writer = PacketWriter {
            scale: Scale::new(TimeUnit::Ns, sample.meta.tsc_frequency),
            start: Tsc(1_000_000),
            json,
        };
        writer.titles(&mut out).expect("to memory");
        for row in rows[5..8]
            .iter()
            .chain(&rows[30..32])
            .chain([&again, &rows[995]])
        {
            writer.packet(&mut out, 0, row).expect("to memory");
        }
        check(name, out);
    }
}

/// By hand, from the definition of the correction: the sample's rounds differ in one leaf only.
#[test]
fn corrected_sums_are_those_of_the_definition() {
    let sample = Sample::new();
    let outcome = sample.analyzed(Group::Function);
    let correction = outcome.correction.expect("the sample has a probe cost");
    let row = outcome
        .rows
        .iter()
        .find(|r| r.key.function.is_some_and(|f| f.0 == 1));
    let acl_input = &row.expect("it was called").stats;
    // 100 rounds: 1,900 ticks raw, one descendant each.
    assert_eq!(acl_input.outer_ticks, 190_000);
    let total = acl_input.corrected_total(&correction);
    assert_eq!(total.median, 190_000 - 100 * 22 - 100 * 46);
    assert_eq!(total.low, 190_000 - 100 * 40 - 100 * 90);
    assert_eq!(total.high, 190_000 - 100 * 20 - 100 * 44);
    // The leaf takes 300 + 10·round; own = raw − leaf, and own bias and n·bias cancel out.
    let leaf: i128 = (0..100).map(|round| 300 + 10 * round).sum();
    assert_eq!(acl_input.self_ticks, 190_000 - leaf);
    let own = acl_input.corrected_self(&correction);
    assert_eq!(own.median, 190_000 - leaf - 100 * 46);
    // `output` takes 10 ticks, less than the bias: negative, and counted.
    let row = outcome
        .rows
        .iter()
        .find(|r| r.key.function.is_some_and(|f| f.0 == 4));
    let output = &row.expect("it was called").stats;
    assert_eq!(output.inclusive_corrected.negative(), 100);
    assert_eq!(output.corrected_total(&correction).median, 100 * (10 - 22));
}
