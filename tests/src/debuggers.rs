//! Debuggers and profilers name measured functions, and what called them, with the file of `record --symbols`.
use crate::recording::{Recording, command_with_buffer};
use crate::unwinding::Held;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, command::run, compile, counts, scratch};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let gdb = &[Requirement::Gxx, Requirement::Gcc, Requirement::Gdb];
    suite.case("debuggers::gdb_in_a_process", gdb, gdb_in_a_process);
    suite.case("debuggers::gdb_on_a_core_file", gdb, gdb_on_a_core_file);
    let crashing = &[gdb.as_slice(), &[Requirement::CoreFiles]].concat();
    suite.case(
        "debuggers::gdb_on_the_core_file_of_a_crash",
        crashing,
        gdb_after_a_crash,
    );
    suite.case(
        "debuggers::gdb_at_each_instruction",
        gdb,
        gdb_at_each_instruction,
    );
    let perf = &[Requirement::Root, Requirement::Gcc, Requirement::Perf];
    suite.case("debuggers::perf_by_frame_pointers", perf, || {
        // Optimized, a function that calls nothing has no frame.
        profile("fp", &["-O0"])
    });
    suite.case("debuggers::perf_by_unwind_tables", perf, || {
        profile("dwarf", &["-O2", "-fno-optimize-sibling-calls"])
    });
}

const SYMBOLS: &str = "copies.elf";

fn record(pid: i32, pattern: &str, dir: &Path) -> Result<Recording> {
    record_with(pid, &[pattern], "256K", dir)
}

fn record_with(pid: i32, patterns: &[&str], buffer: &str, dir: &Path) -> Result<Recording> {
    let file = dir.join("symbols.hop");
    let mut record = command_with_buffer(pid, patterns, &file, buffer);
    record.arg("--symbols").arg(dir.join(SYMBOLS));
    Recording::start_command(record, &file)
}

/// A program that waits in copies, and what gives gdb their symbols.
fn waiting(dir: &Path) -> Result<(Held, Recording, String)> {
    waiting_with(dir, "256K")
}

fn waiting_with(dir: &Path, buffer: &str) -> Result<(Held, Recording, String)> {
    let mut held = Held::start_in(dir)?;
    let recording = record_with(held.pid(), &["held-*!*"], buffer, dir)?;
    // Out of the original, and into the copies.
    held.tell("throw")?;
    let add = format!("add-symbol-file {}", dir.join(SYMBOLS).display());
    Ok((held, recording, add))
}

fn gdb(what: &[&str], commands: &[String]) -> Result<String> {
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]).args(what);
    commands
        .iter()
        .for_each(|command| _ = gdb.args(["-ex", command]));
    Ok(run(&mut gdb)?.stdout)
}

/// All of the chain, and the original that began it.
fn expect_frames(said: &str) -> Result<()> {
    let frames = said.lines().filter(|line| line.starts_with('#'));
    let frames: Vec<&str> = frames.collect();
    let of = |name: &str| frames.iter().filter(|frame| frame.contains(name)).count();
    let expected = of("waits") == 1 && of("holds") == 9 && of("catches") == 1;
    ensure!(expected && of(" main ") == 1 && of("??") == 0, "{said}");
    Ok(())
}

fn gdb_in_a_process() -> Result<()> {
    let (held, recording, add) = waiting(&scratch())?;
    let said = gdb(&["-p", &held.pid().to_string()], &[add, "bt".into()])?;
    recording.stop()?;
    expect_frames(&said)
}

fn gdb_on_a_core_file() -> Result<()> {
    let dir = scratch();
    let (held, recording, add) = waiting(&dir)?;
    let (pid, core) = (held.pid().to_string(), dir.join("held.core"));
    let generate = format!("generate-core-file {}", core.display());
    gdb(&["-p", &pid], &[generate])?;
    recording.stop()?;
    let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let (program, core) = (program.to_string_lossy(), core.to_string_lossy());
    let said = gdb(&[&program, &core], &[add, "bt".into()])?;
    expect_frames(&said)
}

/// Written by the kernel: without the rings, which are much larger than the program.
fn gdb_after_a_crash() -> Result<()> {
    let dir = scratch();
    let (held, recording, add) = waiting_with(&dir, "16M")?;
    let pid = held.pid().to_string();
    let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
    let mut limit = Command::new("prlimit");
    run(limit.args(["--pid", &pid, "--core=unlimited"]))?.expect_code(0)?;
    held.crash()?;
    recording.ended()?;
    let core = dir.join("core");
    let bytes = std::fs::metadata(&core).context("no core file")?.len();
    ensure!(bytes < 16 << 20, "{bytes} bytes");
    let said = gdb(
        &[&program.to_string_lossy(), &core.to_string_lossy()],
        &[add, "bt".into()],
    )?;
    expect_frames(&said)
}

