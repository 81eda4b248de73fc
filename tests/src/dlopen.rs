//! `record --follow-dlopen`: what a target loads while it is recorded is measured, too.
mod disturbed;
mod ends;
mod exceptions;
mod software;

use crate::recording::{Recording, Report, command};
use crate::told::Told;
use crate::top::growing::Top;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile, compile_c, hopscope, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::Gcc;
    suite.case("dlopen::measured_from_the_load_on", &[Gcc], measured);
    suite.case("dlopen::nothing_matches_before", &[Gcc], nothing_before);
    suite.case("dlopen::nothing_matches_ever", &[Gcc], nothing_ever);
    suite.case("dlopen::unloaded_and_loaded_again", &[Gcc], again);
    suite.case("dlopen::another_file_in_its_place", &[Gcc], replaced);
    suite.case("dlopen::in_the_place_of_another", &[Gcc], same_size);
    suite.case("dlopen::calls_through_slots", &[Gcc], slots);
    suite.case("dlopen::two_processes_share_rows", &[Gcc], two_processes);
    suite.case("dlopen::in_top", &[Gcc], in_top);
    suite.case("dlopen::not_asked_for", &[Gcc], not_asked_for);
    disturbed::register(suite);
    ends::register(suite);
    exceptions::register(suite);
    software::register(suite);
}

const SHARED: [&str; 3] = ["-O2", "-shared", "-fPIC"];

pub(crate) fn program() -> Result<PathBuf> {
    compile_c(
        &["dlopen/main.c"],
        &["-O2", "-rdynamic", "-pthread", "-ldl"],
    )
}

fn plug_in() -> Result<PathBuf> {
    compile_c(&["dlopen/plug_in.c"], &SHARED)
}

fn other() -> Result<PathBuf> {
    let flags = [&SHARED[..], &["-DOTHER"]].concat();
    compile_c(&["dlopen/plug_in.c"], &flags)
}

fn start() -> Result<Told> {
    Told::start(&mut Command::new(program()?))
}

fn following(pid: i32, patterns: &[&str], file: &Path) -> Command {
    let mut record = command(pid, patterns, file);
    record.arg("--follow-dlopen");
    record
}

/// As the plug-in computes it.
fn sum(count: i64, factor: i64, mask: i64) -> i64 {
    let step = |x: i64| (0..8).fold(x ^ mask, |x, _| x.wrapping_mul(factor).wrapping_add(7));
    (0..count).fold(count, |x, _| step(x))
}

/// Loads it, and waits until it is measured.
fn load(target: &mut Told, slot: u32, path: &Path) -> Result<()> {
    expect(target, &format!("load {slot} {}", path.display()), "loaded")?;
    expect(target, &format!("measured {slot}"), "measured")
}

fn expect(target: &mut Told, what: &str, answer: &str) -> Result<()> {
    let said = target.told(what)?;
    ensure!(said == answer, "{what}: {said}");
    Ok(())
}

fn call(target: &mut Told, slot: u32, count: i64) -> Result<()> {
    let right = sum(count, 31, 0).to_string();
    expect(target, &format!("call {slot} {count}"), &right)
}

fn notes(summary: &Value) -> String {
    summary["notes"].to_string()
}

/// From the first call behind the jump on, with the thread that was there and one that came later.
fn measured() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("measured.hop"));
    let record = following(target.pid(), &["own", "plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &plug_in)?;
    call(&mut target, 0, 300)?;
    let right = sum(200, 31, 0).to_string();
    expect(&mut target, "thread 0 200", &right)?;
    target.told("own 1")?;
    let said = recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let counted = ["plug_step", "plug_run", "own"].map(|f| report.entries(f));
    ensure!(counted == [500, 2, 1], "{counted:?}");
    let name = plug_in.file_name().context("a name")?.to_string_lossy();
    let note = format!("{name} was loaded while recording: 2 functions are measured, from ");
    ensure!(notes(&said).contains(&note), "{said}");
    ensure!(said["functions"] == 3, "{said}");
    // That it was stopped for it is said.
    ensure!(
        said["stops"]["dlopen"][0]["stops"].as_u64() >= Some(2),
        "{said}"
    );
    target.expect_clean()?;
    expect(&mut target, "original 0", "original")
}

/// Nothing but the rings is there before.
fn nothing_before() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("before.hop"));
    let pattern = format!(
        "{}!plug_run",
        plug_in.file_name().context("a name")?.to_string_lossy()
    );
    let record = following(target.pid(), &[&pattern], &file);
    let recording = Recording::start_command(record, &file)?;
    expect(
        &mut target,
        &format!("load 0 {}", plug_in.display()),
        "loaded",
    )?;
    // `plug_step` has no jump: waits for a record instead.
    let mut calls = 0;
    let report = loop {
        call(&mut target, 0, 10)?;
        calls += 1;
        let report = Report::read(&file.with_file_name(partial(&file)?));
        match report {
            Ok(report) if report.entries("plug_run") > 0 => break report,
            _ => ensure!(calls < 1_000_000, "never measured"),
        }
    };
    ensure!(report.entries("plug_step") == 0);
    recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let runs = report.entries("plug_run");
    ensure!((1..=calls).contains(&runs), "{runs} of {calls}");
    target.expect_clean()
}

