//! Runs, the packets they handled and what they captured, in each format that shows them.
use super::recording::{self, BATCH, FUNCTIONS, RUNS, latency_ns, lost, returned, run};
use super::{export, of_kind, rows};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command;
use hopscope_tests::paths::{programs, readers_python};
use hopscope_tests::{Requirement, Suite, hopscope, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("export::rows_of_runs_and_values", &[], tables);
    suite.case(
        "export::parquet_of_values_is_read_by_duckdb",
        &[Requirement::Readers],
        parquet,
    );
    suite.case(
        "export::perfetto_flows_go_through_the_run",
        &[Requirement::Readers],
        flows,
    );
    suite.case(
        "export::pcapng_names_the_run",
        &[Requirement::Tshark],
        pcapng,
    );
    suite.case(
        "export::packets_of_another_clock_are_refused",
        &[],
        other_clock,
    );
}

/// The process and its packets in one file.
fn whole() -> Result<(PathBuf, PathBuf)> {
    let dir = scratch();
    let file = dir.join("nf.hop");
    recording::write(&file, &file)?;
    Ok((dir, file))
}

fn number(row: &Value, key: &str) -> Result<f64> {
    row[key].as_f64().with_context(|| format!("{key}: {row}"))
}

fn tables() -> Result<()> {
    let (_, file) = whole()?;
    let (runs, summary) = rows(&file, &["--what", "runs", "--root", "run"])?;
    ensure!(runs.len() as u64 == RUNS, "{} runs", runs.len());
    for (row, n) in runs.iter().zip(0..) {
        let (start, length, acl) = run(n);
        ensure!(
            row["run"] == n && row["start_tsc"] == start && row["length_tsc"] == length,
            "run {n}: {row}"
        );
        ensure!(
            row["packets"] == BATCH && row["calls"] == 3 && row["complete"] == 1 && row["tid"] == 8,
            "run {n}: {row}"
        );
        ensure!(
            row["slowest_function"] == FUNCTIONS[1]
                && number(row, "slowest_function_own_ns")? == acl as f64,
            "run {n}: {row}"
        );
    }
    ensure!(
        summary["packets_matched_by_sequence"] == RUNS * BATCH,
        "{summary}"
    );
    packets(&file)?;
    values(&file)
}

fn packets(file: &Path) -> Result<()> {
    let (rows, _) = rows(file, &["--what", "packets"])?;
    for row in of_kind(&rows, "packet") {
        let seq = row["seq"].as_u64().context("seq")?;
        // A lost packet's number was captured all the same: it was lost later.
        ensure!(
            row["run"] == seq / BATCH && row["matched"] == "sequence",
            "{row}"
        );
        let latency = (!lost(seq)).then_some(latency_ns(seq) as f64);
        ensure!(row["latency_ns"].as_f64() == latency, "{row}");
    }
    Ok(())
}

fn values(file: &Path) -> Result<()> {
    let (rows, _) = rows(file, &["--what", "values"])?;
    ensure!(
        rows.len() as u64 == RUNS * (BATCH + 1),
        "{} values",
        rows.len()
    );
    for (of, n) in rows.chunks(BATCH as usize + 1).zip(0..) {
        let (back, seqs) = of.split_last().context("values")?;
        for (row, element) in seqs.iter().zip(0..) {
            ensure!(
                row["capture"] == "pkts[].seq"
                    && row["element"] == element
                    && row["value"] == n * BATCH + element
                    && row["function"] == FUNCTIONS[1],
                "run {n}: {row}"
            );
        }
        let value = returned(n);
        ensure!(
            back["capture"] == "return"
                && back["value"] == value
                && back["value_bits"] == value as u64,
            "run {n} returned {value}: {back}"
        );
        ensure!(
            of.iter().all(|row| row["call"] == of[0]["call"]),
            "values of run {n} belong to one call: {of:?}"
        );
    }
    Ok(())
}

