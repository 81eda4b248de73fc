//! Exceptions and the ends of threads pass through plain C as they did before: copies have unwind tables, and where
//! unwinders cannot be given them, what could be unwound is refused, by the name of who does it.
use crate::recording::{Recording, Report, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{
    Requirement, Suite, Target, command::run, compile, hopscope, hopscope_bin, scratch,
};
use nix::sys::signal::Signal;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gxx = &[Requirement::Gxx, Requirement::Gcc];
    suite.case("unwound::through_plain_c", gxx, through_plain_c);
    suite.case(
        "unwound::where_nobody_can_be_answered",
        gxx,
        where_nobody_can_be_answered,
    );
    suite.case("unwound::assumed_not_to_be", gxx, assumed_not_to_be);
    let gcc = &[Requirement::Gcc];
    suite.case("unwound::backtraces_of_plain_c", gcc, backtraces);
    suite.case("unwound::clean_ups_of_plain_c", gcc, clean_ups);
    suite.case("unwound::left_for_good", gcc, left_for_good);
    suite.case("unwound::plug_in_loaded_later", gxx, plug_in_loaded_later);
    suite.case("unwound::plug_in_not_looked_at", gxx, plug_in_not_looked_at);
}

const SHARED: [&str; 3] = ["-O1", "-fPIC", "-shared"];

fn start() -> Result<Target> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let thrower = text(compile("g++", &["unwound/thrower.cpp"], &SHARED)?);
    let flags = [&SHARED[..], &["-fno-optimize-sibling-calls", &thrower]].concat();
    let middle = text(compile("gcc", &["unwound/middle.c"], &flags)?);
    let flags = ["-O1", "-pthread", &middle, &thrower];
    let program = compile("g++", &["unwound/unwound.cpp"], &flags)?;
    Target::spawn(Command::new(program).stdout(Stdio::piped()))
}

/// What goes to another stack and does not come back is refused, whatever it is called: its jump is no call's end.
fn left_for_good() -> Result<()> {
    let flags = ["-O2", "-D_FORTIFY_SOURCE=2"];
    let program = compile("gcc", &["unwound/leaves_for_good.c"], &flags)?;
    let file = scratch().join("left-for-good.hop");
    let recorded = |patterns: &[&str]| {
        let mut record = Command::new(hopscope_bin());
        record.args(["record", "--no-calibration", "-o"]).arg(&file);
        for pattern in patterns {
            record.args(["-f", pattern]);
        }
        run(record.arg("--").arg(&program))?.expect_code(0)
    };
    // Of a few that are refused for one reason the names are said.
    let out = recorded(&["leaves_work", "goes_by_memory"])?;
    ensure!(out.stderr.contains("!goes_by_memory)"), "{out:?}");
    recorded(&["leaves_work", "goes_*", "*longjmp*"])?;
    let report = Report::read(&file)?;
    let of = &report.functions["leaves_work"];
    // Nothing comes after the last that could show its end.
    let ended = of["unwound"] + of["open_at_end"];
    ensure!((of["entries"], ended) == (300, 300), "{of:?}");
    for name in ["goes_by_registers", "goes_by_memory"] {
        let why = report.refused.get(name);
        let why = why.with_context(|| format!("{name} is measured"))?;
        ensure!(why.contains("not at all"), "{name}: {why}");
    }
    let refused = &report.refused;
    ensure!(!refused.contains_key("goes_and_comes_back"), "{refused:?}");
    let summary = report.summary.to_string();
    ensure!(summary.contains("\"ends_open_at_start\":0,"), "{summary}");
    report.expect_balanced()
}

fn through_plain_c() -> Result<()> {
    let target = start()?;
    let file = scratch().join("unwound.hop");
    let mut record = command(target.pid(), &["middle-*!*", "libc.so.6!qsort_r"], &file);
    run(record.args(["-d", "200ms"]))?.expect_code(0)?;
    let report = Report::read(&file)?;
    let unwound = [
        "through_the_table",
        "through_another",
        "through_libc",
        "waits",
        "leaves",
        "qsort_r",
    ];
    for name in unwound {
        let of = report.functions.get(name);
        let of = of.with_context(|| format!("{name}: {:?}", report.refused.get(name)))?;
        // A thread that ends leaves its calls open.
        ensure!(of["unwound"] + of["open_at_end"] > 0, "{name}: {of:?}");
    }
    ensure!(report.entries("adds") > 0, "{:?}", report.refused);
    report.expect_balanced()?;
    ends_right(target)
}

/// What [`start`] and `ways` say when nothing went wrong.
fn ends_right(target: Target) -> Result<()> {
    target.signal(Signal::SIGTERM)?;
    let out = target.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    let right = said.ends_with(" 0 wrong\n");
    ensure!(out.status.success() && right, "{}: {said}", out.status);
    Ok(())
}

/// A static program whose unwinder asks what has no name: what could be unwound is refused, by the name of who does it.
fn where_nobody_can_be_answered() -> Result<()> {
    let middle = ["-O1", "-c", "-fexceptions", "-fno-optimize-sibling-calls"];
    let middle = compile("gcc", &["unwound/middle.c"], &middle)?;
    let middle = middle.to_string_lossy();
    let flags = ["-O1", "-static", "-pthread", &middle];
    let sources = ["unwound/unwound.cpp", "unwound/thrower.cpp"];
    let built = compile("g++", &sources, &flags)?;
    let program = scratch().join("nameless");
    let mut strip = Command::new("objcopy");
    let strip = strip
        .args(["-N", "_dl_find_object"])
        .arg(built)
        .arg(&program);
    run(strip)?.expect_code(0)?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let file = scratch().join("nameless.hop");
    let mut record = command(target.pid(), &["nameless!*"], &file);
    run(record.args(["-d", "200ms"]))?.expect_code(0)?;
    let report = Report::read(&file)?;
    for (name, expected) in [
        ("through_the_table", "raises exceptions"),
        ("through_another", "raises exceptions"),
        ("waits", "may be unwound"),
        ("leaves", "may be unwound"),
    ] {
        let reason = report.refused.get(name);
        let reason = reason.with_context(|| format!("{name} is not refused"))?;
        ensure!(reason.contains(expected), "{name} is refused: {reason}");
    }
    ensure!(
        report.functions.keys().any(|n| n.starts_with("adds")),
        "{:?}",
        report.refused
    );
    ends_right(target)
}

