//! A small recording that holds something of everything. `tests/golden/` was written from it: what
//! a released version wrote is never changed here, only added to in functions of its own.
#![allow(dead_code)] // each test takes what it needs

use hopscope_event::slice::{self, Sliced};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::*;
use hopscope_trace::{OwnedSwitches, RecordBatch, Stamps, Switches, TraceReader, TraceWriter};

pub const BATCH: usize = 10;

fn sync(tsc: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: 1_000,
        realtime_ns: 1_763_701_929_000_000_000,
        window_ticks: 3,
    }
}

pub fn meta() -> RecordingMeta {
    RecordingMeta {
        hopscope_version: "0.1.0".into(),
        command_line: ["hopscope", "record", "-p", "7"].map(String::from).into(),
        host: "host".into(),
        kernel: "Linux 6.1.0".into(),
        cpu: "A CPU".into(),
        cpus_online: 2,
        tsc_frequency: TscFrequency(2_596_000_000),
        tsc_invariant: true,
        start: sync(100),
        stride: 16,
        ring_records: 4096,
        probe_cost: Some(ProbeCost::in_a_loop([26, 27, 28], [45, 46, 50])),
    }
}

pub fn process() -> ProcessEntry {
    ProcessEntry {
        ix: ProcessIx(0),
        pid: 7,
        comm: "nf".into(),
        command_line: ["./nf", "--workers", "1"].map(String::from).into(),
    }
}

pub fn module() -> ModuleEntry {
    ModuleEntry {
        ix: ModuleIx(0),
        path: "/bin/nf".into(),
        build_id: "00ab".into(),
    }
}

pub fn functions() -> Vec<FunctionEntry> {
    let function = |id: u32| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: format!("stage_{id}"),
        svma: 0x1000 + u64::from(id) * 64,
        size: 60,
        file: (id == 0).then(|| "nf.c".into()),
        line: (id == 0).then_some(12),
    };
    (0..4).map(function).collect()
}

pub fn refusal() -> Refusal {
    Refusal {
        module: "/bin/nf".into(),
        name: "parse".into(),
        svma: 0x4000,
        reason: "a branch into the patched bytes".into(),
    }
}

pub fn thread() -> ThreadEntry {
    ThreadEntry {
        ix: ThreadIx(0),
        process: ProcessIx(0),
        tid: 8,
        comm: "worker".into(),
    }
}

pub fn summary() -> Summary {
    Summary {
        end: sync(900_000),
        ended_because: "the time given is over".into(),
        recorded: 40,
        lost: 5,
        torn: 2,
        threads_measured: 1,
        calls_unmeasured: Some(3),
        attach_pause_ns: vec![100_000],
        detach_pause_ns: vec![90_000],
        stops: Default::default(),
        recorder_cpu_ns: Some(5_000),
        notes: vec!["note".into()],
    }
}

/// Nested calls with tail calls, escapes, a signal handler's inversion, and kinds that nobody knows.
pub fn records() -> Vec<Record> {
    let mut records = Vec::new();
    for n in 0..5u64 {
        let at = 1_000_000 + n * n * 70_000;
        let call = |after: u64, id, kind, rsp| Record::new(at + after, FunctionId(id), kind, rsp);
        records.extend([
            call(0, 0, RecordKind::Entry, 0x7ffe_1000),
            call(60, 1, RecordKind::Entry, 0x7ffe_0f80),
            call(50, 2, RecordKind::Entry, 0x7ffe_0a00),
            call(150, 2, RecordKind::Exit, 0x7ffe_0a00),
            call(190, 1, RecordKind::TailExit, 0x7ffe_0f80),
            call(230, 3, RecordKind::Entry, 0x7ffe_0f80),
            call(400, 3, RecordKind::Escape, 0x1234_5678),
            call(900, 0, RecordKind::Exit, 0x7ffe_1000),
        ]);
    }
    records[20].id_kind = 0xffff_ffff;
    records[21].tsc = 3;
    records[22].stack = 0xffff_fff8;
    records
}

