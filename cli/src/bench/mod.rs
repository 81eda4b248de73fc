//! `hopscope bench`: `compare` runs here, all else is a program of its own, `hopscope-bench`.
use anyhow::{Context, bail};
pub use hopscope_bench_flags::BenchArgs;
use hopscope_bench_flags::{Bench, Compare};
use hopscope_compare::commands;
use hopscope_compare::output::Output;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAM: &str = "hopscope-bench";

pub fn run(args: BenchArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    match args.bench {
        Bench::Compare(args) => compare(&args, quiet),
        _ => start(words(std::env::args_os().skip(1))),
    }
}

/// All but `bench` itself: `hopscope -q bench NAME` is `hopscope-bench -q NAME`.
fn words(all: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut is_named = false;
    all.filter(move |word| {
        let names_it = !is_named && word == "bench";
        is_named |= names_it;
        !names_it
    })
}

fn compare(args: &Compare, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut stdout = std::io::stdout();
    let common = &args.common;
    let output = Output::new("compare", &mut stdout, common.json, common.save.as_deref())?;
    let expected = commands::run(&args.compared(quiet), output)?;
    Ok(ExitCode::from(if expected { 0 } else { 1 }))
}

/// Becomes the program that lies beside this one, or is found in PATH: stdio, signals and the exit code are its own.
fn start(words: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let own = std::env::current_exe().context("cannot find the path of this program")?;
    let beside = own.with_file_name(PROGRAM);
    let program = if beside.exists() {
        beside
    } else {
        PathBuf::from(PROGRAM)
    };
    // What it measures unless --hopscope names another one.
    let error = Command::new(program)
        .args(words)
        .env("HOPSCOPE", own)
        .exec();
    if error.kind() == ErrorKind::NotFound {
        bail!(
            "the benches are a program of their own, {PROGRAM}, which is neither beside hopscope nor in PATH; \
             install it from hopscope's source tree: make install"
        );
    }
    Err(error).with_context(|| format!("cannot start {PROGRAM}"))
}
