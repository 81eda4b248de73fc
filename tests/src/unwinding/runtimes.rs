//! Exceptions of other runtimes than GCC's, and of modules that come and go.
use super::{expect_accepted, unmeasured};
use crate::recording::{Recording, Report};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{
    Requirement, Suite, Target, command::run, compile, hopscope_bin, programs, scratch,
};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    let needed = &[Requirement::Libcpp, Requirement::Gcc];
    suite.case("unwinding::libcpp_with_its_own_unwinder", needed, libcpp);
    suite.case("unwinding::java_virtual_machine", &[Requirement::Jdk], java);
    let gxx = &[Requirement::Gxx, Requirement::Gcc];
    suite.case("unwinding::plug_in_unloaded_meanwhile", gxx, unloaded);
    for name in ["only_table", "library_catches", "forces", "new_arrays"] {
        suite.case(
            format!("unwinding::little_of_its_own_{name}"),
            gxx,
            move || little(name, "g++", &["-O2"]),
        );
    }
    // Its streams let through what a buffer throws.
    for name in ["only_table", "forces", "new_arrays"] {
        let libcpp = format!("unwinding::little_of_its_own_{name}_libcpp");
        suite.case(libcpp, needed, move || {
            little(name, "clang++", &["-O2", "-stdlib=libc++"])
        });
    }
}

fn record(dir: &Path, command: &Path, arguments: &[&str]) -> Result<(String, Report)> {
    let file = dir.join("runtimes.hop");
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "--max-overhead", "1e9"]);
    record.args(["--threads", "1000", "--buffer", "256K", "-o"]);
    record.arg(&file);
    record.args(["-f", "*", "--"]).arg(command).args(arguments);
    let said = run(&mut record)?.expect_code(0)?.stdout;
    let report = Report::read(&file)?;
    report.expect_balanced()?;
    Ok((said, report))
}

const LIBCPP: [&str; 4] = ["-stdlib=libc++", "-O2", "-std=c++17", "-pthread"];

/// LLVM's unwinder asks `dl_iterate_phdr`: what exceptions may pass through is refused, with its name.
fn libcpp() -> Result<()> {
    let program = compile("clang++", &["unwound/libcpp.cpp"], &LIBCPP)?;
    let plain = unmeasured(&program, 20)?;
    let (said, report) = record(&scratch(), &program, &["20"])?;
    ensure!(said == plain, "measured: {said}, not: {plain}");
    for name in ["cleans(long, long)", "rethrows(long)"] {
        let why = report.refused.get(name);
        let why = why.with_context(|| format!("{name} is not refused"))?;
        ensure!(why.contains("libunwind.so.1.0 has an unwinder"), "{why}");
    }
    Ok(())
}

/// Programs that raise, catch and clean up hardly anywhere themselves.
fn little(name: &str, compiler: &str, flags: &[&str]) -> Result<()> {
    let program = compile(compiler, &[&format!("unwound/{name}.cpp")], flags)?;
    let plain = run(&mut Command::new(&program))?.expect_code(0)?.stdout;
    let (said, _) = record(&scratch(), &program, &[])?;
    ensure!(said == plain, "measured: {said}, not: {plain}");
    Ok(())
}

fn java() -> Result<()> {
    let dir = scratch();
    let mut compiler = Command::new("javac");
    let source = programs().join("unwound/Throws.java");
    run(compiler.arg("-d").arg(&dir).arg(source))?.expect_code(0)?;
    let classes = dir.to_string_lossy();
    let arguments = ["-cp", &classes, "Throws"];
    let plain = run(Command::new("java").args(arguments))?.expect_code(0)?;
    let java = run(Command::new("readlink").args(["-f", "/usr/bin/java"]))?.expect_code(0)?;
    let (said, report) = record(&dir, Path::new(java.stdout.trim()), &arguments)?;
    ensure!(
        said == plain.stdout,
        "measured: {said}, not: {}",
        plain.stdout
    );
    expect_accepted(&report)
}

fn unloaded() -> Result<()> {
    let program = compile("g++", &["unwound/unloads.cpp"], &["-O2", "-pthread"])?;
    let plug_in = compile(
        "g++",
        &["unwound/plug_in.cpp"],
        &["-O2", "-shared", "-fPIC"],
    )?;
    let mut start = Command::new(program);
    let start = start
        .arg(plug_in)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut target = Target::spawn(start)?;
    let stdout = target.child().stdout.take().context("its output")?;
    let mut lines = BufReader::new(stdout).lines();
    for _ in 0..hopscope_tests::counts().pick(4, 60) {
        let file = scratch().join("unloads.hop");
        let all = ["unloads-*!*", "plug_in-*!*", "libstdc++.so.6*!*"];
        let recording = Recording::start(target.pid(), &all, &file)?;
        for _ in 0..3 {
            let input = target.child().stdin.as_mut().context("its input")?;
            writeln!(input, "round")?;
            let said = lines.next().context("it ended")??;
            ensure!(said == "18", "{said}");
        }
        recording.stop()?;
        let report = Report::read(&file)?;
        report.expect_balanced()?;
        expect_accepted(&report)?;
        let of_plug_in = report.functions.get("call_back");
        let of_plug_in = of_plug_in.context("the plug-in is not measured")?;
        ensure!(of_plug_in["unwound"] == 1, "{of_plug_in:?}");
    }
    drop(target.child().stdin.take());
    let out = target.output()?;
    ensure!(out.status.success(), "{}", out.status);
    Ok(())
}
