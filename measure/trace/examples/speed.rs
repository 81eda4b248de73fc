//! What writing and reading records takes: `cargo run --release -p hopscope-trace --example
//! speed [FILE [RECORDS]]`. Leaves the trace in FILE when one is named. Informs only.
use hopscope_event::{
    ClockSync, FunctionId, Record, RecordKind, RecordingMeta, Summary, ThreadIx, Tsc, TscFrequency,
};
use hopscope_trace::{RecordBatch, TraceReader, TraceWriter, codec};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

const RECORDS: usize = 1 << 22;
const BATCH: usize = 1 << 15;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A network function at work: batches of packets through ten modules in the same order, each of
/// which calls helpers, some depending on the packet, down to depth 6 among 400 functions.
fn network_function(count: usize) -> Vec<Record> {
    let (mut random, mut tsc, mut records) = (Random(88172645463325252), 1u64 << 50, Vec::new());
    while records.len() < count {
        for module in 0..10 {
            call(&mut random, &mut tsc, &mut records, module, 0);
        }
        tsc += 200 + random.next() % 5000;
    }
    records.truncate(count);
    records
}

fn call(random: &mut Random, tsc: &mut u64, records: &mut Vec<Record>, id: u32, depth: u32) {
    let rsp = 0xffff_d000 - depth * 96 - id % 7 * 16;
    *tsc += 25 + random.next() % 60;
    records.push(Record::new(*tsc, FunctionId(id), RecordKind::Entry, rsp));
    let callees = if depth < 5 { 1 + id % 3 } else { 0 };
    for callee in 0..callees {
        // One call in eight goes elsewhere, as the packet wants it.
        let elsewhere = if random.next().is_multiple_of(8) {
            1 + random.next() as u32 % 20
        } else {
            0
        };
        let id = (id * 5 + callee * 31 + elsewhere * 17 + 10) % 400;
        call(random, tsc, records, id, depth + 1);
    }
    // Most bodies take tens to hundreds of ticks, some a cache miss or more.
    let long = if random.next().is_multiple_of(50) {
        3000
    } else {
        150
    };
    *tsc += 20 + random.next() % long;
    records.push(Record::new(*tsc, FunctionId(id), RecordKind::Exit, rsp));
}

/// Calls of unrelated functions: nothing but the ends can be predicted.
fn dice(count: usize) -> Vec<Record> {
    let (mut random, mut tsc, mut records, mut open) = (Random(7), 0, Vec::new(), Vec::new());
    while records.len() < count {
        let r = random.next();
        tsc += 20 + r % 100_000;
        let rsp = 0xffff_d000 - 64 * open.len() as u32;
        if open.len() < 20 && r >> 40 & 1 == 0 {
            let id = FunctionId((r >> 32) as u32 % 2000);
            records.push(Record::new(tsc, id, RecordKind::Entry, rsp));
            open.push((id, rsp));
        } else if let Some((id, rsp)) = open.pop() {
            records.push(Record::new(tsc, id, RecordKind::Exit, rsp));
        }
    }
    records
}

/// One function called in a loop, as `bench recorder` does.
fn hot_loop(count: usize) -> Vec<Record> {
    let record = |n: u64| {
        let kind = if n.is_multiple_of(2) {
            RecordKind::Entry
        } else {
            RecordKind::Exit
        };
        Record::new(n * 45 + n / 64, FunctionId(1200), kind, 0xffff_d000)
    };
    (0..count as u64).map(record).collect()
}

fn rates(what: &str, records: &[Record]) -> Option<()> {
    let (mut buffer, mut encoded) = (Vec::new(), Vec::new());
    let count = records.len();
    let per_second = |begin: Instant| count as f64 / begin.elapsed().as_secs_f64() / 1e6;
    let (mut encode, mut decode, mut bytes) = (0f64, 0f64, 0);
    for _ in 0..5 {
        encoded.clear();
        let begin = Instant::now();
        for part in records.chunks(BATCH) {
            let end = codec::encode(part, &mut buffer, 0);
            encoded.push((part.len(), black_box(&buffer[..end]).len()));
        }
        encode = encode.max(per_second(begin));
        bytes = encoded.iter().map(|(_, bytes)| bytes).sum::<usize>();
    }
    let parts: Vec<_> = records
        .chunks(BATCH)
        .map(|part| {
            let mut out = Vec::new();
            let end = codec::encode(part, &mut out, 0);
            out.truncate(end);
            (part.len(), out)
        })
        .collect();
    for _ in 0..5 {
        let begin = Instant::now();
        for (count, bytes) in &parts {
            black_box(codec::decode(bytes, *count)?);
        }
        decode = decode.max(per_second(begin));
    }
    println!(
        "{what:<18} {:.2} bytes/record, encode {encode:.0} M/s, decode {decode:.0} M/s",
        bytes as f64 / count as f64
    );
    Some(())
}

fn sync(tsc: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: 0,
        realtime_ns: 0,
        window_ticks: 0,
    }
}

fn write(records: &[Record]) -> Result<Vec<u8>, Box<dyn Error>> {
    let meta = RecordingMeta {
        hopscope_version: env!("CARGO_PKG_VERSION").into(),
        command_line: Vec::new(),
        host: String::new(),
        kernel: String::new(),
        cpu: String::new(),
        cpus_online: 1,
        tsc_frequency: TscFrequency(2_000_000_000),
        tsc_invariant: true,
        start: sync(0),
        stride: 16,
        ring_records: 1 << 16,
        probe_cost: None,
    };
    let mut writer = TraceWriter::new(Vec::new(), &meta)?;
    for (n, records) in records.chunks(BATCH).enumerate() {
        writer.records(RecordBatch {
            thread: ThreadIx(0),
            first_index: (n * BATCH) as u64,
            lost_before: 0,
            torn_before: 0,
            records,
        })?;
    }
    let summary = Summary {
        end: sync(0),
        ended_because: "all records are written".into(),
        recorded: records.len() as u64,
        lost: 0,
        torn: 0,
        threads_measured: 1,
        calls_unmeasured: Some(0),
        attach_pause_ns: Vec::new(),
        detach_pause_ns: Vec::new(),
        stops: Default::default(),
        recorder_cpu_ns: Some(0),
        notes: Vec::new(),
    };
    Ok(writer.finish(&summary)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next();
    let count = match arguments.next() {
        Some(count) => count.to_str().ok_or("a number of records")?.parse()?,
        None => RECORDS,
    };
    let records = network_function(count);
    for (what, records) in [
        ("network function", &records),
        ("hot loop", &hot_loop(count)),
        ("unrelated calls", &dice(count)),
    ] {
        rates(what, records).ok_or("what was encoded does not decode")?;
    }
    let begin = Instant::now();
    let bytes = write(&records)?;
    let written = begin.elapsed().as_secs_f64();
    if let Some(path) = path {
        std::fs::write(path, &bytes)?;
    }
    let begin = Instant::now();
    let reader = TraceReader::from_bytes(bytes)?;
    let read: usize = reader.batches().flatten().map(|b| b.records.len()).sum();
    println!(
        "whole file         write {:.0} M/s, read {:.0} M/s",
        count as f64 / written / 1e6,
        read as f64 / begin.elapsed().as_secs_f64() / 1e6
    );
    Ok(())
}
