//! Exports of a small recording, byte for byte (Parquet: as read back). `GOLDEN=write cargo test
//! -p hopscope-report` writes them anew; the difference is then read in the commit.
mod sample;

use hopscope_analyze::trail::{Observer, Trail};
use hopscope_analyze::{Batch, Group, Packets, Window};
use hopscope_event::value::number;
use hopscope_event::{
    CaptureEntry, CaptureMethod, CapturePlace, Content, FunctionId, Record, RecordKind,
};
use hopscope_event::{Stamp, StampFlags, StreamEntry, StreamIx, ThreadIx, Tsc, Value};
use hopscope_report::export::{
    CALLS, CallRows, CsvRows, FUNCTIONS, Facts, FoldedValue, calls_schema, functions_schema,
};
use hopscope_report::export::{
    JsonRows, PACKETS, PacketRows, Perfetto, Rows, VALUES, ValueRows, write_folded, write_functions,
};
use hopscope_report::{Names, Timeline};
use sample::Sample;
use std::path::Path;

fn check(name: &str, got: Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/export")
        .join(name);
    if std::env::var_os("GOLDEN").is_some_and(|v| v == "write") {
        std::fs::write(&path, &got).expect("the golden directory is writable");
    }
    let expected = std::fs::read(&path).unwrap_or_default();
    let shown = String::from_utf8_lossy(&got);
    assert!(got == expected, "{name} differs; it is now:\n{shown}");
}

/// Three rounds instead of a hundred, and a name for every trap.
fn sample() -> Sample {
    let mut sample = Sample::new();
    sample.batches[0].3.truncate(31);
    sample.functions[1].name = "=acl;input<\"a\", b>\n#1".into();
    sample.functions[2].name = "acl_match(rule const&)".into();
    sample
}

fn observe(sample: &Sample, observer: &mut impl Observer) -> Facts {
    let index = sample.index();
    let mut calls = Trail::new(index, Window::default(), sample.meta.probe_cost);
    for (thread, first_index, lost, records) in &sample.batches {
        let batch = Batch {
            thread: *thread,
            first_index: *first_index,
            lost: *lost,
            torn: 0,
            records,
            taken: &[],
            early: false,
        };
        calls.feed(&batch, observer);
    }
    let totals = calls.finish(observer);
    assert!(totals.balance.holds(), "{:?}", totals.balance);
    let mut facts = Facts::of(&sample.recording());
    facts.calls(&totals.balance, &totals.oddities);
    facts
}

fn timeline(sample: &Sample) -> Timeline {
    Timeline::new(&sample.meta, &[], sample.summary.as_ref().map(|s| s.end))
}

fn calls(sample: &Sample, rows: impl Rows) {
    let recording = sample.recording();
    let names = Names::new(&recording);
    let timeline = timeline(sample);
    let calls = CallRows::new(&names, &timeline, rows);
    let mut calls = calls.with_counters(&sample.counters);
    let facts = observe(sample, &mut calls);
    calls.finish(&facts).expect("to memory");
}

#[test]
fn csv_of_calls() {
    let mut out = Vec::new();
    let rows = CsvRows::new(&mut out, &CALLS).expect("to memory");
    calls(&sample(), rows);
    check("calls.csv", out);
}

#[test]
fn json_of_calls() {
    let mut out = Vec::new();
    calls(&sample(), JsonRows::new(&mut out, &CALLS));
    check("calls.jsonl", out);
}

/// Counters have columns of their own, and calls without a count say why.
#[test]
fn counters() {
    let mut sample = Sample::counted();
    sample.batches[0].3.truncate(60);
    let mut out = Vec::new();
    let schema = calls_schema(&sample.counters);
    calls(&sample, CsvRows::new(&mut out, &schema).expect("to memory"));
    check("counters_calls.csv", out);
    let mut out = Vec::new();
    calls(&sample, JsonRows::new(&mut out, &schema));
    check("counters_calls.jsonl", out);
    let recording = sample.recording();
    let mut out = Vec::new();
    let schema = functions_schema(&sample.counters);
    write_functions(
        &mut CsvRows::new(&mut out, &schema).expect("to memory"),
        &Names::new(&recording),
        &sample.analyzed(Group::Function),
        sample.meta.tsc_frequency,
        &sample.counters,
        &Facts::of(&recording),
    )
    .expect("to memory");
    check("counters_functions.csv", out);
}

