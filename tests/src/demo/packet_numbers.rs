//! Packets by the numbers that the firewall captures from them: joined exactly with the stamps, timed
//! without them, and said where one of these is not possible.
use super::number;
use super::planted::{Plant, record};
use super::runs::{one, report};
use super::scene::{Cables, Recorded};
use super::tails::NEEDS;
use anyhow::{Context, Result, ensure};
use hopscope_event::RecordingMeta;
use hopscope_tests::{Suite, counts, hopscope};
use hopscope_trace::{TraceReader, TraceWriter};
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The sequence number in each frame of `hopscope load packets`, 44 bytes into it (UDP, IPv4); and
/// what its capture is called.
const CAPTURE: &str = "be32(frame->packets[0..frame->received].data+44)";
const NUMBERS: &str = "be32(frame->packets[].data+44)";

const PLANT: Plant = Plant {
    name: "slow packet",
    fault: &["--spin-every", "61", "--spin-us", "8000"],
    load: &["--rate", "1000", "--arrivals", "poisson", "-c", "2000"],
    flows: 40,
    denied: None,
    above: "1ms",
    interrupted: false,
    commanded: false,
};

pub(super) fn register(suite: &mut Suite) {
    suite
        .case(
            "demo::captured_numbers_join_and_time_packets",
            NEEDS,
            numbers,
        )
        .alone()
        .watchdog(900);
    suite
        .case(
            "demo::what_a_report_of_packets_lacks_is_said",
            NEEDS,
            lacking,
        )
        .alone()
        .watchdog(900);
}

fn path(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}

type Rows = HashMap<u64, Value>;

fn rows(lines: &mut HashMap<String, Vec<Value>>) -> Result<Rows> {
    let rows = lines.remove("packet_run").context("no packet")?;
    let by_seq = rows.into_iter().map(|row| Ok((number(&row, "/seq")?, row)));
    by_seq.collect()
}

fn ticks(row: &Value, name: &str) -> Result<f64> {
    let value = row[format!("{name}_tsc")].as_f64();
    value.with_context(|| format!("{name} of {row}"))
}

fn numbers() -> Result<()> {
    let cables = Cables::lay()?;
    let [input, output] = ["ethernet_input", "device_output"].map(|f| format!("{f}({CAPTURE})"));
    let functions = ["pipeline_run(frame->received)", &input, "l2.so!*", &output];
    for seed in 0..counts().pick(1, 5) {
        let recorded = record(&cables, &PLANT, seed, &functions)?;
        let received = number(&recorded.sent, "/received")?;
        let stamped = joined_exactly(&recorded, received)?;
        timed_without_stamps(&recorded, received, &stamped)?;
    }
    Ok(())
}

/// With the stamps: every packet that came back has the run that says it has it, late ones too.
fn joined_exactly(recorded: &Recorded, received: u64) -> Result<Rows> {
    let packets = path(&recorded.packets)?;
    let with = [
        "--packets",
        packets,
        "--packet-id",
        NUMBERS,
        "--root",
        "pipeline_run",
    ];
    let by_packet = [&with[..], &["--by", "packet", "--time", "tsc"]].concat();
    let mut lines = report(&recorded.process, &by_packet)?;
    let matched = one(&lines, "matched")?;
    ensure!(number(matched, "/by_sequence")? == received, "{matched}");
    ensure!(number(matched, "/ambiguous")? == 0, "{matched}");
    let late = report(&recorded.process, &[&with[..], &["--tail", "1ms"]].concat())?;
    let summary = one(&late, "summary")?;
    ensure!(number(summary, "/attributed")? > 0, "{summary}");
    ensure!(
        number(summary, "/attributed")? == number(summary, "/late")?,
        "{summary}"
    );
    ensure!(number(summary, "/ambiguous")? == 0, "{summary}");
    ensure!(
        number(summary, "/matched_by_sequence")? == received,
        "{summary}"
    );
    rows(&mut lines)
}