pub struct File {
    pub bytes: Vec<u8>,
    /// Where the chunk of each batch ends.
    pub ends: Vec<usize>,
}

/// Everything above; the records in batches of [`BATCH`].
pub fn file(records: &[Record]) -> File {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.process(&process()).unwrap();
    writer.modules(&[module()]).unwrap();
    writer.functions(&functions()).unwrap();
    writer.refusals(&[refusal()]).unwrap();
    writer.thread(&thread()).unwrap();
    let mut ends = Vec::new();
    for (n, part) in records.chunks(BATCH).enumerate() {
        let batch = RecordBatch {
            thread: ThreadIx(0),
            first_index: (BATCH * n + 5) as u64,
            lost_before: if n == 0 { 5 } else { 0 },
            torn_before: if n == 1 { 2 } else { 0 },
            records: part,
        };
        writer.records(batch).unwrap();
        ends.push(writer.bytes_written() as usize);
    }
    writer.clock(sync(500_000)).unwrap();
    let bytes = writer.finish(&summary()).unwrap();
    File { bytes, ends }
}

pub fn clock() -> ClockSync {
    sync(500_000)
}

/// Asserts that `reader` gives back what [`file`] wrote.
pub fn assert_whole(reader: &hopscope_trace::TraceReader, records: &[Record]) {
    let t = reader.tables();
    assert_eq!((&t.meta, &t.summary), (&meta(), &Some(summary())));
    assert_eq!(
        (&t.processes, &t.threads),
        (&vec![process()], &vec![thread()])
    );
    assert_eq!((&t.modules, &t.functions), (&vec![module()], &functions()));
    assert_eq!((&t.refusals, &t.clocks), (&vec![refusal()], &vec![clock()]));
    assert_eq!((&t.damage, t.unknown_chunks), (&None, 0));
    let batches: Vec<_> = reader.batches().map(Result::unwrap).collect();
    for (n, (batch, part)) in batches.iter().zip(records.chunks(BATCH)).enumerate() {
        assert_eq!(batch.records, part);
        assert_eq!(
            (batch.thread, batch.first_index),
            (ThreadIx(0), (BATCH * n + 5) as u64)
        );
        let gaps = (batch.lost_before, batch.torn_before);
        assert_eq!(gaps, [(5, 0), (0, 2), (0, 0)][n.min(2)]);
    }
    assert_eq!(batches.len(), records.len().div_ceil(BATCH));
    let heads: Vec<_> = reader.heads().map(|head| head.records as usize).collect();
    let lengths: Vec<_> = batches.iter().map(|batch| batch.records.len()).collect();
    assert_eq!(heads, lengths);
}

pub const STAMPS_BATCH: usize = 10;

pub fn stream() -> StreamEntry {
    StreamEntry {
        ix: StreamIx(0),
        sender: "af_packet:veth0".into(),
        receiver: "af_packet:veth1".into(),
        traffic: "64 B UDP over IPv4, 3 flows, 1,000,000/s".into(),
    }
}

/// 23 packets: three lost, two late, one overtaken, one damaged, two that came twice.
pub fn stamped_packets() -> Vec<Stamp> {
    let mut rows: Vec<Stamp> = (0..23u64)
        .map(|seq| {
            let intended = Tsc(5_000_000 + 2_596 * seq);
            let late = if seq == 8 || seq == 9 { 40_000 } else { 31 };
            let lost = seq == 4 || seq == 15 || seq == 22;
            let flags = match seq {
                8 | 9 => StampFlags::LATE,
                12 => StampFlags::CORRUPTED,
                _ => StampFlags::NONE,
            };
            Stamp {
                seq,
                flow: (seq % 3) as u32,
                len: if seq < 20 { 64 } else { 1500 },
                intended,
                sent: intended + late,
                received: (!lost).then(|| intended + late + 20_000 + 7 * seq),
                flags,
            }
        })
        .collect();
    rows[16].flags |= StampFlags::REORDERED;
    rows.swap(16, 19);
    for seq in [2, 12] {
        let mut again = rows[seq];
        again.received = again.received.map(|at| at + 900);
        again.flags = StampFlags::DUPLICATE;
        rows.push(again);
    }
    rows
}