/// What a call counted is in the arguments of its slice.
#[test]
fn counters_in_perfetto() {
    let sample = Sample::counted();
    let recording = sample.recording();
    let (names, timeline) = (Names::new(&recording), timeline(&sample));
    let mut out = Vec::new();
    let mut trace = Perfetto::new(&mut out, recording, &names, &timeline).expect("to memory");
    let facts = observe(&sample, &mut trace);
    trace.finish(&facts).expect("to memory");
    let times = |text: &str| {
        out.windows(text.len())
            .filter(|w| *w == text.as_bytes())
            .count()
    };
    // Of 302 calls one began too early for its counters, and three were interrupted.
    assert_eq!(times("instructions_total_corrected"), 298);
    assert_eq!(times("instructions_own_corrected"), 298);
    assert_eq!(times("instructions_left_out"), 4);
    assert_eq!(times("context-switches_own_raw"), 100);
    assert_eq!((times("rescheduled"), times("not_opened")), (6, 3));
}

/// As of calls in other formats; names that would be one get their numbers.
#[test]
fn columns_of_counters_with_like_names() {
    let mut sample = Sample::counted();
    sample.counters[0].name = "l1-misses".into();
    sample.counters[1].name = "l1/misses".into();
    let schema = calls_schema(&sample.counters);
    let names: Vec<_> = schema.all().map(|c| c.name).collect();
    assert!(names.contains(&"l1_misses_0_total_raw"), "{names:?}");
    assert!(names.contains(&"l1_misses_1_left_out"), "{names:?}");
    assert!(names.contains(&"context_switches_own_raw"), "{names:?}");
    assert_eq!(names.last(), Some(&"note"));
}

#[test]
fn a_damaged_recording_of_a_killed_recorder_says_so_in_every_row_format() {
    let mut sample = sample();
    sample.summary = None;
    sample.damage = Some("at byte 4096: the checksum of a chunk is wrong".into());
    let mut out = Vec::new();
    calls(&sample, CsvRows::new(&mut out, &CALLS).expect("to memory"));
    let text = String::from_utf8(out).expect("UTF-8");
    assert!(text.contains("damage: at byte 4096"), "{text}");
    assert!(text.contains("ended: not in order"), "{text}");
    let mut out = Vec::new();
    calls(&sample, JsonRows::new(&mut out, &CALLS));
    let text = String::from_utf8(out).expect("UTF-8");
    let summary = text.lines().last().expect("lines");
    assert!(summary.contains("\"damage\":\"at byte 4096"), "{summary}");
}

#[test]
fn functions() {
    let sample = sample();
    let outcome = sample.analyzed(Group::Function);
    let recording = sample.recording();
    let mut facts = Facts::of(&recording);
    facts.calls(&outcome.balance, &outcome.oddities);
    let mut out = Vec::new();
    let mut rows = CsvRows::new(&mut out, &FUNCTIONS).expect("to memory");
    let frequency = sample.meta.tsc_frequency;
    write_functions(
        &mut rows,
        &Names::new(&recording),
        &outcome,
        frequency,
        &sample.counters,
        &facts,
    )
    .expect("to memory");
    check("functions.csv", out);
}

#[test]
fn folded() {
    let sample = sample();
    let outcome = sample.analyzed(Group::Function);
    let recording = sample.recording();
    let mut facts = Facts::of(&recording);
    facts.calls(&outcome.balance, &outcome.oddities);
    for (name, value) in [
        ("own.folded", FoldedValue::OwnNs),
        ("calls.folded", FoldedValue::Calls),
    ] {
        let mut out = Vec::new();
        let names = Names::new(&recording);
        let frequency = sample.meta.tsc_frequency;
        write_folded(&mut out, &names, &outcome, frequency, value, &facts).expect("to memory");
        check(name, out);
    }
}

