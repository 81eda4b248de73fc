//! `hopscope bench` as a user runs it: what order, what verdict, what is printed and kept.
mod analyze;
mod compare;
mod counters;
mod coverage;
mod density;
mod html;
mod load;
mod locality;
mod program;
mod propagation;
mod slice;
mod splice;
mod stack;
mod vnet;

use anyhow::{Result, ensure};
use hopscope_tests::{Output, Suite, command, counts, hopscope, repository, scratch, target_dir};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    analyze::register(suite);
    compare::register(suite);
    counters::register(suite);
    coverage::register(suite);
    density::register(suite);
    html::register(suite);
    load::register(suite);
    locality::register(suite);
    program::register(suite);
    propagation::register(suite);
    slice::register(suite);
    splice::register(suite);
    stack::register(suite);
    vnet::register(suite);
}

/// `hopscope bench NAME --quick --json …`, which builds beside everything else that tests build.
fn bench(name: &str, more: &[&str]) -> Result<Output> {
    let builds = build_dir();
    let fixed = [
        "-q",
        "bench",
        name,
        size(),
        "--json",
        "--build-dir",
        &builds,
    ];
    let out = hopscope(&[&fixed[..], more].concat())?;
    let progress = out.stderr.lines().find(|line| line.starts_with("bench: "));
    ensure!(progress.is_none(), "-q: {progress:?}");
    Ok(out)
}

/// Whether a bench works is seen at its least; whether its figures are of something, at more.
fn size() -> &'static str {
    counts().pick("--least", "--quick")
}

fn build_dir() -> String {
    target_dir().join("bench").display().to_string()
}

/// The demo firewall, built.
fn demo() -> Result<String> {
    let source = repository().join("demo");
    let out = scratch().join("demo");
    let build = format!("BUILD={}", out.display());
    let mut make = Command::new("make");
    make.args(["-s", "-C"]).arg(source).arg(build);
    command::run(&mut make)?.expect_code(0)?;
    Ok(out.join("hopscope-demo").display().to_string())
}