/// Nothing is unwound there, and `backtrace` sees all frames.
fn backtraces() -> Result<()> {
    let program = compile("gcc", &["unwound/walks.c"], &["-O2"])?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let file = scratch().join("walks.hop");
    let mut record = command(target.pid(), &["walks-*!*"], &file);
    run(record.args(["-d", "200ms"]))?.expect_code(0)?;
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    for name in ["innermost", "inner", "outer"] {
        ensure!(report.entries(name) > 0, "{name}: {:?}", report.refused);
    }
    ends_right(target)
}

/// The C library's functions with clean-ups are measured in programs in which nothing raises, too.
fn clean_ups() -> Result<()> {
    let program = compile("gcc", &["unwound/walks.c"], &["-O2"])?;
    let target = Target::spawn(Command::new(program).stdout(Stdio::piped()))?;
    let file = scratch().join("clean-ups.hop");
    let mut record = command(target.pid(), &["libc.so.6!*"], &file);
    run(record.args(["-d", "200ms"]))?.expect_code(0)?;
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    let refused = report
        .refused
        .iter()
        .find(|(_, why)| why.contains("landing pads"));
    ensure!(refused.is_none(), "{refused:?}");
    ends_right(target)
}

/// The user may know better; the recording says that it was so.
fn assumed_not_to_be() -> Result<()> {
    let plug_in = compile("g++", &["unwound/plug_in.cpp"], &SHARED)?;
    let program = compile("gcc", &["unwound/loads.c"], &["-O1", "-rdynamic"])?;
    let mut start = Command::new(program);
    let target = Target::spawn(start.arg(plug_in).stdin(Stdio::piped()))?;
    let file = scratch().join("assumed.hop");
    let mut record = command(target.pid(), &["loads-*!through"], &file);
    record.arg("--assume-no-exceptions");
    let summary = Recording::start_command(record, &file)?.stop()?;
    let notes = summary["notes"].to_string();
    ensure!(notes.contains("--assume-no-exceptions"), "{summary}");
    Ok(())
}

/// What was safe at the attach is not when a module that raises comes later: the recording ends.
fn plug_in_loaded_later() -> Result<()> {
    let plug_in = compile("g++", &["unwound/plug_in.cpp"], &SHARED)?;
    let program = compile("gcc", &["unwound/loads.c"], &["-O1", "-rdynamic"])?;
    let mut start = Command::new(program);
    let mut target = Target::spawn(start.arg(plug_in).stdin(Stdio::piped()))?;
    let file = scratch().join("later.hop");
    let mut record = command(target.pid(), &["loads-*!through"], &file);
    record.stderr(Stdio::piped());
    let recording = Recording::start_command(record, &file)?;
    let mut input = target.child().stdin.take().context("its input")?;
    input.write_all(b"load\n")?;
    let (code, said) = recording.ended()?;
    ensure!(code == Some(1), "{code:?}: {said}");
    let info = hopscope(&["info", file.to_str().context("a path")?])?.expect_code(0)?;
    ensure!(info.stdout.contains("raises exceptions"), "{}", info.stdout);
    input.write_all(b"call\n")?;
    ensure!(target.wait()?.success());
    Ok(())
}

/// A plug-in that the dynamic loader loads and that is not read here: too few of its bytes are on disk.
fn plug_in_not_looked_at() -> Result<()> {
    let plug_in = compile("g++", &["unwound/plug_in.cpp"], &SHARED)?;
    let folder = scratch();
    let sparse = folder.join("sparse.so");
    std::fs::copy(&plug_in, &sparse)?;
    let longer = std::fs::OpenOptions::new().write(true).open(&sparse)?;
    longer.set_len(1 << 30)?;
    let program = compile("gcc", &["unwound/loads.c"], &["-O1", "-rdynamic"])?;
    let mut start = Command::new(program);
    let start = start.args([&sparse, &plug_in]).stdin(Stdio::piped());
    let mut target = Target::spawn(start)?;
    let file = folder.join("not-looked-at.hop");
    let mut record = command(target.pid(), &["loads-*!through"], &file);
    record.stderr(Stdio::piped());
    let recording = Recording::start_command(record, &file)?;
    let mut input = target.child().stdin.take().context("its input")?;
    // The second one ends the recording, at a look that found the first one too.
    input.write_all(b"load\nload\n")?;
    let (code, said) = recording.ended()?;
    ensure!(code == Some(1), "{code:?}: {said}");
    let path = file.to_str().context("a path")?;
    for words in [&["info", path][..], &["info", path, "--json"]] {
        let info = hopscope(words)?.expect_code(0)?.stdout;
        let told = info.matches("1 modules loaded while recording were not looked at");
        ensure!(told.count() == 1 && info.contains("sparse"), "{info}");
    }
    input.write_all(b"call\n")?;
    ensure!(target.wait()?.success());
    Ok(())
}