fn stamps() -> Vec<Stamp> {
    let row = |n: u64| Stamp {
        seq: n,
        flow: (n % 2) as u32,
        len: 64,
        intended: Tsc(1_002_000 + 10_000 * n),
        sent: Tsc(1_002_040 + 10_000 * n),
        received: (n != 2).then_some(Tsc(1_013_000 + 10_000 * n)),
        flags: match n {
            1 => StampFlags::LATE | StampFlags::CORRUPTED,
            3 => StampFlags::REORDERED,
            _ => StampFlags::NONE,
        },
    };
    let again = Stamp {
        flags: StampFlags::DUPLICATE,
        received: Some(Tsc(1_040_000)),
        ..row(1)
    };
    vec![row(0), row(1), again, row(3), row(2)]
}

fn streams() -> [StreamEntry; 1] {
    [StreamEntry {
        ix: StreamIx(0),
        sender: "af_packet:veth0".into(),
        receiver: "af_packet:veth1".into(),
        traffic: "64 B UDP, 2 flows".into(),
    }]
}

#[test]
fn packets() {
    let sample = sample();
    let (streams, timeline) = (streams(), timeline(&sample));
    let mut of = Packets::new(StreamIx(0));
    stamps().iter().for_each(|s| of.add(s));
    of.unwritten = 3;
    let mut facts = Facts::of(&sample.recording());
    facts.packets(&[of]);
    let mut out = Vec::new();
    let rows = CsvRows::new(&mut out, &PACKETS).expect("to memory");
    let mut packets = PacketRows::new(&streams, &timeline, rows);
    packets.gap(StreamIx(0), 3).expect("to memory");
    for stamp in stamps() {
        packets
            .packet(StreamIx(0), &stamp, None)
            .expect("to memory");
    }
    packets.finish(&facts).expect("to memory");
    check("packets.csv", out);
}

/// A call with values at the ends of their types' ranges.
fn values(rows: impl Rows) {
    let (mut sample, function) = (sample(), FunctionId(0));
    let entry = |nth, name: &str, signed| CaptureEntry {
        function,
        capture: number(CapturePlace::Entry, nth),
        name: name.into(),
        bits: 64,
        signed,
        at: CapturePlace::Entry,
        method: CaptureMethod::Register,
        elements_max: 1,
    };
    sample.captures = vec![entry(0, "unsigned", false), entry(1, "signed", true)];
    let value = |nth, content| {
        let value = Value {
            capture: number(CapturePlace::Entry, nth),
            element: 0,
            content,
        };
        value.record(function)
    };
    let (start, rsp) = (sample.meta.start.tsc.0, 0x7ffe_1000);
    let mut records = vec![Record::new(start + 100, function, RecordKind::Entry, rsp)];
    for bits in [0, (1 << 63) - 1, 1 << 63, u64::MAX] {
        records.extend([0, 1].map(|nth| value(nth, Content::Value(bits))));
    }
    records.push(value(0, Content::Unreadable));
    records.push(Record::new(start + 900, function, RecordKind::Exit, rsp));
    sample.batches = vec![(ThreadIx(0), 0, 0, records)];
    let recording = sample.recording();
    let names = Names::new(&recording);
    let timeline = timeline(&sample);
    let mut values = ValueRows::new(&names, &timeline, rows);
    let facts = observe(&sample, &mut values);
    values.finish(&facts).expect("to memory");
}

#[test]
fn csv_and_json_of_values() {
    let mut out = Vec::new();
    values(CsvRows::new(&mut out, &VALUES).expect("to memory"));
    check("values.csv", out);
    let mut out = Vec::new();
    values(JsonRows::new(&mut out, &VALUES));
    check("values.jsonl", out);
}

