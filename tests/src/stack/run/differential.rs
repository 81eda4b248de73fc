//! The same random socket calls on the kernel's stack and on ours: each gives the same, epoll's events included.
use super::running::{cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c, counts};
use std::collections::BTreeSet;
use std::process::Command;

/// Milliseconds that the far end gets after each call. What differs is tried again with more: a machine is busy, and an acknowledgement may
/// be delayed by 40 ms.
const PATIENCE: [&str; 3] = ["3", "60", "200"];

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite
        .case(
            "stack::run_gives_programs_what_the_kernel_gives",
            needs,
            the_same,
        )
        .watchdog(1_800);
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case("stack::run_waits_as_the_kernel_does", needs, waits);
}

/// Time-outs, interruptions, cancelled threads, resets, ends of descriptors: a line each.
fn waits() -> Result<()> {
    cable()?;
    let program = compile_c(&["stack/run/waiting.c"], &["-O1", "-pthread"])?;
    let program = program.to_str().context("path")?;
    let mut said = (String::new(), String::new());
    // A thread that comes late on a busy machine, on either stack, waits for what is over.
    for _ in 0..3 {
        let kernel = run(Command::new(program).arg(KERNEL))?.expect_code(0)?;
        let stack = run(&mut on_the_stack(
            &["--kernel=10.0.0.2/32"],
            &[program, STACK],
        ))?;
        let stack = stack.expect_code(0)?;
        ensure!(kernel.stdout.lines().count() > 30, "{}", kernel.stdout);
        said = (kernel.stdout, stack.stdout);
        if said.0 == said.1 {
            return Ok(());
        }
    }
    bail!("kernel:\n{}stack:\n{}", said.0, said.1)
}

/// A line for each call of `programs` from `first` on.
fn lines(on_stack: bool, first: u64, programs: u64, patience: &str) -> Result<Vec<String>> {
    let (first, programs) = (first.to_string(), programs.to_string());
    let address = if on_stack { STACK } else { KERNEL };
    let program = python("differential.py", &[address, &first, &programs, patience]);
    let out = run(&mut match on_stack {
        // The connecting ends are the kernel's.
        true => on_the_stack(&["--kernel=10.0.0.2/32"], &words(&program)),
        false => {
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]);
            command
        }
    })?;
    ensure!(out.code == Some(0), "{:?}: {}", out.code, out.stderr);
    Ok(out.stdout.lines().map(str::to_owned).collect())
}

/// Programs whose lines differ, and the first of those lines.
fn differing(first: u64, programs: u64, patience: &str) -> Result<BTreeSet<(u64, String)>> {
    let kernel = lines(false, first, programs, patience)?;
    let stack = lines(true, first, programs, patience)?;
    ensure!(
        kernel.len() > 4 * programs as usize,
        "only {} lines",
        kernel.len()
    );
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (kernel, stack) in kernel
        .iter()
        .zip(&stack)
        .filter(|(kernel, stack)| kernel != stack)
    {
        let seed = kernel.split(' ').next().unwrap_or_default().parse()?;
        if seen.insert(seed) {
            found.insert((seed, format!("kernel: {kernel}\nstack:  {stack}")));
        }
    }
    ensure!(
        kernel.len() == stack.len(),
        "{} and {} lines",
        kernel.len(),
        stack.len()
    );
    Ok(found)
}

fn the_same() -> Result<()> {
    cable()?;
    let programs = counts().pick(60, 5_000);
    let mut left = differing(1, programs, PATIENCE[0])?;
    for patience in &PATIENCE[1..] {
        let mut still = BTreeSet::new();
        for (seed, _) in left {
            still.extend(differing(seed, 1, patience)?);
        }
        left = still;
    }
    let shown: Vec<&str> = left.iter().map(|(_, lines)| lines.as_str()).collect();
    ensure!(
        left.is_empty(),
        "{} of {programs} programs:\n{}",
        left.len(),
        shown.join("\n")
    );
    Ok(())
}