/// Joined with the calls by another program.
fn parquet() -> Result<()> {
    let (dir, file) = whole()?;
    let path = |name: &str| dir.join(name).display().to_string();
    for what in ["calls", "values", "runs"] {
        let to = path(&format!("{what}.parquet"));
        export(&file, &["--format", "parquet", "--what", what, "-o", &to])?;
    }
    let query = format!(
        "select count(*), sum(v.value), min(v.value) from '{}' v join '{}' c on v.call = c.call \
         join '{}' r on c.entry_tsc between r.start_tsc and r.start_tsc + r.length_tsc \
         where v.row = 'value' and c.row = 'call' and r.row = 'run' and c.function = v.function \
         and v.capture = 'return'",
        path("values.parquet"),
        path("calls.parquet"),
        path("runs.parquet")
    );
    let program = "import duckdb, json, sys; print(json.dumps([int(n) for n in duckdb.sql(sys.argv[1]).fetchall()[0]]))";
    let out = command::run(Command::new(readers_python()).args(["-c", program, &query]))?;
    let seen: Vec<i64> = serde_json::from_str(&out.expect_code(0)?.stdout)?;
    let all: i64 = (0..RUNS).map(returned).sum();
    ensure!(seen == [RUNS as i64, all, returned(0)], "{seen:?}");
    Ok(())
}

fn flows() -> Result<()> {
    let (dir, file) = whole()?;
    let trace = dir.join("out.perfetto");
    export(
        &file,
        &["--format", "perfetto", "-o", &trace.display().to_string()],
    )?;
    let out = command::run(
        Command::new(readers_python())
            .arg(programs().join("readers/perfetto_slices.py"))
            .arg(&trace),
    )?;
    let trace: Value = serde_json::from_str(&out.expect_code(0)?.stdout)?;
    let list = |name: &str| trace[name].as_array().with_context(|| name.to_owned());
    let runs: Vec<&Value> = (list("slices")?.iter())
        .filter(|s| !s["notes"]["run"].is_null())
        .collect();
    ensure!(runs.len() as u64 == RUNS, "{} slices of runs", runs.len());
    for slice in &runs {
        let n = slice["notes"]["run"].as_u64().context("run")?;
        let (_, length, acl) = run(n);
        ensure!(
            slice["dur"] == length && slice["notes"]["slowest_function_own_ns"] == acl as f64,
            "run {n}: {slice}"
        );
    }
    let flows = list("flows")?;
    ensure!(flows.len() as u64 == RUNS * BATCH, "{} flows", flows.len());
    for flow in flows {
        let steps = flow.as_array().context("steps")?;
        let names: Vec<&str> = steps.iter().filter_map(|s| s["name"].as_str()).collect();
        let packet = *names.first().context("a flow of nothing")?;
        let seq = packet
            .strip_prefix("seq ")
            .and_then(|s| s.split(' ').next());
        let seq: u64 = seq.context("seq")?.parse()?;
        let mut expected = vec![packet.to_owned(), format!("run {}", seq / BATCH)];
        if !lost(seq) {
            expected.push(packet.to_owned());
            ensure!(
                steps[2]["last"] == true && steps[1]["last"] == false,
                "{flow}"
            );
        }
        ensure!(names == expected, "packet {seq}: {names:?}");
    }
    Ok(())
}

/// The packets in a file of their own, as two programs write them.
fn pcapng() -> Result<()> {
    let dir = scratch();
    let (process, load) = (dir.join("nf.hop"), dir.join("load.hop"));
    recording::write(&process, &load)?;
    let path = |p: &Path| p.display().to_string();
    let (load, to) = (path(&load), path(&dir.join("out.pcapng")));
    let options = ["--format", "pcapng", "--packets", &load, "-o", &to];
    export(&process, &options)?;
    let fields = ["-T", "fields", "-e", "frame.comment"];
    let out = command::run(Command::new("tshark").args(["-r", &to]).args(fields))?;
    let said = out.expect_code(0)?.stdout;
    for seq in 0..RUNS * BATCH {
        let its: Vec<&str> = (said.lines())
            .filter(|line| line.starts_with(&format!("seq {seq} ")))
            .collect();
        let n = seq / BATCH;
        let (_, length, acl) = run(n);
        let expected = format!(
            "; run {n} (by captured sequence number) of {BATCH} packets took {length} ns, nf!{} {acl} ns",
            FUNCTIONS[1]
        );
        let frames = if lost(seq) { 1 } else { 2 };
        ensure!(
            its.len() == frames && its.iter().all(|line| line.contains(&expected)),
            "packet {seq}: {its:?}, not {expected:?}"
        );
    }
    Ok(())
}

fn other_clock() -> Result<()> {
    let (_, file) = whole()?;
    let (file, other) = (
        file.display().to_string(),
        super::packets().display().to_string(),
    );
    let words = ["export", &file, "--format", "pcapng", "--packets", &other];
    hopscope(&words)?.expect_refusal(&["cannot be laid side by side"])
}
