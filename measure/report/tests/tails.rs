//! Why packets were late, and packets without stamps, byte for byte: of a network function in whole
//! numbers, so that they are the same everywhere.
#[allow(dead_code, reason = "other tests use the rest of it")]
mod sample;

use hopscope_analyze::join::{JoinCounts, Joined, Joiner, PacketId, PacketIdCaptures, Sightings};
use hopscope_analyze::tail::{Baseline, Ordinary, Tail, TailReport, Threshold};
use hopscope_analyze::{Captured, Packet, Root, RootChoice, Run, RunCall, RunCounts, RunIx};
use hopscope_event::{FunctionId, OffCpu, Stamp, StreamEntry, StreamIx, ThreadIx, Tsc};
use hopscope_report::{Between, LateReport, Names, PacketReport, Scale, TimeUnit};
use sample::Sample;
use std::path::Path;

const PACKETS: u64 = 4_000;
const BATCH: FunctionId = FunctionId(0);
const INPUT: FunctionId = FunctionId(1);
const MATCH: FunctionId = FunctionId(2);
const OUTPUT: FunctionId = FunctionId(4);
/// What `INPUT` and `OUTPUT` capture of each packet.
const SEQ: u16 = 0;

struct Made {
    runs: Vec<Run>,
    stamps: Vec<Stamp>,
    off_cpu: Vec<OffCpu>,
}

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

/// A packet every 20 us, a run of some 2 us for those that are there. In one run of 97 the input
/// takes 200 us more, packets of flow 11 take the match 50 us, thrice the thread is preempted, and
/// one packet of 50 never comes back.
fn make() -> Made {
    let mut drawn = 1u64;
    let mut below = move |n: u64| {
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (drawn >> 33) % n
    };
    let sent: Vec<u64> = (0..PACKETS)
        .map(|k| 1_100_000 + k * 40_000 + below(3_000))
        .collect();
    let mut made = Made {
        runs: Vec::new(),
        stamps: Vec::new(),
        off_cpu: Vec::new(),
    };
    let (mut now, mut next) = (0, 0);
    while next < sent.len() {
        now = sent[next].max(now) + 2_000 + below(400);
        let n = sent[next..].iter().take_while(|at| **at < now).count();
        let (ix, start) = (made.runs.len() as u64, now);
        let seqs: Vec<u64> = (next..next + n).map(|k| k as u64).collect();
        now += 100;
        let mut calls = vec![call(BATCH, 0, start), call(INPUT, 1, now)];
        now += 1_000 + below(200) + if ix % 97 == 60 { 400_000 } else { 0 };
        if [500, 900, 1_300].contains(&ix) {
            made.off_cpu.push(OffCpu {
                out: Tsc(now),
                back: Tsc(now + 600_000),
                preempted: true,
            });
            now += 600_000;
        }
        calls[1].exit = Tsc(now);
        for seq in &seqs {
            let mut one = call(MATCH, 1, now);
            now += 300 + below(60) + if seq % 40 == 11 { 100_000 } else { 0 };
            one.exit = Tsc(now);
            calls.push(one);
        }
        let mut out = call(OUTPUT, 1, now);
        now += 500 + below(100);
        out.exit = Tsc(now);
        calls[0].exit = Tsc(now);
        let output = calls.len() as u32;
        calls.push(out);
        let back = |seq: &u64| seq % 50 != 17;
        let of = |call: u32, seqs: Vec<u64>| {
            let value = move |(element, seq): (usize, u64)| Captured {
                call,
                capture: SEQ,
                element: element as u16,
                value: seq,
            };
            seqs.into_iter().enumerate().map(value)
        };
        let gone = seqs.iter().copied().filter(back).collect();
        let values = of(1, seqs.clone()).chain(of(output, gone)).collect();
        for seq in &seqs {
            let at = Tsc(sent[*seq as usize]);
            made.stamps.push(Stamp {
                seq: *seq,
                flow: (seq % 40) as u32,
                len: 60,
                intended: at,
                sent: at,
                received: back(seq).then(|| Tsc(now + 3_000 + below(300))),
                ..Stamp::default()
            });
        }
        made.runs.push(Run {
            ix: RunIx(ix),
            thread: ThreadIx(0),
            root: BATCH,
            start: Tsc(start),
            end: Tsc(now),
            complete: true,
            calls,
            values,
            off_cpu_ticks: 0,
            calls_left_out: 0,
            outside: Vec::new(),
        });
        next += n;
    }
    made
}

fn call(function: FunctionId, depth: u16, entry: u64) -> RunCall {
    RunCall {
        function,
        depth,
        parent: (depth > 0).then_some(0),
        entry: Tsc(entry),
        exit: Tsc(entry),
        fused: false,
        own_ticks: 0,
        own_corrected: 0,
        off_cpu_ticks: 0,
    }
}

fn id() -> PacketId {
    PacketId {
        captures: PacketIdCaptures::Each(vec![(INPUT, SEQ), (OUTPUT, SEQ)]),
        bits: 32,
        swapped: false,
    }
}

fn joined(made: &Made) -> Joined {
    let mut joiner = Joiner::new(Some(id()));
    for stamp in &made.stamps {
        joiner.packet(StreamIx(0), *stamp).expect("a few packets");
    }
    for run in &made.runs {
        joiner.run(run).expect("a few runs");
    }
    joiner.finish(&[])
}