/// Of a recording that goes on.
fn partial(file: &Path) -> Result<String> {
    let name = file
        .file_name()
        .context("a name")?
        .to_string_lossy()
        .into_owned();
    let entries = std::fs::read_dir(file.parent().context("a folder")?)?;
    let names = entries
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned());
    let mut partial = names.filter(|n| n.starts_with(&format!("{name}.partial-")));
    partial.next().context("no recording goes on")
}

fn nothing_ever() -> Result<()> {
    let (target, file) = (start()?, scratch().join("ever.hop"));
    let record = following(target.pid(), &["no_such_*"], &file);
    let said = Recording::start_command(record, &file)?.stop()?;
    let note = "no module, loaded before or while recording, has functions that match no_such_*";
    ensure!(notes(&said).contains(note), "{said}");
    target.expect_clean()
}

/// Where it was, mostly, and so fast that nobody has seen it gone; and after it was seen gone.
fn again() -> Result<()> {
    const TIMES: u32 = 10;
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("again.hop"));
    let record = following(target.pid(), &["plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &plug_in)?;
    call(&mut target, 0, 100)?;
    let mut same = 0;
    for _ in 0..TIMES {
        let where_to = target.told(&format!("again 0 {}", plug_in.display()))?;
        same += u32::from(where_to == "same");
        expect(&mut target, "measured 0", "measured")?;
        call(&mut target, 0, 100)?;
    }
    ensure!(same > 0, "never where it was");
    for _ in 0..TIMES {
        expect(&mut target, "unload 0", "unloaded")?;
        load(&mut target, 0, &plug_in)?;
        call(&mut target, 0, 100)?;
    }
    // Copies of what is gone are gone, but for the last one's: they do not pile up.
    let arenas = hopscope_tests::mapped::mapped(target.pid())?;
    let code = arenas.iter().filter(|m| m.executable).count();
    ensure!(code <= 3, "{arenas:?}");
    let said = recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let (times, steps) = (u64::from(2 * TIMES + 1), report.entries("plug_step"));
    ensure!(steps == 100 * times, "{steps} of {times} times");
    ensure!(notes(&said).contains(&format!("{times} times")), "{said}");
    // One row for each function, however often it came.
    ensure!(said["functions"] == 2, "{said}");
    target.expect_clean()?;
    call(&mut target, 0, 10)
}

/// A rebuilt plug-in has the old one's path.
fn replaced() -> Result<()> {
    let (mut target, dir) = (start()?, scratch());
    let (path, file) = (dir.join("plugged.so"), dir.join("replaced.hop"));
    std::fs::copy(plug_in()?, &path)?;
    let record = following(target.pid(), &["plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &path)?;
    call(&mut target, 0, 50)?;
    std::fs::copy(other()?, dir.join("new.so"))?;
    std::fs::rename(dir.join("new.so"), &path)?;
    target.told(&format!("again 0 {}", path.display()))?;
    expect(&mut target, "measured 0", "measured")?;
    let right = sum(70, 17, 0x5555).to_string();
    expect(&mut target, "call 0 70", &right)?;
    recording.stop()?;
    Report::read(&file)?.expect_whole()?;
    // Each file's function is one of its own.
    let path = file.to_str().context("a path in UTF-8")?;
    let out = hopscope(&["report", "--json", path])?.expect_code(0)?;
    let mut steps = Vec::new();
    for line in out.stdout.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row["function"] == "plug_step" {
            steps.push(row["calls"].as_u64().context("calls")?);
        }
    }
    steps.sort_unstable();
    ensure!(steps == [50, 70], "{steps:?}");
    target.expect_clean()
}

/// As large as the one that goes, of which nothing is measured.
fn same_size() -> Result<()> {
    let (mut target, dir) = (start()?, scratch());
    let (first, second) = (dir.join("first.so"), dir.join("second.so"));
    std::fs::copy(plug_in()?, &first)?;
    std::fs::copy(plug_in()?, &second)?;
    expect(
        &mut target,
        &format!("load 0 {}", first.display()),
        "loaded",
    )?;
    let file = dir.join("size.hop");
    let record = following(target.pid(), &["second.so!plug_*"], &file);
    let recording = Recording::start_command(record, &file)?;
    target.told(&format!("again 0 {}", second.display()))?;
    expect(&mut target, "measured 0", "measured")?;
    call(&mut target, 0, 80)?;
    recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    ensure!(report.entries("plug_step") == 80);
    target.expect_clean()
}

/// What is too short for a jump, and lies in what was there before, is measured where the plug-in calls it.
fn slots() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("slots.hop"));
    let record = following(target.pid(), &["tiny", "plug_step"], &file);
    let recording = Recording::start_command(record, &file)?;
    load(&mut target, 0, &plug_in)?;
    call(&mut target, 0, 90)?;
    recording.stop()?;
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let name = plug_in.file_name().context("a name")?.to_string_lossy();
    let tiny = report.entries(&format!("tiny [called from {name}]"));
    ensure!(tiny == 90, "{tiny}: {:?}", report.functions);
    target.expect_clean()?;
    call(&mut target, 0, 10)
}