/// Without them: the same packets in the same runs, within the times that the stamps say.
fn timed_without_stamps(recorded: &Recorded, received: u64, stamped: &Rows) -> Result<()> {
    let alone = ["--packet-id", NUMBERS, "--root", "pipeline_run"];
    let by_packet = [&alone[..], &["--by", "packet", "--time", "tsc"]].concat();
    let mut lines = report(&recorded.process, &by_packet)?;
    let matched = one(&lines, "matched")?;
    let boundary = matched["boundary"]
        .as_str()
        .context("no boundary")?
        .to_owned();
    for said in [
        "entry of hopscope-demo!ethernet_input",
        "entry of hopscope-demo!device_output",
    ] {
        ensure!(boundary.contains(said), "{boundary}");
    }
    ensure!(matched["without_stamps"] == true, "{matched}");
    let seen = rows(&mut lines)?;
    ensure!(
        seen.len() as u64 == received,
        "{} of {received}",
        seen.len()
    );
    for (seq, row) in &seen {
        let other = stamped
            .get(seq)
            .with_context(|| format!("never sent: {row}"))?;
        ensure!(row["run"] == other["run"], "{row} {other}");
        let (from, to) = (ticks(row, "sent")?, ticks(other, "sent")?);
        let (inner, outer) = (ticks(row, "latency")?, ticks(other, "latency")?);
        ensure!(
            inner > 0.0 && from > to && from + inner < to + outer,
            "{row} {other}"
        );
    }

    // The boundaries are the user's where they are named.
    let named = [
        "--between",
        "device_output,ethernet_input",
        "--by",
        "packet",
    ];
    refused(
        &recorded.process,
        &[&alone[..], &named].concat(),
        "later in the other",
    )?;
    let tail = report(
        &recorded.process,
        &[&alone[..], &["--tail", "1ms"]].concat(),
    )?;
    let summary = one(&tail, "summary")?;
    ensure!(summary["boundary"] == *boundary, "{summary}");
    ensure!(summary["without_stamps"] == true, "{summary}");
    let first = tail
        .get("tail_cause")
        .and_then(|rows| rows.first())
        .context("no cause")?;
    // What was planted takes 8 ms between the two, and nothing else does.
    ensure!(
        first["function"]
            .as_str()
            .is_some_and(|f| f.ends_with("!l2_forward")),
        "{first}"
    );
    Ok(())
}

fn refused(file: &Path, arguments: &[&str], said: &str) -> Result<()> {
    let out = hopscope(&[&["report", path(file)?], arguments].concat())?.expect_code(2)?;
    ensure!(out.stdout.is_empty(), "{}", out.stdout);
    ensure!(out.stderr.contains(said), "not {said:?}: {}", out.stderr);
    ensure!(out.stderr.lines().count() == 1, "{}", out.stderr);
    Ok(())
}

/// The same packets as if another machine, or this one before its last boot, had stamped them.
fn of_another_clock(file: &Path, change: impl Fn(&mut RecordingMeta)) -> Result<PathBuf> {
    let reader = TraceReader::open(file)?;
    let mut meta = reader.tables().meta.clone();
    change(&mut meta);
    let other = file.with_extension("other.hop");
    let mut writer = TraceWriter::new(File::create(&other)?, &meta)?;
    for stream in &reader.tables().streams {
        writer.stream(stream)?;
    }
    for batch in reader.stamps() {
        let batch = batch?;
        writer.stamps(hopscope_trace::Stamps {
            stream: batch.stream,
            unwritten_before: batch.unwritten_before,
            stamps: &batch.stamps,
        })?;
    }
    let summary = reader
        .tables()
        .summary
        .clone()
        .context("a whole recording")?;
    writer.finish(&summary)?;
    Ok(other)
}