/// Of a call in a new thread, whose first probe looks for a ring: what was inserted, also out of line, is in the function.
fn gdb_at_each_instruction() -> Result<()> {
    let program = compile("gcc", &["debuggers/stepped.c"], &["-O2", "-pthread"])?;
    let target = Target::spawn(&mut Command::new(program))?;
    let dir = scratch();
    let recording = record_with(target.pid(), &["inn*", "outer"], "256K", &dir)?;
    let mut commands = vec![
        "set pagination off".to_owned(),
        format!("add-symbol-file {}", dir.join(SYMBOLS).display()),
        "break begins".to_owned(),
    ];
    for _ in 0..counts().pick(1, 4) {
        let steps = "set $left = 420\nwhile $left > 0\nstepi\nbt\nset $left = $left - 1\nend";
        commands.extend(["continue".to_owned(), "set scheduler-locking on".to_owned()]);
        commands.push(steps.to_owned());
        commands.push("set scheduler-locking off".to_owned());
    }
    let script = dir.join("steps.gdb");
    std::fs::write(&script, commands.join("\n"))?;
    let script = script.to_string_lossy();
    let pid = target.pid().to_string();
    let said = gdb(&["-p", &pid, "-x", &script], &[])?;
    recording.stop()?;
    let mut seen = BTreeMap::new();
    for frames in backtraces(&said) {
        let Some(begins) = frames.iter().position(|f| *f == "begins") else {
            // It has returned.
            let left = !frames
                .iter()
                .any(|f| MEASURED.contains(f) || *f == "hopscope_probe");
            ensure!(left, "{frames:?}");
            continue;
        };
        let mut inside: Vec<&str> = frames[..begins].to_vec();
        inside.reverse();
        let chain = MEASURED.iter().take(inside.len()).copied();
        let called = inside.last() == Some(&"hopscope_probe");
        let own = &inside[..inside.len() - usize::from(called)];
        ensure!(chain.take(own.len()).eq(own.iter().copied()), "{frames:?}");
        *seen.entry(inside.join(" ")).or_insert(0) += 1;
    }
    let of = |what: &str| seen.get(what).copied().unwrap_or(0);
    let all = [
        "outer",
        "outer inner",
        "outer inner innermost",
        "outer hopscope_probe",
    ];
    ensure!(all.iter().all(|what| of(what) > 10), "{seen:?}\n{said}");
    Ok(())
}

/// From the outermost on.
const MEASURED: [&str; 3] = ["outer", "inner", "innermost"];

/// Names of frames, from the innermost on.
fn backtraces(said: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = Vec::new();
    for line in said.lines().filter(|line| line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = match words.get(2) {
            Some(&"in") => words.get(3),
            _ => words.get(1),
        };
        if words[0] == "#0" {
            all.push(Vec::new());
        }
        if let (Some(last), Some(name)) = (all.last_mut(), name) {
            last.push(name);
        }
    }
    all
}

/// `perf script --symfs` finds the memfd that copies are in below a folder that has all else by links.
fn symfs(dir: &Path) -> Result<PathBuf> {
    let symbols = dir.join(SYMBOLS);
    let dir = dir.join("symfs");
    std::fs::create_dir_all(&dir)?;
    for entry in std::fs::read_dir("/")? {
        let entry = entry?;
        symlink(entry.path(), dir.join(entry.file_name()))?;
    }
    symlink(symbols, dir.join("memfd:hopscope-code (deleted)"))?;
    Ok(dir)
}

fn profile(how: &str, flags: &[&str]) -> Result<()> {
    let program = compile("gcc", &["debuggers/deep.c"], flags)?;
    let target = Target::spawn(&mut Command::new(program))?;
    let dir = scratch();
    let recording = record(target.pid(), "deep-*!*", &dir)?;
    let data = dir.join("perf.data");
    let mut record = Command::new("perf");
    record.args([
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        "400",
        "--call-graph",
        how,
        "-o",
    ]);
    record
        .arg(&data)
        .args(["-p", &target.pid().to_string(), "--", "sleep", "0.4"]);
    run(&mut record)?.expect_code(0)?;
    recording.stop()?;
    let mut script = Command::new("perf");
    script.args(["script", "-F", "ip,sym", "-i"]).arg(&data);
    script.arg("--symfs").arg(symfs(&dir)?);
    let said = run(&mut script)?.expect_code(0)?.stdout;
    // A thread that is interrupted within a probe is in the function, too.
    let whole = said.split("\n\n").filter(|sample| {
        let mut frames = sample
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        frames.by_ref().any(|f| f == "innermost")
            && frames.next() == Some("inner")
            && frames.next() == Some("outer")
            && frames.next() == Some("main")
    });
    ensure!(whole.count() > 10, "{said}");
    Ok(())
}
