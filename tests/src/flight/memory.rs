//! However long it records, a flight recorder's memory stays what it was told.
use super::passes::{Program, expect_contiguous};
use super::saved::Saved;
use super::{FUNCTIONS, expect_accounted, flight, recorder_of};
use crate::recording::{Recording, command_with_buffer};
use anyhow::{Context, Result, bail, ensure};
use hopscope_event::BeginsLate;
use hopscope_tests::{counts, scratch};
use nix::sys::signal::Signal;
use std::path::Path;

/// Far less than an hour holds.
const MEMORY: u64 = 2 << 20;

fn start(program: &Program, dir: &Path) -> Result<Recording> {
    let output = dir.join("out.hop");
    // What is lost would make it easier.
    let mut command = command_with_buffer(program.pid(), FUNCTIONS, &output, "256M");
    let memory = MEMORY.to_string();
    let words = ["--flight-memory", &memory, "--trigger", "SIGUSR1"];
    flight(&mut command, "1h", &words);
    Recording::start_command(command, &output)
}

/// Resident memory of its own: pages of files and of the target's rings are not.
fn anonymous_bytes(pid: i32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    let kib = line.and_then(|l| l.split_whitespace().next());
    Ok(kib.context("RssAnon")?.parse::<u64>()? << 10)
}

/// As much again and again: it holds no more after the last than after the first.
pub(super) fn bounded() -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let recording = start(&program, &dir)?;
    let recorder = recorder_of(recording.pid())?;
    // More at once than the ring holds would be lost where the recorder gets no processor meanwhile.
    let (run, runs) = ("run 200000", counts().pick(9, 99));
    program.command(run)?;
    program.rest(1)?;
    let first = anonymous_bytes(recorder)?;
    for _ in 0..runs {
        program.command(run)?;
        // The ring holds one of them, and some hundred thousand records more.
        program.command("rest 2000")?;
    }
    program.rest(1)?;
    let last = anonymous_bytes(recorder)?;
    let summary = recording.stop()?;
    program.terminate()?;
    expect_accounted(&summary, &dir)?;
    let records = summary["recorded"].as_u64().context("records")?;
    println!("{records} records; {first} bytes after the first run of them, {last} at the end");
    // Unbounded it would be two bytes a record and more: 20 MiB in the least.
    ensure!(last < first + MEMORY, "it grows: {first} to {last} bytes");
    let room = summary["choice"]["flight"]["records_left_out_for_room"].as_u64();
    ensure!(room > Some(records / 2), "it was not full: {summary}");
    Ok(())
}

/// It is said in the file; and what the file does hold is whole.
pub(super) fn full() -> Result<()> {
    let dir = scratch();
    let mut program = Program::start()?;
    let recording = start(&program, &dir)?;
    program.command("run 200000")?;
    // Until the recorder has read them: what it has still to read when it is asked goes to the file too, and fills it.
    program.rest(1)?;
    recording.signal(Signal::SIGUSR1)?;
    program.rest(1)?;
    let summary = recording.stop()?;
    program.terminate()?;
    let saved = expect_accounted(&summary, &dir)?;
    let [file] = &saved[..] else {
        bail!("{} files: {summary}", saved.len());
    };
    expect_short(file)?;
    ensure!(
        summary["choice"]["flight"]["files_short_of_room"] == 1,
        "{summary}"
    );
    let path = file.path.to_str().context("path")?;
    let out = hopscope_tests::hopscope(&["report", path])?.expect_code(0)?;
    ensure!(
        out.stdout.contains("BEGINS LATE: the memory held no more"),
        "{}",
        out.stdout
    );
    Ok(())
}

fn expect_short(file: &Saved) -> Result<()> {
    let flight = &file.flight;
    ensure!(
        flight.begins_late == Some(BeginsLate::MemoryFull),
        "{flight:?}"
    );
    ensure!(flight.records_left_out_for_room > 0, "{flight:?}");
    let passes = file.passes()?;
    let numbers = passes.values().next().context("no pass")?;
    expect_contiguous(numbers)
}