fn lacking() -> Result<()> {
    let cables = Cables::lay()?;
    let acl = format!("acl_match({CAPTURE})");
    let functions = [
        "pipeline_run(frame->received)",
        "acl.so!*",
        "acl_close",
        &acl,
    ];
    let some = Plant {
        fault: &[],
        load: &["--rate", "1000", "-c", "200"],
        ..PLANT
    };
    let recorded = record(&cables, &some, 1, &functions)?;
    let process = &recorded.process;
    let packets = path(&recorded.packets)?;

    // No stamps, and numbers at one place or at none.
    let tail = ["--tail", "p99"];
    refused(
        process,
        &["--by", "packet"],
        "the recording holds no packet",
    )?;
    refused(process, &tail, "--packet-id")?;
    let one_place = ["--packet-id", NUMBERS, "--by", "packet"];
    refused(process, &one_place, "captured in one function only")?;
    refused(
        process,
        &["--packet-id", NUMBERS, "--tail", "p99"],
        "in a second one",
    )?;
    refused(
        process,
        &["--packet-id", "mbuf->seq", "--by", "packet"],
        "no capture mbuf->seq",
    )?;
    let between = ["--between", "acl_match,pipeline_run", "--by", "packet"];
    refused(process, &between, "say which capture it is")?;
    let flows = ["--packet-id", NUMBERS, "--by", "flow"];
    refused(process, &flows, "do not say a packet's flow")?;
    let stamped = ["--packets", packets, "--between", "acl_match,pipeline_run"];
    refused(process, &[&stamped[..], &tail].concat(), "these have some")?;

    // Clocks that have nothing to do with each other.
    for (change, said) in [
        (
            (|m| m.host = "generator".to_owned()) as fn(&mut RecordingMeta),
            "different hosts",
        ),
        (
            |m| m.start.realtime_ns += 600_000_000_000,
            "booted about 600 s",
        ),
        (|m| m.tsc_frequency.0 += 100_000_000, "frequency"),
        (|m| m.start.tsc.0 += 10_000_000_000, "diverged"),
    ] {
        let other = of_another_clock(&recorded.packets, change)?;
        for view in [&["--by", "packet"][..], &tail] {
            let arguments = [&["--packets", path(&other)?], view].concat();
            refused(process, &arguments, said)?;
        }
    }

    // A root that was measured and never ran.
    for view in [&["--by", "packet"][..], &tail] {
        let arguments = [&["--packets", packets, "--root", "acl_close"], view].concat();
        refused(process, &arguments, "was measured and never ran")?;
    }
    never_back(&cables)
}

/// Packets that no rule permits: counted, given no run and no latency, and in no cause.
fn never_back(cables: &Cables) -> Result<()> {
    let none = Plant {
        fault: &[],
        denied: Some(1003),
        load: &["--rate", "1000", "-c", "400", "--lost-after", "100ms"],
        ..PLANT
    };
    let recorded = record(
        cables,
        &none,
        2,
        &["pipeline_run(frame->received)", "acl.so!*"],
    )?;
    let lost = number(&recorded.sent, "/lost")?;
    ensure!(lost > 0, "{}", recorded.sent);
    let packets = path(&recorded.packets)?;
    let with = [
        "--packets",
        packets,
        "--root",
        "pipeline_run",
        "--by",
        "packet",
    ];
    let mut lines = report(&recorded.process, &with)?;
    let matched = one(&lines, "matched")?;
    ensure!(number(matched, "/never_came_back")? == lost, "{matched}");
    for row in rows(&mut lines)?.values() {
        let back = row["matched"] != "never_came_back";
        ensure!(back == row["run"].is_u64(), "{row}");
        ensure!(back == row["latency_ns"].is_number(), "{row}");
    }
    let with = [
        "--packets",
        packets,
        "--root",
        "pipeline_run",
        "--tail",
        "p50",
    ];
    let late = report(&recorded.process, &with)?;
    let summary = one(&late, "summary")?;
    ensure!(number(summary, "/never_came_back")? == lost, "{summary}");
    ensure!(
        number(summary, "/attributed")? == number(summary, "/late")?,
        "{summary}"
    );
    Ok(())
}
