//! `--every N`: each Nth run, whole, and nothing else.
use super::passes::{FUNCTIONS, Program, RECORDS_A_PASS, RECORDS_BETWEEN, passes, shape};
use crate::recording::{Recording, Report, command_with_buffer};
use anyhow::{Context, Result, ensure};
use hopscope_event::{Record, RecordKind, ThinEntry};
use hopscope_tests::{counts, hopscope, scratch};
use hopscope_trace::TraceReader;
use serde_json::Value;
use std::path::Path;

const EVERY: u64 = 7;

fn start(program: &Program, file: &Path, buffer: &str, every: u64) -> Result<Recording> {
    let mut command = command_with_buffer(program.pid(), FUNCTIONS, file, buffer);
    command.args(["--root", "pass", "--every", &every.to_string()]);
    Recording::start_command(command, file)
}

pub(super) fn whole_runs() -> Result<()> {
    let file = scratch().join("every.hop");
    let mut program = Program::start()?;
    // Nothing may be lost, however late the recorder gets a processor.
    let recording = start(&program, &file, "256M", EVERY)?;
    program.command(&format!("run {}", counts().pick(100_000, 1_000_000)))?;
    let summary = recording.stop()?;
    program.terminate()?;
    let reader = TraceReader::open(&file)?;
    let thin = expect_kept(&reader, &summary)?;
    let all = passes(&reader)?;
    let numbers = all.values().next().context("no pass was kept")?;
    let steps = numbers.windows(2).find(|pair| pair[1] != pair[0] + EVERY);
    ensure!(steps.is_none(), "not each {EVERY}th pass: {steps:?}");
    let cut = thin.runs_cut;
    ensure!(cut <= 1, "{cut} runs cut, though none was lost");
    ensure!(
        thin.runs_kept + cut == thin.runs_seen.div_ceil(EVERY),
        "{thin:?}"
    );
    // A run may be under way at both ends; idle calls lie between.
    let records = thin.runs_seen * (RECORDS_A_PASS + RECORDS_BETWEEN);
    let recorded = thin.runs_kept * RECORDS_A_PASS + thin.records_left_out;
    ensure!(
        recorded.abs_diff(records) <= RECORDS_A_PASS + RECORDS_BETWEEN,
        "{thin:?}"
    );
    println!("{} of {} runs", thin.runs_kept, thin.runs_seen);
    reported(&file, &thin)
}

/// Rings that are far too small: runs with a loss in them are left out, none is torn. Each run is
/// to be kept, so that nearly each loss hits one.
pub(super) fn under_loss() -> Result<()> {
    let file = scratch().join("every.hop");
    let mut program = Program::start()?;
    let recording = start(&program, &file, "64K", 1)?;
    program.command(&format!("run {}", counts().pick(1_000_000, 10_000_000)))?;
    let summary = recording.stop()?;
    program.terminate()?;
    let reader = TraceReader::open(&file)?;
    let thin = expect_kept(&reader, &summary)?;
    ensure!(
        summary["lost"].as_u64() > Some(0),
        "nothing was lost: {summary}"
    );
    println!("{thin:?}");
    Ok(())
}

/// Whole runs of known shape, and every record accounted for.
fn expect_kept(reader: &TraceReader, summary: &Value) -> Result<ThinEntry> {
    let t = reader.tables();
    ensure!(t.damage.is_none(), "{:?}", t.damage);
    let thin = t
        .thin
        .clone()
        .context("it is not said that runs were left out")?;
    ensure!(
        summary["choice"]["thin"] == serde_json::to_value(&thin)?,
        "{summary}"
    );
    let id = |name: &str| t.functions.iter().find(|f| f.name == name).map(|f| f.id);
    let (pass, look, done) = (id("pass"), id("look"), id("done"));
    let (pass, look, done) = (
        pass.context("pass")?,
        look.context("look")?,
        done.context("done")?,
    );
    let mut expected = vec![(pass, RecordKind::Entry), (pass, RecordKind::Value)];
    expected.extend([(look, RecordKind::Entry), (look, RecordKind::Exit)].repeat(4));
    expected.extend([
        (pass, RecordKind::TailExit),
        (done, RecordKind::Entry),
        (done, RecordKind::Exit),
    ]);
    ensure!(
        expected.len() as u64 == RECORDS_A_PASS,
        "the shape of a pass"
    );
    let mut records: Vec<Record> = Vec::new();
    for batch in reader.batches() {
        records.extend(batch?.records);
    }
    for (n, run) in records.chunks(expected.len()).enumerate() {
        ensure!(shape(run) == expected, "run {n} is not whole: {run:?}");
    }
    ensure!(
        records.len() as u64 == thin.runs_kept * RECORDS_A_PASS,
        "{thin:?}"
    );
    ensure!(
        summary["recorded"].as_u64() == Some(records.len() as u64),
        "{summary}"
    );
    Ok(thin)
}

fn reported(file: &Path, thin: &ThinEntry) -> Result<()> {
    let path = file.to_str().context("path")?;
    let report = Report::read(file)?;
    report.expect_whole()?;
    for function in ["pass", "look", "done"] {
        let balance = &report.functions[function];
        for field in ["open_at_end", "ends_open_at_start", "unwound"] {
            ensure!(balance[field] == 0, "{function}: {balance:?}");
        }
    }
    ensure!(
        report.entries("idle") == 0,
        "calls outside of runs are in the file"
    );
    // What a run begins with need not be said again, and each is complete.
    let out = hopscope(&["report", path, "--by", "run", "--json"])?.expect_code(0)?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let runs = lines.iter().find(|line| line["type"] == "runs");
    let runs = runs.context("no line about all runs")?;
    let complete = runs["complete"].as_u64();
    ensure!(complete == Some(thin.runs_kept), "{runs}");
    ensure!(runs["runs"].as_u64() == complete, "{runs}");
    let text = hopscope(&["report", path, "--by", "run"])?
        .expect_code(0)?
        .stdout;
    ensure!(text.contains(&format!("1 of {EVERY} kept")), "{text}");
    ensure!(text.contains("only runs of it were kept"), "{text}");
    // Packets would be matched with runs that did not handle them.
    hopscope(&["report", path, "--tail", "p99"])?.expect_refusal(&["1 of 7 runs", "--every"])
}