/// Each value as a decimal, as another reader of the format sees it.
#[cfg(feature = "parquet")]
#[test]
fn parquet_of_values() {
    use hopscope_report::export::ParquetRows;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let mut out = Vec::new();
    values(ParquetRows::new(&mut out, &VALUES).expect("to memory"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("values.parquet");
    std::fs::write(&path, out).expect("the directory is writable");
    let file = std::fs::File::open(&path).expect("just written");
    let reader = SerializedFileReader::new(file).expect("it reads what it wrote");
    let mut seen = Vec::new();
    for row in reader.get_row_iter(None).expect("rows") {
        let row = row.expect("a row");
        let value = row.get_column_iter().find(|(name, _)| *name == "value");
        seen.push(match value.expect("the column").1 {
            Field::Decimal(decimal) => {
                assert_eq!((decimal.precision(), decimal.scale()), (20, 0));
                let sign: u8 = if decimal.data()[0] & 0x80 == 0 {
                    0
                } else {
                    255
                };
                let digits = decimal.data().iter().fold(vec![sign; 16], |mut all, byte| {
                    all.remove(0);
                    all.push(*byte);
                    all
                });
                Some(i128::from_be_bytes(digits.try_into().expect("16 bytes")))
            }
            Field::Null => None,
            other => panic!("{other:?}"),
        });
    }
    let (top, all) = (1i128 << 63, i128::from(u64::MAX));
    let expected = [0, 0, top - 1, top - 1, top, -top, all, -1].map(Some);
    assert_eq!(seen, [&expected[..], &[None]].concat());
}

/// As another reader of the format sees it: its schema, its metadata and its rows.
#[cfg(feature = "parquet")]
#[test]
fn parquet_of_calls() {
    use hopscope_report::export::ParquetRows;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use std::fmt::Write;
    let mut out = Vec::new();
    calls(
        &sample(),
        ParquetRows::new(&mut out, &CALLS).expect("to memory"),
    );
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls.parquet");
    std::fs::write(&path, out).expect("the directory is writable");
    let file = std::fs::File::open(&path).expect("just written");
    let reader = SerializedFileReader::new(file).expect("it reads what it wrote");
    let metadata = reader.metadata().file_metadata();
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, metadata.schema());
    let mut text = String::from_utf8(text).expect("UTF-8");
    for pair in metadata.key_value_metadata().into_iter().flatten() {
        let value = pair.value.as_deref().unwrap_or_default();
        writeln!(text, "{} = {value}", pair.key).expect("to memory");
    }
    for row in reader.get_row_iter(None).expect("rows") {
        writeln!(text, "{}", row.expect("a row")).expect("to memory");
    }
    check("calls.parquet.txt", text.into_bytes());
}

/// The system test `export::perfetto` decodes it with the official descriptors.
#[test]
fn perfetto() {
    let sample = sample();
    let streams = streams();
    let mut recording = sample.recording();
    recording.streams.entries = &streams;
    let (names, timeline) = (Names::new(&recording), timeline(&sample));
    let mut out = Vec::new();
    let mut trace = Perfetto::new(&mut out, recording, &names, &timeline).expect("to memory");
    let mut facts = observe(&sample, &mut trace);
    for stamp in stamps() {
        trace.packet(StreamIx(0), &stamp).expect("to memory");
    }
    trace.facts(&mut facts);
    trace.finish(&facts).expect("to memory");
    check("trace.perfetto", out);
}

/// Own times of calls without the probes' cost, some below zero, as the log and as the percentile tables of HdrHistogram.
#[test]
fn hdr() {
    use hopscope_analyze::trail::{Begun, End};
    use hopscope_report::export::{HdrLog, HdrTables};
    struct Own(Vec<(String, Tsc, i64)>);
    impl Observer for Own {
        fn ended(&mut self, call: &Begun, end: &End) {
            if let End::Exit(times) = end {
                let tag = format!("f{} of, nf", call.function.0);
                let own = times.own_corrected.expect("the probe cost is known");
                self.0.push((tag, call.entry, own));
            }
        }
    }
    let sample = sample();
    let mut own = Own(Vec::new());
    let mut facts = observe(&sample, &mut own);
    let (start, frequency) = (sample.meta.start, sample.meta.tsc_frequency);
    let second = hopscope_event::Ns(1_000_000_000);
    let mut out = Vec::new();
    let mut log =
        HdrLog::new(&mut out, start.tsc, start.realtime_ns, frequency, second).expect("to memory");
    let mut tables = HdrTables::new(frequency);
    for (tag, at, ticks) in &own.0 {
        log.add(tag, *at, *ticks).expect("to memory");
        tables.add(tag, *ticks);
    }
    log.finish(&mut facts.clone()).expect("to memory");
    check("own.hlog", out);
    let mut out = Vec::new();
    tables.write(&mut out, None, &mut facts).expect("to memory");
    check("own.hgrm", out);
}
