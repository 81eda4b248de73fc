//! `hopscope report --by run|packet|flow`: what is joined, and each reason why nothing can be.
use hopscope_event::table::{CaptureEntry, CaptureMethod, CapturePlace, ModuleEntry, ModuleIx};
use hopscope_event::{
    ClockSync, Content, FunctionEntry, FunctionId, ProcessEntry, ProcessIx, RecordKind,
};
use hopscope_event::{Record, RecordingMeta, Stamp, StreamEntry, StreamIx, ThreadEntry, ThreadIx};
use hopscope_event::{Tsc, TscFrequency, Value};
use hopscope_trace::{RecordBatch, Stamps, TraceWriter};
use std::path::PathBuf;
use std::process::{Command, Output};

const RUNS: u64 = 100;
/// Between runs, in ticks of 0.5 ns.
const APART: u64 = 20_000;
const MODULES: [u32; 3] = [1, 2, 3];

/// What of a recording there is.
#[derive(Clone, Copy)]
struct Parts {
    calls: bool,
    captured: bool,
    packets: bool,
    host: &'static str,
}

const PROCESS: Parts = Parts {
    calls: true,
    captured: false,
    packets: false,
    host: "box",
};
const PACKETS: Parts = Parts {
    calls: false,
    packets: true,
    ..PROCESS
};

fn meta(host: &str) -> RecordingMeta {
    RecordingMeta {
        hopscope_version: "0".into(),
        command_line: vec!["hopscope".into()],
        host: host.into(),
        kernel: "Linux".into(),
        cpu: "CPU".into(),
        cpus_online: 1,
        tsc_frequency: TscFrequency(2_000_000_000),
        tsc_invariant: true,
        start: ClockSync {
            tsc: Tsc(1_000),
            monotonic_ns: 500,
            realtime_ns: 500,
            window_ticks: 10,
        },
        stride: 16,
        ring_records: 4096,
        probe_cost: None,
    }
}

fn function(id: u32, name: &str) -> FunctionEntry {
    FunctionEntry {
        id: FunctionId(id),
        module: ModuleIx(0),
        name: name.into(),
        svma: 0x1000 * u64::from(id),
        size: 9,
        file: None,
        line: None,
    }
}

/// Run `n` begins at `APART * (n + 1)`, takes 1,000 ticks and handles packet `n`, which left
/// 300 ticks before and arrives 100 after.
fn file(name: &str, parts: Parts) -> PathBuf {
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, &meta(parts.host)).expect("to memory");
    if parts.calls {
        calls(&mut writer, parts.captured);
    }
    if parts.packets {
        let stream = StreamEntry {
            ix: StreamIx(0),
            sender: "packet:a".into(),
            receiver: "packet:b".into(),
            traffic: "64 B UDP".into(),
        };
        writer.stream(&stream).expect("to memory");
        let stamp = |n: u64| Stamp {
            seq: n,
            flow: (n % 7) as u32,
            len: 60,
            intended: Tsc(APART * (n + 1) - 300),
            sent: Tsc(APART * (n + 1) - 300),
            received: (n % 10 != 9).then_some(Tsc(APART * (n + 1) + 1_100)),
            ..Stamp::default()
        };
        let stamps: Vec<_> = (0..RUNS).map(stamp).collect();
        let batch = Stamps {
            stream: StreamIx(0),
            unwritten_before: 0,
            stamps: &stamps,
        };
        writer.stamps(batch).expect("to memory");
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("runs-{name}.hop"));
    std::fs::write(&path, bytes).expect("the temporary directory can be written");
    path
}

