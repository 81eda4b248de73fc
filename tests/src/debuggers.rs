//! Debuggers and profilers name measured functions, and what called them, with the file of `record --symbols`.
use crate::recording::{Recording, command_with_buffer};
use crate::unwinding::Held;
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, command::run, compile, scratch};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let gdb = &[Requirement::Gxx, Requirement::Gcc, Requirement::Gdb];
    suite.case("debuggers::gdb_in_a_process", gdb, gdb_in_a_process);
    suite.case("debuggers::gdb_on_a_core_file", gdb, gdb_on_a_core_file);
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
    let file = dir.join("symbols.hop");
    // A core file has the rings, too.
    let mut record = command_with_buffer(pid, &[pattern], &file, "256K");
    record.arg("--symbols").arg(dir.join(SYMBOLS));
    Recording::start_command(record, &file)
}

/// A program that waits in copies, and what gives gdb their symbols.
fn waiting(dir: &Path) -> Result<(Held, Recording, String)> {
    let mut held = Held::start()?;
    let recording = record(held.pid(), "held-*!*", dir)?;
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
