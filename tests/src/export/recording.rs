//! A recording made by hand: 60 packets, three a run, of which each run captured the numbers, and a
//! process that may also be recorded in another file than the packets.
use crate::made::{Made, Packet, record};
use anyhow::Result;
use hopscope_event::value::{Content, Value, number};
use hopscope_event::{CaptureEntry, CaptureMethod, CapturePlace, FunctionId, RecordKind};
use std::path::Path;

pub(super) const RUNS: u64 = 20;
pub(super) const BATCH: u64 = 3;
const START: u64 = 5_000_000;
/// 1 GHz: a tick is a nanosecond.
const HZ: u64 = 1_000_000_000;
const GAP: u64 = 10_000;
const END: u64 = START + 2_000_000;
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

/// The process in one file, the packets in the other; both in one when the files are one.
pub(super) fn write(process: &Path, packets: &Path) -> Result<()> {
    let mut one = begin(process)?;
    one.process(&FUNCTIONS.map(|name| (name, "/opt/nf/nf")))?;
    calls(&mut one)?;
    if process != packets {
        one.finish(END)?;
        one = begin(packets)?;
    }
    one.stamps((0..RUNS * BATCH).map(|seq| {
        let sent = START + seq * GAP;
        Packet {
            seq,
            flow: (seq % 4) as u32,
            sent,
            received: (!lost(seq)).then_some(sent + latency_ns(seq)),
        }
    }))?;
    one.finish(END)
}

fn begin(to: &Path) -> Result<Made> {
    Made::begin(to, HZ, START - 1_000, "nf")
}

fn calls(made: &mut Made) -> Result<()> {
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
    made.writer.captures(&[
        capture("pkts[].seq", CapturePlace::Entry, 8, false),
        capture("return", CapturePlace::Return, 1, true),
    ])?;
    let mut records = Vec::new();
    for n in 0..RUNS {
        let (start, length, acl) = run(n);
        let end = start + length;
        let value = |at, element: u16, content| {
            let capture = number(at, 0);
            let value = Value {
                capture,
                element,
                content,
            };
            value.record(FunctionId(1))
        };
        records.push(record(start, 0, RecordKind::Entry, 0));
        records.push(record(start + 100, 1, RecordKind::Entry, 1));
        for element in 0..BATCH {
            let seq = Content::Value(n * BATCH + element);
            records.push(value(CapturePlace::Entry, element as u16, seq));
        }
        let back = Content::Value(returned(n) as u64);
        records.push(value(CapturePlace::Return, 0, back));
        records.push(record(start + 100 + acl, 1, RecordKind::Exit, 1));
        records.push(record(start + 200 + acl, 2, RecordKind::Entry, 1));
        records.push(record(end - 100, 2, RecordKind::Exit, 1));
        records.push(record(end, 0, RecordKind::Exit, 0));
    }
    made.records(&records)
}