fn calls(writer: &mut TraceWriter<&mut Vec<u8>>, captured: bool) {
    let process = ProcessEntry {
        ix: ProcessIx(0),
        pid: 7,
        comm: "nf".into(),
        command_line: vec!["nf".into()],
    };
    writer.process(&process).expect("to memory");
    let thread = ThreadEntry {
        ix: ThreadIx(0),
        process: ProcessIx(0),
        tid: 7,
        comm: "nf".into(),
    };
    writer.thread(&thread).expect("to memory");
    let module = ModuleEntry {
        ix: ModuleIx(0),
        path: "/bin/nf".into(),
        build_id: String::new(),
    };
    writer.modules(&[module]).expect("to memory");
    let names = ["run", "input", "acl", "output", "never"];
    let functions: Vec<_> = (0..)
        .zip(names)
        .map(|(id, name)| function(id, name))
        .collect();
    writer.functions(&functions).expect("to memory");
    if captured {
        let capture = CaptureEntry {
            function: FunctionId(0),
            capture: 0,
            name: "frame->seq".into(),
            bits: 32,
            signed: false,
            at: CapturePlace::Entry,
            method: CaptureMethod::Register,
            elements_max: 1,
        };
        writer.captures(&[capture]).expect("to memory");
    }
    let mut records = Vec::new();
    for n in 0..RUNS {
        let at = APART * (n + 1);
        let mut store =
            |tsc, f, kind, rsp| records.push(Record::new(tsc, FunctionId(f), kind, rsp));
        store(at, 0, RecordKind::Entry, 0x7000_0000);
        if captured {
            let value = Value {
                capture: 0,
                element: 0,
                content: Content::Value(n),
            };
            records.push(value.record(FunctionId(0)));
        }
        let mut store =
            |tsc, f, kind, rsp| records.push(Record::new(tsc, FunctionId(f), kind, rsp));
        for (place, module) in (0..).zip(MODULES) {
            store(
                at + 100 + 300 * place,
                module,
                RecordKind::Entry,
                0x6fff_ff00,
            );
            store(
                at + 300 + 300 * place,
                module,
                RecordKind::Exit,
                0x6fff_ff00,
            );
        }
        store(at + 1_000, 0, RecordKind::Exit, 0x7000_0000);
    }
    let batch = RecordBatch {
        thread: ThreadIx(0),
        first_index: 0,
        lost_before: 0,
        torn_before: 0,
        records: &records,
    };
    writer.records(batch).expect("to memory");
}

fn report(file: &PathBuf, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopscope"));
    let command = command.arg("report").arg(file).args(arguments);
    command.output().expect("the binary was built")
}

fn right(file: &PathBuf, arguments: &[&str]) -> String {
    let out = report(file, arguments);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{stderr}");
    String::from_utf8(out.stdout).expect("UTF-8")
}

/// One line on stderr, nothing on stdout, exit code 2.
fn refused(file: &PathBuf, arguments: &[&str], reason: &str) {
    let out = report(file, arguments);
    let stderr = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.contains(reason), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(out.stdout.is_empty());
}

#[test]
fn runs_are_found_whole_with_what_their_time_goes_to() {
    let file = file("process", PROCESS);
    let text = right(&file, &["--by", "run", "-n", "2"]);
    assert!(
        text.contains("each outermost call of nf!run, from entry to exit"),
        "{text}"
    );
    assert!(
        text.contains("100 = 100 complete + 0 cut by loss"),
        "{text}"
    );
    assert!(text.contains("the 2 longest"), "{text}");
    let json = right(&file, &["--by", "run", "--json", "--root", "nf!run"]);
    let acl = json
        .lines()
        .find(|line| line.contains("\"function\":\"acl\""));
    let acl = acl.expect("a line for acl");
    // 200 of 1,000 ticks of 0.5 ns.
    assert!(
        acl.contains("\"runs\":100,\"calls\":100,\"share\":0.2,\"own_mean_ns\":100.0"),
        "{acl}"
    );
    let looped = right(&file, &["--by", "run", "--root", "loop:run"]);
    assert!(
        looped.contains("100 = 99 complete + 0 cut by loss + 0 left without exit + 1 open"),
        "{looped}"
    );
}