/// What both of them loaded is named once.
fn two_processes() -> Result<()> {
    let (mut first, mut second) = (start()?, start()?);
    let (plug_in, file) = (plug_in()?, scratch().join("two.hop"));
    let mut record = following(first.pid(), &["plug_step"], &file);
    record.args(["-p", &second.pid().to_string()]);
    let recording = Recording::start_command(record, &file)?;
    load(&mut first, 0, &plug_in)?;
    load(&mut second, 3, &plug_in)?;
    call(&mut first, 0, 40)?;
    call(&mut second, 3, 60)?;
    let said = recording.stop()?;
    ensure!(said["functions"] == 1, "{said}");
    let report = Report::read(&file)?;
    report.expect_whole()?;
    let steps = report.entries("plug_step");
    ensure!(steps == 100, "{steps}");
    first.expect_clean()?;
    second.expect_clean()
}

fn in_top() -> Result<()> {
    let (mut target, plug_in) = (start()?, plug_in()?);
    let options = ["--follow-dlopen", "-f", "plug_*", "-f", "own"];
    let top = Top::start(target.pid(), &options)?;
    load(&mut target, 0, &plug_in)?;
    call(&mut target, 0, 100)?;
    target.told("own 1")?;
    let calls = top.stop()?;
    let counted = ["plug_step", "plug_run", "own"].map(|f| calls.get(f).copied());
    ensure!(counted == [Some(100), Some(1), Some(1)], "{calls:?}");
    target.expect_clean()
}

fn not_asked_for() -> Result<()> {
    let (mut target, plug_in, file) = (start()?, plug_in()?, scratch().join("not.hop"));
    let recording = Recording::start(target.pid(), &["own", "plug_*"], &file)?;
    expect(
        &mut target,
        &format!("load 0 {}", plug_in.display()),
        "loaded",
    )?;
    call(&mut target, 0, 100)?;
    recording.stop()?;
    let report = Report::read(&file)?;
    ensure!(report.entries("plug_step") == 0);
    for (more, with) in [
        (&["--budget", "5"][..], "--budget"),
        (&["--check-cost=1s"], "--check-cost"),
        (&["--dry-run"], "--dry-run"),
        (&["-f", "calls:own"], "calls:"),
    ] {
        let mut record = following(target.pid(), &["own"], &file);
        let out = hopscope_tests::command::run(record.args(more))?.expect_code(2)?;
        ensure!(
            out.stderr.contains("--follow-dlopen") && out.stderr.contains(with),
            "{with}: {}",
            out.stderr
        );
    }
    target.expect_clean()
}

pub(super) fn throwing() -> Result<PathBuf> {
    compile("g++", &["dlopen/throws.cpp"], &SHARED)
}