/// A recording of packets only, in batches of [`STAMPS_BATCH`].
pub fn stamped_file(rows: &[Stamp]) -> File {
    let mut meta = meta();
    meta.command_line = ["hopscope", "load", "packets"].map(String::from).into();
    let mut writer = TraceWriter::new(Vec::new(), &meta).unwrap();
    writer.stream(&stream()).unwrap();
    let mut ends = Vec::new();
    for (n, part) in rows.chunks(STAMPS_BATCH).enumerate() {
        let batch = Stamps {
            stream: StreamIx(0),
            unwritten_before: if n == 1 { 4 } else { 0 },
            stamps: part,
        };
        writer.stamps(batch).unwrap();
        ends.push(writer.bytes_written() as usize);
    }
    let summary = Summary {
        recorded: 0,
        lost: 0,
        torn: 0,
        ..summary()
    };
    let bytes = writer.finish(&summary).unwrap();
    File { bytes, ends }
}

/// Asserts that `reader` gives back what [`stamped_file`] wrote.
pub fn assert_stamps(reader: &TraceReader, rows: &[Stamp]) {
    let t = reader.tables();
    assert_eq!((&t.streams, &t.damage), (&vec![stream()], &None));
    assert_eq!(t.unknown_chunks, 0);
    let batches: Vec<_> = reader.stamps().map(Result::unwrap).collect();
    for (n, (batch, part)) in batches.iter().zip(rows.chunks(STAMPS_BATCH)).enumerate() {
        assert_eq!((batch.stream, batch.stamps.as_slice()), (StreamIx(0), part));
        assert_eq!(batch.unwritten_before, if n == 1 { 4 } else { 0 });
    }
    assert_eq!(batches.len(), rows.len().div_ceil(STAMPS_BATCH));
    let heads: Vec<_> = reader.stamp_heads().map(|h| h.rows as usize).collect();
    let lengths: Vec<_> = batches.iter().map(|b| b.stamps.len()).collect();
    assert_eq!(heads, lengths);
}

const PORT: u16 = value::number(CapturePlace::Body, 0);
const RETURN: u16 = value::number(CapturePlace::Return, 0);

pub fn captures() -> Vec<CaptureEntry> {
    let capture = |capture: u16, name: &str, at, method| CaptureEntry {
        function: FunctionId(0),
        capture,
        name: name.into(),
        bits: 32,
        signed: at == CapturePlace::Return,
        at,
        method,
        elements_max: if name.contains('[') { 64 } else { 1 },
    };
    use {CaptureMethod as How, CapturePlace as At};
    vec![
        capture(0, "n", At::Entry, How::Register),
        capture(PORT, "frame->port", At::Body, How::OwnLoad),
        capture(2, "frame->pkts[].seq", At::Entry, How::CheckedCopy),
        capture(RETURN, "return", At::Return, How::Register),
        capture(4, "frame->queue", At::Entry, How::PlainLoad),
    ]
}

/// Calls with values of all sorts, absent ones and unknown ones among them.
pub fn captured_records() -> Vec<Record> {
    let mut records = Vec::new();
    let value = |capture, element, content| {
        let value = Value {
            capture,
            element,
            content,
        };
        value.record(FunctionId(0))
    };
    for n in 0..4u64 {
        let at = 1_000_000 + n * 3_000;
        let call = |after: u64, id, kind, rsp| Record::new(at + after, FunctionId(id), kind, rsp);
        records.push(call(0, 0, RecordKind::Entry, 0x7ffe_1000));
        records.push(value(0, 0, Content::Value(3 + n)));
        for element in 0..3 {
            let seq = 100 + 3 * n + u64::from(element);
            records.push(value(2, element, Content::Value(seq)));
        }
        if n == 2 {
            records.push(value(2, 3, Content::LeftOut { elements: 300 }));
            records.push(value(4, 0, Content::Unknown(8)));
        }
        records.push(call(40, 1, RecordKind::Entry, 0x7ffe_0f80));
        records.push(call(90, 1, RecordKind::Exit, 0x7ffe_0f80));
        match n {
            1 => records.push(value(PORT, 0, Content::Unreadable)),
            _ => records.push(value(PORT, 0, Content::Value(u64::MAX >> n))),
        }
        records.push(value(RETURN, 0, Content::Value((n as i64 - 2) as u64)));
        records.push(call(200, 0, RecordKind::Exit, 0x7ffe_1000));
    }
    records
}

