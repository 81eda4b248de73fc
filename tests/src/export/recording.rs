//! A recording made by hand: 60 packets, three a run, of which each run captured the numbers, and a
//! process that may also be recorded in another file than the packets.
use anyhow::Result;
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::value::{Content, Value, number};
use hopscope_event::*;
use hopscope_trace::{Batch, Stamps, TraceWriter};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

pub(super) const RUNS: u64 = 20;
pub(super) const BATCH: u64 = 3;
const START: u64 = 5_000_000;
/// 1 GHz: a tick is a nanosecond.
const HZ: u64 = 1_000_000_000;
const GAP: u64 = 10_000;
pub(super) const FUNCTIONS: [&str; 3] = ["run", "acl, <fast>", "send"];

pub(super) fn lost(seq: u64) -> bool {
    seq % 17 == 4
}

/// Begin and length of a run, and what of it is `acl`'s own.
pub(super) fn run(n: u64) -> (u64, u64, u64) {
    let acl = 1_000 + n * 37 % 500;
    (START + (n + 1) * BATCH * GAP, acl + 800, acl)
}

pub(super) fn latency_ns(seq: u64) -> u64 {
    let (start, length, _) = run(seq / BATCH);
    start + length + 700 - (START + seq * GAP)
}

/// What `acl` gave back: often below 0.
pub(super) fn returned(n: u64) -> i64 {
    n as i64 - 10
}

fn sync(tsc: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: tsc,
        realtime_ns: 1_763_701_929_000_000_000 + tsc,
        window_ticks: 3,
    }
}

fn writer(to: &Path) -> Result<TraceWriter<BufWriter<File>>> {
    let meta = RecordingMeta {
        hopscope_version: "0.1.0".into(),
        command_line: vec!["hopscope".into(), "record".into()],
        host: "here".into(),
        kernel: "6.1".into(),
        cpu: "A CPU".into(),
        cpus_online: 2,
        tsc_frequency: TscFrequency(HZ),
        tsc_invariant: true,
        start: sync(START - 1_000),
        stride: 16,
        ring_records: 1 << 18,
        probe_cost: None,
    };
    Ok(TraceWriter::new(BufWriter::new(File::create(to)?), &meta)?)
}

fn finish(writer: TraceWriter<BufWriter<File>>, recorded: u64) -> Result<()> {
    writer.finish(&Summary {
        end: sync(START + 2_000_000),
        ended_because: "duration reached".into(),
        recorded,
        lost: 0,
        torn: 0,
        threads_measured: 1,
        calls_unmeasured: Some(0),
        attach_pause_ns: vec![],
        detach_pause_ns: vec![],
        recorder_cpu_ns: Some(0),
        notes: vec![],
    })?;
    Ok(())
}

/// The process in one file, the packets in the other; both in one when the files are one.
pub(super) fn write(process: &Path, packets: &Path) -> Result<()> {
    let mut one = writer(process)?;
    let recorded = calls(&mut one)?;
    if process == packets {
        stamps(&mut one)?;
        return finish(one, recorded);
    }
    finish(one, recorded)?;
    let mut other = writer(packets)?;
    stamps(&mut other)?;
    finish(other, 0)
}

fn tables(writer: &mut TraceWriter<BufWriter<File>>) -> Result<()> {
    writer.process(&ProcessEntry {
        ix: ProcessIx(0),
        pid: 7,
        comm: "nf".into(),
        command_line: vec!["./nf".into()],
    })?;
    writer.modules(&[ModuleEntry {
        ix: ModuleIx(0),
        path: "/opt/nf/nf".into(),
        build_id: String::new(),
    }])?;
    let functions = FUNCTIONS.iter().zip(0..).map(|(name, id)| FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: (*name).into(),
        svma: 0x1000 + u64::from(id) * 64,
        size: 64,
        file: None,
        line: None,
    });
    writer.functions(&functions.collect::<Vec<_>>())?;
    let capture = |name: &str, at, elements_max, signed| CaptureEntry {
        function: FunctionId(1),
        capture: number(at, 0),
        name: name.into(),
        bits: 32,
        signed,
        at,
        method: CaptureMethod::Register,
        elements_max,
    };
    writer.captures(&[
        capture("pkts[].seq", CapturePlace::Entry, 8, false),
        capture("return", CapturePlace::Return, 1, true),
    ])?;
    writer.thread(&ThreadEntry {
        ix: ThreadIx(0),
        process: ProcessIx(0),
        tid: 8,
        comm: "worker".into(),
    })?;
    Ok(())
}

fn calls(writer: &mut TraceWriter<BufWriter<File>>) -> Result<u64> {
    tables(writer)?;
    let mut records = Vec::new();
    for n in 0..RUNS {
        let (start, length, acl) = run(n);
        let end = start + length;
        let of = |tsc, f, kind, depth: u32| {
            Record::new(tsc, FunctionId(f), kind, 0x7fff_0000 - depth * 64)
        };
        let value = |at, element: u16, content| {
            let capture = number(at, 0);
            let value = Value {
                capture,
                element,
                content,
            };
            value.record(FunctionId(1))
        };
        records.push(of(start, 0, Kind::Entry, 0));
        records.push(of(start + 100, 1, Kind::Entry, 1));
        for element in 0..BATCH {
            let seq = Content::Value(n * BATCH + element);
            records.push(value(CapturePlace::Entry, element as u16, seq));
        }
        let back = Content::Value(returned(n) as u64);
        records.push(value(CapturePlace::Return, 0, back));
        records.push(of(start + 100 + acl, 1, Kind::Exit, 1));
        records.push(of(start + 200 + acl, 2, Kind::Entry, 1));
        records.push(of(end - 100, 2, Kind::Exit, 1));
        records.push(of(end, 0, Kind::Exit, 0));
    }
    writer.records(Batch {
        thread: ThreadIx(0),
        first_index: 0,
        lost_before: 0,
        torn_before: 0,
        records: &records,
    })?;
    Ok(records.len() as u64)
}

fn stamps(writer: &mut TraceWriter<BufWriter<File>>) -> Result<()> {
    let stream = StreamIx(0);
    writer.stream(&StreamEntry {
        ix: stream,
        sender: "packet:a".into(),
        receiver: "packet:b".into(),
        traffic: "64 B UDP".into(),
    })?;
    let stamps = (0..RUNS * BATCH).map(|seq| {
        let due = START + seq * GAP;
        Stamp {
            seq,
            flow: (seq % 4) as u32,
            len: 60,
            intended: Tsc(due),
            sent: Tsc(due),
            received: (!lost(seq)).then_some(Tsc(due + latency_ns(seq))),
            flags: StampFlags::NONE,
        }
    });
    writer.stamps(Stamps {
        stream,
        unwritten_before: 0,
        stamps: &stamps.collect::<Vec<_>>(),
    })?;
    Ok(())
}