fn without_stamps(made: &Made) -> (Joined, Between) {
    let mut sightings = Sightings::new(id()).expect("captures of each");
    for run in &made.runs {
        sightings.run(run).expect("a few runs");
    }
    let seen = sightings.finish(None).expect("two places");
    assert_eq!((seen.from.function, seen.to.function), (INPUT, OUTPUT));
    let between = Between {
        boundary: "from the entry of INPUT to the entry of OUTPUT".to_owned(),
        notes: vec![(3, "things were seen beside that".to_owned())],
    };
    (seen.joined, between)
}

fn attribute(made: &Made, packets: &[Packet], ordinary: fn(Ordinary) -> Ordinary) -> TailReport {
    // Each packet behind the run that handled it.
    let of = |p: &Packet| p.run.map_or(u64::MAX, |run| run.0);
    let mut sorted = packets.to_vec();
    sorted.sort_by_key(|p| (of(p), p.stamp.seq));
    let after = |ix: u64| {
        let from = sorted.partition_point(|p| of(p) < ix);
        &sorted[from..sorted.partition_point(|p| of(p) <= ix)]
    };
    let mut baseline = Baseline::new(None);
    baseline.off_cpu(ThreadIx(0), made.off_cpu.iter().copied());
    for run in &made.runs {
        baseline.run(run);
        after(run.ix.0).iter().for_each(|p| baseline.packet(p));
    }
    after(u64::MAX).iter().for_each(|p| baseline.packet(p));
    let ordinary = ordinary(baseline.finish());
    let scale = Sample::new().meta.tsc_frequency;
    let threshold = Threshold::Ns(30_000).ticks(&ordinary, scale);
    let mut tail = Tail::new(ordinary, threshold);
    for run in &made.runs {
        tail.run(run);
        after(run.ix.0).iter().for_each(|p| tail.packet(p));
    }
    after(u64::MAX).iter().for_each(|p| tail.packet(p));
    tail.finish()
}

fn root() -> Root {
    Root {
        choice: RootChoice::Function(BATCH),
        suggested_because: None,
    }
}

fn write_late(name: &str, tail: &TailReport, counts: &JoinCounts, between: Option<&Between>) {
    let sample = Sample::new();
    let recording = sample.recording();
    let names = Names::new(&recording);
    let root = root();
    let report = LateReport {
        names: &names,
        scale: Scale::new(TimeUnit::Ns, sample.meta.tsc_frequency),
        root: &root,
        between,
        tail,
        joined: counts,
        asked: "30us",
        off_cpu: "3 intervals known",
        number: None,
    };
    let mut out = Vec::new();
    hopscope_report::write_tail(&mut out, &report).expect("to memory");
    check(&format!("{name}.txt"), out);
    let mut out = Vec::new();
    hopscope_report::write_tail_json(&mut out, &report).expect("to memory");
    check(&format!("{name}.jsonl"), out);
}

#[test]
fn late_packets_and_their_causes() {
    let made = make();
    let joined = joined(&made);
    let tail = attribute(&made, &joined.packets, |o| o);
    let names: Vec<_> = tail.rows.iter().map(|row| row.cause.name()).collect();
    for planted in ["expensive_input", "slow_function", "preempted"] {
        assert!(names.contains(&planted), "{names:?}");
    }
    write_late("tails", &tail, &joined.counts, None);
}

#[test]
fn late_packets_between_two_captures() {
    let made = make();
    let (joined, between) = without_stamps(&made);
    let tail = attribute(&made, &joined.packets, Ordinary::without_arrivals);
    write_late(
        "tails_without_stamps",
        &tail,
        &joined.counts,
        Some(&between),
    );
}

#[test]
fn packets_with_and_without_stamps() {
    let sample = Sample::new();
    let recording = sample.recording();
    let names = Names::new(&recording);
    let made = make();
    let (seen, between) = without_stamps(&made);
    let stamped = joined(&made);
    let counts = RunCounts {
        runs: made.runs.len() as u64,
        complete: made.runs.len() as u64,
        ..RunCounts::default()
    };
    let root = root();
    let stream = StreamEntry {
        ix: StreamIx(0),
        sender: "packet:a0".into(),
        receiver: "packet:b0".into(),
        traffic: "64 B udp".into(),
    };
    let with = ("packet_runs", &stamped, None);
    let without = ("packet_runs_without_stamps", &seen, Some(&between));
    for (name, joined, between) in [with, without] {
        let report = PacketReport {
            names: &names,
            scale: Scale::new(TimeUnit::Ns, sample.meta.tsc_frequency),
            start: Tsc(1_000_000),
            streams: match between {
                None => std::slice::from_ref(&stream),
                Some(_) => &[],
            },
            between,
            joined,
            runs: Some((&root, &counts)),
            packet_id: Some("frame->seq"),
            number: Some(4),
            flow_sort: None,
        };
        let mut out = Vec::new();
        hopscope_report::write_packets(&mut out, &report).expect("to memory");
        check(&format!("{name}.txt"), out);
        if between.is_none() {
            let mut out = Vec::new();
            hopscope_report::write_flows(&mut out, &report).expect("to memory");
            check("flows.txt", out);
        }
        let mut out = Vec::new();
        hopscope_report::write_packets_json(&mut out, &report).expect("to memory");
        check(&format!("{name}.jsonl"), out);
    }
}