/// [`file`] with captures.
pub fn captured_file(records: &[Record]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.process(&process()).unwrap();
    writer.modules(&[module()]).unwrap();
    writer.functions(&functions()).unwrap();
    writer.captures(&captures()).unwrap();
    writer.thread(&thread()).unwrap();
    let batch = RecordBatch {
        thread: ThreadIx(0),
        first_index: 0,
        lost_before: 0,
        torn_before: 0,
        records,
    };
    writer.records(batch).unwrap();
    writer.finish(&summary()).unwrap()
}

/// Asserts that `reader` gives back what [`captured_file`] wrote.
pub fn assert_captured(reader: &TraceReader, records: &[Record]) {
    let t = reader.tables();
    assert_eq!((&t.captures, &t.damage), (&captures(), &None));
    assert_eq!(t.unknown_chunks, 0);
    let read: Vec<_> = reader.batches().flat_map(|b| b.unwrap().records).collect();
    assert_eq!(read, records);
}

/// One counted by a processor, with what probes count of themselves; one of the kernel; one answered in a test.
pub fn counters() -> Vec<CounterEntry> {
    let counter = |number, name: &str, (kind, config), bits, cost| CounterEntry {
        number,
        name: name.into(),
        event: CounterEvent { kind, config },
        bits,
        cost,
        emulated: number == 3,
    };
    let cost = |bias, pair| Some(CounterCost { bias, pair });
    vec![
        counter(0, "instructions", (0, 1), 48, cost([30, 31, 35], Some(84))),
        counter(1, "cycles", (0, 0), 40, cost([20, 22, 40], None)),
        counter(3, "r01c2", (4, 0x01c2), 48, None),
    ]
}

/// Calls with readings at both ends: counts, and why there is none.
pub fn counted_records() -> Vec<Record> {
    let mut records = Vec::new();
    for n in 0..6u64 {
        let readings = |at, after: u64| {
            [0u8, 1, 3].map(|counter| {
                let count = Count {
                    count: (1 << 47) + n * 7_000 + after * u64::from(counter + 1),
                    updates: 0x7fff_0001 + n as u32 / 3,
                };
                let (content, element) = match (n, counter) {
                    (0, _) => (Content::NotOpened, 0),
                    (4, 3) => (Content::NotCounting, 0),
                    _ => count.parts(),
                };
                let capture = counter::capture_number(at, counter);
                let value = Value {
                    capture,
                    element,
                    content,
                };
                value.record(FunctionId(0))
            })
        };
        let call = |after: u64, kind| {
            Record::new(
                1_000_000 + n * 3_000 + after,
                FunctionId(0),
                kind,
                0x7ffe_1000,
            )
        };
        records.push(call(0, RecordKind::Entry));
        records.extend(readings(CapturePlace::Entry, 0));
        records.extend(readings(CapturePlace::Return, 500));
        let end = if n == 5 {
            RecordKind::TailExit
        } else {
            RecordKind::Exit
        };
        records.push(call(200, end));
    }
    records
}

/// [`file`] with counters, and the captures that say which function has which.
pub fn counted_file(records: &[Record]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.process(&process()).unwrap();
    writer.modules(&[module()]).unwrap();
    writer.functions(&functions()).unwrap();
    writer.captures(&counted_captures()).unwrap();
    writer.counters(&counters()).unwrap();
    writer.thread(&thread()).unwrap();
    let batch = RecordBatch {
        thread: ThreadIx(0),
        first_index: 0,
        lost_before: 0,
        torn_before: 0,
        records,
    };
    writer.records(batch).unwrap();
    writer.finish(&summary()).unwrap()
}