#[test]
fn packets_find_their_runs_from_another_file_and_from_the_same() {
    let (process, packets) = (file("a", PROCESS), file("b", PACKETS));
    let both = file(
        "both",
        Parts {
            packets: true,
            ..PROCESS
        },
    );
    let packets = packets.to_str().expect("UTF-8");
    let apart = right(
        &process,
        &["--by", "packet", "--packets", packets, "--json"],
    );
    let together = right(&both, &["--by", "packet", "--json"]);
    let rows = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.contains("packet_run"));
        rows.map(str::to_owned).collect()
    };
    assert_eq!(rows(&apart), rows(&together));
    assert_eq!(rows(&apart).len(), RUNS as usize);
    let first = rows(&apart)
        .into_iter()
        .find(|row| row.contains("\"seq\":3,"))
        .expect("packet 3");
    let parts = "\"latency_ns\":700.0,\"wait_ns\":150.0,\"in_run_ns\":500.0,\"way_out_ns\":50.0,\"run\":3,\"matched\":\"order\"";
    assert!(first.contains(parts), "{first}");
    let text = right(
        &process,
        &["--by", "packet", "--packets", packets, "-n", "1"],
    );
    for part in [
        "from given to the port at packet:a (sent) to taken at packet:b (received)",
        "by order and time",
        "90  packets by order and time, one run possible (90.0 %)",
        "10  packets never came back",
        "the 1 slowest of 100",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn captured_sequence_numbers_come_before_order() {
    let captured = file(
        "seq",
        Parts {
            captured: true,
            packets: true,
            ..PROCESS
        },
    );
    let text = right(&captured, &["--by", "packet"]);
    assert!(text.contains("by captured frame->seq"), "{text}");
    // Those that never came back too: their run is known.
    assert!(
        text.contains("100  packets by the sequence number that their run captured"),
        "{text}"
    );
    let swapped = right(
        &captured,
        &["--by", "packet", "--packet-id", "frame->seq:be"],
    );
    assert!(
        swapped.contains("sequence number that no run captured"),
        "{swapped}"
    );
    refused(
        &captured,
        &["--by", "packet", "--packet-id", "id"],
        "there are frame->seq",
    );
}

#[test]
fn flows_are_told_apart_without_a_process_too() {
    let packets = file("flows", PACKETS);
    let json = right(&packets, &["--by", "flow", "--json"]);
    assert_eq!(
        json.lines()
            .filter(|line| line.contains("\"type\":\"flow\""))
            .count(),
        7
    );
    let text = right(&packets, &["--by", "flow", "-n", "3"]);
    assert!(text.contains("no process was measured"), "{text}");
    assert!(text.contains("the 3 flows of 7"), "{text}");
}

#[test]
fn what_cannot_be_joined_is_refused_with_the_reason() {
    let process = file("refusing", PROCESS);
    let packets = file("only", PACKETS);
    let by_run = |root| ["--by", "run", "--root", root];
    refused(
        &process,
        &by_run("never"),
        "nf!never was measured and never ran",
    );
    refused(
        &process,
        &by_run("nonsense"),
        "no function nonsense in the recording; there are nf!run",
    );
    refused(
        &packets,
        &["--by", "run"],
        "holds packets and no record of a call",
    );
    refused(
        &process,
        &["--by", "packet"],
        "the recording holds no packet; give the file",
    );
    refused(
        &process,
        &["--by", "run", "--from", "5s"],
        "in the part that is looked at",
    );
    let elsewhere = file(
        "elsewhere",
        Parts {
            host: "generator",
            ..PACKETS
        },
    );
    let elsewhere = elsewhere.to_str().expect("UTF-8");
    refused(
        &process,
        &["--by", "packet", "--packets", elsewhere],
        "different hosts",
    );
    let itself = process.to_str().expect("UTF-8");
    refused(
        &process,
        &["--by", "flow", "--packets", itself],
        "the file holds no packet",
    );
}
