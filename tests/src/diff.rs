//! `hopscope diff` as a user runs it, on recordings of which the truth is known.
use anyhow::{Context, Result, ensure};
use hopscope_event::table::{ModuleEntry, ModuleIx};
use hopscope_event::*;
use hopscope_tests::command::Output;
use hopscope_tests::{Suite, hopscope, scratch};
use hopscope_trace::{Batch, TraceWriter};
use serde_json::Value;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

const CALLS: u64 = 20_000;
const START: u64 = 1_000_000;

pub(crate) fn register(suite: &mut Suite) {
    suite.case("diff::equals_are_noise", &[], equals);
    suite.case("diff::a_shift_is_found_and_fails", &[], shifted);
    suite.case("diff::other_programs_are_refused", &[], others);
    suite.case("diff::functions_of_one_side_are_named", &[], one_side);
}

/// Numbers without a pattern (SplitMix64).
fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n ^ n >> 27
}

fn sync(tsc: u64) -> ClockSync {
    ClockSync {
        tsc: Tsc(tsc),
        monotonic_ns: tsc,
        realtime_ns: 1_763_701_929_000_000_000 + tsc,
        window_ticks: 3,
    }
}

/// Calls of each function in turn: its length in ticks of 1 ns, with noise of 20 % and a slow
/// wandering of 3 %.
fn write(to: &Path, functions: &[(&str, u64)], seed: u64) -> Result<()> {
    let meta = RecordingMeta {
        hopscope_version: "0.1.0".into(),
        command_line: vec!["hopscope".into()],
        host: "here".into(),
        kernel: "6.1".into(),
        cpu: "A CPU".into(),
        cpus_online: 2,
        tsc_frequency: TscFrequency(1_000_000_000),
        tsc_invariant: true,
        start: sync(START - 1_000),
        stride: 16,
        ring_records: 1 << 18,
        probe_cost: None,
    };
    let mut writer = TraceWriter::new(BufWriter::new(File::create(to)?), &meta)?;
    writer.process(&ProcessEntry {
        ix: ProcessIx(0),
        pid: 7,
        comm: "nf".into(),
        command_line: vec!["./nf".into()],
    })?;
    writer.modules(&[ModuleEntry {
        ix: ModuleIx(0),
        path: "/opt/nf".into(),
        build_id: String::new(),
    }])?;
    let rows = functions
        .iter()
        .zip(0..)
        .map(|((name, _), id)| FunctionEntry {
            id: FunctionId(id),
            module: ModuleIx(0),
            name: (*name).into(),
            svma: 0x1000 + u64::from(id) * 64,
            size: 64,
            file: None,
            line: None,
        });
    writer.functions(&rows.collect::<Vec<_>>())?;
    writer.thread(&ThreadEntry {
        ix: ThreadIx(0),
        process: ProcessIx(0),
        tid: 8,
        comm: "nf".into(),
    })?;
    let mut records = Vec::new();
    let mut at = START;
    for n in 0..CALLS {
        let wander = 1.0 + 0.03 * (n as f64 / 2_000.0 + seed as f64).sin();
        for ((_, ticks), id) in functions.iter().zip(0..) {
            let noise =
                0.9 + 0.2 * (mixed(seed << 40 ^ n << 4 ^ u64::from(id)) % 1_000) as f64 / 1e3;
            let took = (*ticks as f64 * wander * noise) as u64;
            records.push(Record::new(at, FunctionId(id), Kind::Entry, 0x7fff_0000));
            records.push(Record::new(
                at + took,
                FunctionId(id),
                Kind::Exit,
                0x7fff_0000,
            ));
            at += took + 500;
        }
    }
    let mut first_index = 0;
    for part in records.chunks(1 << 15) {
        writer.records(Batch {
            thread: ThreadIx(0),
            first_index,
            lost_before: 0,
            torn_before: 0,
            records: part,
        })?;
        first_index += part.len() as u64;
    }
    writer.finish(&Summary {
        end: sync(at),
        ended_because: "duration reached".into(),
        recorded: first_index,
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

fn compare(a: &[(&str, u64)], b: &[(&str, u64)], more: &[&str]) -> Result<Output> {
    let dir = scratch();
    let (first, second) = (dir.join("a.hop"), dir.join("b.hop"));
    write(&first, a, 1)?;
    write(&second, b, 2)?;
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let words = ["diff", &first, &second];
    hopscope(&[&words[..], more].concat())
}

fn rows(out: &Output) -> Result<Vec<Value>> {
    let lines = out.stdout.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<Vec<Value>, _>>()?)
}

fn verdict<'a>(rows: &'a [Value], function: &str) -> Result<&'a Value> {
    let its = rows
        .iter()
        .find(|row| row["name"] == format!("nf!{function}"));
    Ok(&its.with_context(|| format!("no row of {function}: {rows:?}"))?["verdict"])
}

fn equals() -> Result<()> {
    let same = [("parse", 400), ("acl", 1_500)];
    let out = compare(&same, &same, &["--fail-above", "0"])?.expect_code(0)?;
    ensure!(
        out.stdout.contains("no difference beyond noise"),
        "{}",
        out.stdout
    );
    let out = compare(&same, &same, &["--fail-above", "0", "--json"])?.expect_code(0)?;
    let rows = rows(&out)?;
    for function in ["parse", "acl"] {
        ensure!(verdict(&rows, function)? == "same", "{}", out.stdout);
    }
    Ok(())
}

fn shifted() -> Result<()> {
    let (a, b) = (
        [("parse", 400), ("acl", 1_500)],
        [("parse", 400), ("acl", 1_800)],
    );
    let out = compare(&a, &b, &["--fail-above", "10", "--json"])?.expect_code(1)?;
    let found = rows(&out)?;
    ensure!(verdict(&found, "acl")? == "slower", "{}", out.stdout);
    ensure!(verdict(&found, "parse")? == "same", "{}", out.stdout);
    // 20 % are not above 30, and what became faster fails nothing.
    compare(&a, &b, &["--fail-above", "30"])?.expect_code(0)?;
    let out = compare(&b, &a, &["--fail-above", "0", "--json"])?.expect_code(0)?;
    ensure!(verdict(&rows(&out)?, "acl")? == "faster", "{}", out.stdout);
    // Without a limit nothing fails.
    compare(&a, &b, &[])?.expect_code(0)?;
    Ok(())
}

fn others() -> Result<()> {
    let out = compare(&[("parse", 400)], &[("draw", 400)], &[])?;
    out.expect_refusal(&["no function in common", "other programs"])
}

fn one_side() -> Result<()> {
    let (a, b) = (
        [("parse", 400), ("old", 900)],
        [("parse", 400), ("new", 900)],
    );
    let out = compare(&a, &b, &[])?.expect_code(0)?;
    for name in ["nf!old", "nf!new"] {
        ensure!(out.stdout.contains(name), "no {name} in {}", out.stdout);
    }
    Ok(())
}