fn counted_captures() -> Vec<CaptureEntry> {
    let row = |counter: &CounterEntry, at| CaptureEntry {
        function: FunctionId(0),
        capture: counter::capture_number(at, counter.number),
        name: format!("@{}", counter.name),
        bits: counter.bits,
        signed: false,
        at,
        method: CaptureMethod::Counter,
        elements_max: 1,
    };
    let of = |c: &CounterEntry| [CapturePlace::Entry, CapturePlace::Return].map(|at| row(c, at));
    counters().iter().flat_map(of).collect()
}

/// Asserts that `reader` gives back what [`counted_file`] wrote.
pub fn assert_counted(reader: &TraceReader, records: &[Record]) {
    let t = reader.tables();
    assert_eq!((&t.counters, &t.damage), (&counters(), &None));
    assert_eq!((&t.captures, t.unknown_chunks), (&counted_captures(), 0));
    let read: Vec<_> = reader.batches().flat_map(|b| b.unwrap().records).collect();
    assert_eq!(read, records);
}

/// Two threads: one that sleeps between its batches, one that is taken off; switches were lost.
pub fn switches() -> Vec<OwnedSwitches> {
    let row = |out: u64, ticks: u64, preempted| OffCpu {
        out: Tsc(7_000_000 + out),
        back: Tsc(7_000_000 + out + ticks),
        preempted,
    };
    let sleeps = (0..9).map(|n| row(n * 260_000, 159_000 + n, false));
    let taken_off = |from: u64| (from..from + 4).map(|n| row(n * 10_400_000, 5_000_000, true));
    let batch = |thread, lost_before, rows: Vec<OffCpu>| OwnedSwitches {
        thread: ThreadIx(thread),
        lost_before,
        rows,
    };
    vec![
        batch(0, 0, sleeps.collect()),
        batch(1, 0, taken_off(0).collect()),
        batch(
            1,
            12,
            taken_off(9).chain([row(u64::MAX / 8, 0, false)]).collect(),
        ),
        batch(0, 12, Vec::new()),
    ]
}

pub fn off_cpu() -> OffCpuEntry {
    OffCpuEntry {
        why_not: None,
        clock_error_ns: 60,
        intervals: 18,
        lost: 12,
        unpaired: 1,
    }
}

pub fn thin() -> ThinEntry {
    ThinEntry {
        roots: vec![FunctionId(0)],
        every: 10,
        runs_seen: 1_000,
        runs_kept: 99,
        runs_cut: 1,
        records_left_out: 7_208,
    }
}

pub fn triggers() -> [TriggerEntry; 2] {
    let signal = TriggerEntry {
        trigger: "SIGUSR1".into(),
        at: Tsc(8_000_000),
        thread: None,
        function: None,
        took_ticks: None,
    };
    let call = TriggerEntry {
        trigger: "stage_2 > 50us".into(),
        at: Tsc(8_300_000),
        thread: Some(ThreadIx(0)),
        function: Some(FunctionId(2)),
        took_ticks: Some(131_072),
    };
    [signal, call]
}

/// Everything of [`file`], and what version 1.2 added for context switches and choices.
pub fn switched_file() -> File {
    let mut writer = TraceWriter::new(Vec::new(), &meta()).unwrap();
    writer.process(&process()).unwrap();
    writer.modules(&[module()]).unwrap();
    writer.functions(&functions()).unwrap();
    let unknown = OffCpuEntry {
        intervals: 0,
        lost: 0,
        unpaired: 0,
        ..off_cpu()
    };
    writer.off_cpu(&unknown).unwrap();
    writer
        .thin(&ThinEntry {
            every: 10,
            ..ThinEntry::default()
        })
        .unwrap();
    writer.thread(&thread()).unwrap();
    let other = ThreadEntry {
        ix: ThreadIx(1),
        tid: 9,
        ..thread()
    };
    writer.thread(&other).unwrap();
    let mut ends = Vec::new();
    for batch in switches() {
        writer
            .switches(Switches {
                thread: batch.thread,
                lost_before: batch.lost_before,
                rows: &batch.rows,
            })
            .unwrap();
        ends.push(writer.bytes_written() as usize);
    }
    triggers().iter().for_each(|t| writer.trigger(t).unwrap());
    writer.off_cpu(&off_cpu()).unwrap();
    writer.thin(&thin()).unwrap();
    let bytes = writer.finish(&summary()).unwrap();
    File { bytes, ends }
}

