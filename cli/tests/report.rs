//! `hopscope report` from file to screen: exit codes, one line per failure, filters, broken pipe.
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::{ClockSync, FunctionEntry, FunctionId, ProcessEntry, ProcessIx, RecordKind};
use hopscope_event::{Record, RecordingMeta, ThreadEntry, ThreadIx, Tsc, TscFrequency};
use hopscope_trace::{RecordBatch, TraceWriter};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const TICKS_PER_MS: u64 = 2_000_000;
const CALLS: u64 = 1000;

/// Two threads, each calling `work` once a millisecond for 500 ns.
fn trace() -> Vec<u8> {
    let start = ClockSync {
        tsc: Tsc(77),
        monotonic_ns: 0,
        realtime_ns: 0,
        window_ticks: 10,
    };
    let meta = RecordingMeta {
        hopscope_version: "0".into(),
        command_line: vec!["hopscope".into(), "record".into()],
        host: "box".into(),
        kernel: "Linux".into(),
        cpu: "CPU".into(),
        cpus_online: 1,
        tsc_frequency: TscFrequency(2_000_000_000),
        tsc_invariant: true,
        start,
        stride: 16,
        ring_records: 4096,
        probe_cost: None,
    };
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, &meta).expect("to memory");
    let process = ProcessEntry {
        ix: ProcessIx(0),
        pid: 7,
        comm: "nf".into(),
        command_line: vec!["nf".into()],
    };
    writer.process(&process).expect("to memory");
    for (ix, tid) in [(0, 7), (1, 8)] {
        let thread = ThreadEntry {
            ix: ThreadIx(ix),
            process: ProcessIx(0),
            tid,
            comm: "nf".into(),
        };
        writer.thread(&thread).expect("to memory");
    }
    let module = ModuleEntry {
        ix: ModuleIx(0),
        path: "/bin/nf".into(),
        build_id: String::new(),
    };
    writer.modules(&[module]).expect("to memory");
    let function = FunctionEntry {
        id: FunctionId(0),
        module: ModuleIx(0),
        name: "work".into(),
        svma: 0x1000,
        size: 9,
        file: None,
        line: None,
    };
    writer.functions(&[function]).expect("to memory");
    for thread in 0..2 {
        let records: Vec<Record> = (0..CALLS)
            .flat_map(|n| {
                let at = 77 + n * TICKS_PER_MS;
                [(at, RecordKind::Entry), (at + 1000, RecordKind::Exit)]
            })
            .map(|(tsc, kind)| {
                Record::new(tsc, FunctionId(0), kind, 0x7000_0000 + 0x80_0000 * thread)
            })
            .collect();
        let batch = RecordBatch {
            thread: ThreadIx(thread),
            first_index: 0,
            lost_before: 0,
            torn_before: 0,
            records: &records,
        };
        writer.records(batch).expect("to memory");
    }
    drop(writer);
    bytes
}

struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("hopscope-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("the temporary directory is writable");
        File(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn report(file: &File, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopscope"));
    command.arg("report").arg(&file.0).args(args);
    command
        .output()
        .expect("the binary was built for this test")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// The row of `work`: its calls are the first column.
fn calls(output: &Output) -> u64 {
    let text = stdout(output);
    let row = text.lines().find(|l| l.contains("nf!work")).unwrap_or("0");
    let number = row
        .split_whitespace()
        .next()
        .unwrap_or("0")
        .replace(',', "");
    number.parse().expect("the first column is a number")
}

fn fails_in_one_line(output: &Output, part: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(part), "{stderr}");
    assert!(output.stdout.is_empty());
}

#[test]
fn whole_recording() {
    let file = File::new("whole", &trace());
    let output = report(&file, &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(calls(&output), 2 * CALLS);
    assert!(stdout(&output).contains("500 ns"));
    assert!(output.stderr.is_empty());
}

#[test]
fn window_and_thread_choose_calls() {
    let file = File::new("window", &trace());
    let windowed = report(&file, &["--from", "100ms", "--to", ".3s"]);
    assert_eq!(calls(&windowed), 2 * 200);
    assert_eq!(calls(&report(&file, &["--thread", "8"])), CALLS);
    let both = ["--thread", "8", "--thread", "7", "--from", "0.9s"];
    assert_eq!(calls(&report(&file, &both)), 2 * 100);
    let empty = report(&file, &["--from", "99s"]);
    assert!(stdout(&empty).contains("no calls"));
    fails_in_one_line(&report(&file, &["--thread", "9"]), "there are 7, 8");
    fails_in_one_line(&report(&file, &["--from", "2s", "--to", "1s"]), "empty");
}

#[test]
fn every_json_line_has_type_and_schema_and_the_last_is_the_summary() {
    let file = File::new("json", &trace());
    for by in ["function", "module", "thread", "process", "tree"] {
        let text = stdout(&report(&file, &["--json", "--by", by]));
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).expect("each line is an object"))
            .collect();
        assert!(
            lines
                .iter()
                .all(|l| l["schema"] == 1 && l["type"].is_string())
        );
        let last = lines.last().expect("there is a summary");
        assert_eq!(last["type"], "summary");
        assert_eq!(last["balance"]["exits"], 2 * CALLS);
    }
}

#[test]
fn events_are_dumped_one_a_line() {
    let file = File::new("events", &trace());
    let text = stdout(&report(&file, &["--events", "--thread", "7"]));
    assert_eq!(text.lines().count() as u64, 1 + 2 * CALLS);
    assert!(
        text.lines()
            .all(|l| !l.contains("exit") || l.contains("nf!work"))
    );
}

#[test]
fn what_cannot_be_read_fails_in_one_line() {
    let missing = File(PathBuf::from("/no/such/recording.hop"));
    fails_in_one_line(&report(&missing, &[]), "/no/such/recording.hop");
    let text = File::new("text", b"#!/bin/sh\necho this is no recording\n");
    fails_in_one_line(&report(&text, &[]), "not a hopscope trace");
    fails_in_one_line(
        &report(&File::new("empty", b""), &[]),
        "not a hopscope trace",
    );
}

#[test]
fn a_truncated_file_is_read_up_to_the_cut_and_says_so() {
    let bytes = trace();
    let file = File::new("cut", &bytes[..bytes.len() - 5]);
    let output = report(&file, &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(calls(&output), CALLS);
    assert!(stdout(&output).contains("DAMAGED"));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let file = File::new("pipe", &trace());
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopscope"));
    command.arg("report").arg(&file.0).arg("--events");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary was built for this test");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}
