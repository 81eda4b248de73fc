//! `hopscope info` on the stored traces: whole, damaged, not a trace.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../measure/trace")
        .join(name)
}

fn info(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopscope"));
    command.arg("info").arg(file).args(args);
    command
        .output()
        .expect("the binary was built for this test")
}

fn text(name: &str) -> String {
    let output = info(&stored(name), &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The line with this title.
fn line<'a>(text: &'a str, title: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|l| l.trim_start().strip_prefix(title)?.strip_prefix(' '))
        .map(str::trim_start)
}

#[test]
fn a_whole_trace_is_explained() {
    let text = text("tests/golden/v1.hop");
    assert!(line(&text, "file").expect("said").contains("format 1.0"));
    for (title, expected) in [
        ("host", "host, Linux 6.1.0, 2 × A CPU"),
        ("clock", "TSC at 2596.000 MHz, invariant; 1 sync points"),
        ("started", "2025-11-21 05:12:09 UTC"),
        ("target", "7: ./nf --workers 1"),
        (
            "measured",
            "4 functions of 1 modules, 1 refused; 1 processes, 1 threads",
        ),
        (
            "losses",
            "5 lost (overwritten before the recorder came), 2 torn (never stored)",
        ),
        ("thread", "8 (worker): 40 recorded, 5 lost, 2 torn"),
        ("unmeasured", "3 calls of threads that had no ring"),
        ("note", "note"),
    ] {
        assert_eq!(line(&text, title), Some(expected), "{text}");
    }
    assert!(text.contains("written by hopscope 0.1.0: hopscope record -p 7\n"));
    assert!(text.contains("ended      after 0.000 s: the time given is over\n"));
    assert!(text.contains("records    40 in 4 batches, "));
    assert!(
        !text.contains("DAMAGED") && !text.contains("DIFFERS"),
        "{text}"
    );
}

#[test]
fn a_recording_without_an_end_says_so() {
    let text = text("corpus/torn-last-chunk.hop");
    let damaged = line(&text, "DAMAGED").expect("said");
    assert!(
        damaged.contains("the file ends inside a chunk"),
        "{damaged}"
    );
    assert!(text.contains("ended      not in order: the recorder was killed"));
    assert!(text.contains("records    20 in 2 batches, "));
    assert!(line(&text, "unmeasured").is_none());
}

#[test]
fn records_that_damage_took_are_set_against_the_recorders_count() {
    let text = text("corpus/damaged-payload.hop");
    let counted = line(&text, "DIFFERS").expect("said");
    assert_eq!(counted, "the recorder counted 40 recorded, 5 lost, 2 torn");
    assert!(text.contains("records    30 in 3 batches, "));
}

#[test]
fn packets_are_counted_and_nothing_is_said_of_calls() {
    let said = text("tests/golden/v1.1-stamps.hop");
    let stream = line(&said, "stream").expect("said");
    assert_eq!(
        stream,
        "af_packet:veth0 to af_packet:veth1: 64 B UDP over IPv4, 3 flows, 1,000,000/s"
    );
    let packets = line(&said, "packets").expect("said");
    assert!(packets.starts_with("25 rows, "), "{packets}");
    assert!(
        packets.ends_with(": 23 packets, 3 lost; 2 further arrivals; 4 rows unwritten"),
        "{packets}"
    );
    assert!(line(&said, "records").is_none() && line(&said, "measured").is_none());
    assert!(line(&text("tests/golden/v1.hop"), "packets").is_none());
    let cut = text("corpus/stamps-torn.hop");
    assert!(cut.contains("20 rows, "), "{cut}");
}

#[test]
fn counters_are_listed() {
    let said = text("tests/golden/v1.5-counters.hop");
    let first = line(&said, "counters").expect("said");
    let cost = "a call counts 31 (30..35) too many and adds 84 to its caller's: taken out";
    assert_eq!(first, format!("instructions in user mode: {cost}"));
    assert!(said.contains("r01c2 in user mode: "), "{said}");
    assert!(
        said.contains("EMULATED (answered by the measured program"),
        "{said}"
    );
    assert!(line(&text("tests/golden/v1.hop"), "counters").is_none());
    let output = info(&stored("tests/golden/v1.5-counters.hop"), &["--json"]);
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(object["counters"][1]["name"], "cycles");
}

#[test]
fn json_is_one_object() {
    for (name, damaged, records) in [
        ("tests/golden/v1.hop", false, 40),
        ("corpus/damaged-length.hop", true, 30),
    ] {
        let output = info(&stored(name), &["--json"]);
        assert_eq!(output.status.code(), Some(0));
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(
            (&object["type"], &object["schema"]),
            (&"info".into(), &1.into())
        );
        assert_eq!(object["records"], records);
        assert_eq!(object["threads"][0]["records"], records);
        assert_eq!(object["damage"].is_object(), damaged);
        assert_eq!(object["meta"]["host"], "host");
        assert_eq!(object["summary"]["recorded"], 40);
    }
}

#[test]
fn what_is_no_trace_fails_in_one_line() {
    for (file, part) in [
        (stored("Cargo.toml"), "not a hopscope trace"),
        (
            stored("corpus/only-a-header.hop"),
            "no readable header chunk",
        ),
        (stored("corpus"), "neither a file nor a pipe"),
        (
            PathBuf::from("/no/such/recording.hop"),
            "/no/such/recording.hop",
        ),
    ] {
        let output = info(&file, &[]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(part), "{stderr}");
        assert!(output.stdout.is_empty());
    }
}