/// Asserts that `reader` gives back what [`switched_file`] wrote.
pub fn assert_switches(reader: &TraceReader) {
    let t = reader.tables();
    assert_eq!((&t.off_cpu, &t.thin), (&Some(off_cpu()), &Some(thin())));
    assert_eq!((t.triggers.as_slice(), &t.damage), (&triggers()[..], &None));
    assert_eq!(t.unknown_chunks, 0);
    let batches: Vec<_> = reader.off_cpu().map(Result::unwrap).collect();
    assert_eq!(batches, switches());
    let heads: Vec<_> = reader.off_cpu_heads().map(|h| h.rows as usize).collect();
    let lengths: Vec<_> = batches.iter().map(|b| b.rows.len()).collect();
    assert_eq!(heads, lengths);
}

pub const SLICES_BATCH: usize = 6;

/// Fifteen packets of all sorts, every third with its bytes, one of them cut.
pub fn sliced_packets() -> Vec<Sliced> {
    let row = |id: u64| {
        let record = match id % 5 {
            0 => slice::sample::dropped(id),
            1 | 3 => slice::sample::over_veth(id),
            _ => slice::sample::through_queue(id),
        };
        let mut bytes = id.is_multiple_of(3).then(|| slice::sample::frame(&record));
        if let (9, Some(bytes)) = (id, &mut bytes) {
            bytes.bytes.truncate(60);
        }
        Sliced { record, bytes }
    };
    (1..16).map(row).collect()
}

/// A recording of slices only, in batches of [`SLICES_BATCH`].
pub fn sliced_file(rows: &[Sliced]) -> File {
    let mut meta = meta();
    meta.command_line = ["hopscope", "slice"].map(String::from).into();
    let mut writer = TraceWriter::new(Vec::new(), &meta).unwrap();
    writer.slice(&slice::sample::entry()).unwrap();
    let mut ends = Vec::new();
    for part in rows.chunks(SLICES_BATCH) {
        writer.slices(part).unwrap();
        ends.push(writer.bytes_written() as usize);
    }
    let count = rows.len() as u64;
    writer
        .slice_summary(&slice::sample::summary(count))
        .unwrap();
    let summary = Summary {
        recorded: 0,
        lost: 0,
        torn: 0,
        ..summary()
    };
    let bytes = writer.finish(&summary).unwrap();
    File { bytes, ends }
}

/// Asserts that `reader` gives back what [`sliced_file`] wrote.
pub fn assert_sliced(reader: &TraceReader, rows: &[Sliced]) {
    assert_eq!(reader.tables().slice, Some(slice::sample::entry()));
    assert_sliced_packets(reader, rows);
}

/// The same of all but the constants.
pub fn assert_sliced_packets(reader: &TraceReader, rows: &[Sliced]) {
    let t = reader.tables();
    assert_eq!((&t.damage, t.unknown_chunks), (&None, 0));
    let count = rows.len() as u64;
    assert_eq!(t.slice_summary, Some(slice::sample::summary(count)));
    let batches: Vec<_> = reader.slices().map(Result::unwrap).collect();
    let parts: Vec<_> = rows.chunks(SLICES_BATCH).collect();
    assert_eq!(batches, parts);
    let heads: Vec<_> = reader.slice_heads().map(|h| h.rows as usize).collect();
    let lengths: Vec<_> = batches.iter().map(Vec::len).collect();
    assert_eq!(heads, lengths);
}
