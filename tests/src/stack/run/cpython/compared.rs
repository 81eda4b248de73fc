//! The same tests on either stack at once, and what is not the same.
use super::super::pipeline::instance::{Instance, of_all_engines};
use super::super::running::{cable, left_nothing, on_the_stack};
use super::allowed::{Allowed, What, is_of, read};
use super::lists::{ASYNCIO, PROTOCOLS, SOCKETS, SOME};
use super::verdicts::{Verdicts, kernels, start};
use crate::stack::cable::files;
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// Tests of time that fail on the kernel's stack, too, on a busy machine: more than these are a fault of the run.
const FAIL_AT_MOST: usize = 3;
const TIMES_AGAIN: usize = 2;
/// `--trace` of a socket.
const IS_STACKS: &str = ": stack\n";

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[
        Requirement::Netns,
        Requirement::Python3,
        Requirement::PythonTests,
    ];
    let some = || vec![SOME];
    let run = "stack::run_passes_cpythons_tests";
    suite.case(run, needs, move || inline(&some()));
    let pipeline = "stack::pipeline_passes_cpythons_tests";
    suite.case(pipeline, needs, move || there(&some()));
    for (name, all) in [
        ("sockets", SOCKETS),
        ("protocols", PROTOCOLS),
        ("asyncio", ASYNCIO),
    ] {
        let each = move || all.split(' ').collect::<Vec<_>>();
        let name = format!("cpythons_tests_of_{name}");
        let run = format!("stack::run_passes_{name}");
        suite.case(run, needs, move || inline(&each())).soak();
        let pipeline = format!("stack::pipeline_passes_{name}");
        suite.case(pipeline, needs, move || there(&each())).soak();
    }
}

/// Loopback is the stack's.
fn policy() -> Result<String> {
    let rules = files().join("rules");
    std::fs::write(&rules, "stack address=127.0.0.0/8\nstack address=::1\n")?;
    Ok(format!("--policy={}", rules.display()))
}

fn inline(groups: &[&str]) -> Result<()> {
    cable()?;
    let own = [&policy()?, "--trace"];
    for group in groups {
        let said = compare("inline", group, |program| on_the_stack(&own, program))?;
        // Some only wait for pipes.
        if said.contains(IS_STACKS) {
            left_nothing(&said)?;
        }
    }
    Ok(())
}

fn there(groups: &[&str]) -> Result<()> {
    let instance = Instance::start(&[])?;
    let policy = policy()?;
    for group in groups {
        compare("pipeline", group, |program| {
            instance.run(&[&policy, "--trace"], program)
        })?;
    }
    let summary = instance.has_nothing_left()?;
    let accepted = summary.pointer("/app/accepted").and_then(Value::as_u64);
    let sent = of_all_engines(&summary, "/counters/Tcp/OutSegs")?;
    ensure!(accepted > Some(100) && sent > 1_000, "{summary}");
    Ok(())
}

/// What the stack's run said.
fn compare(mode: &str, group: &str, on: impl Fn(&[&str]) -> Command) -> Result<String> {
    let names: Vec<_> = group.split(' ').collect();
    let mut allowed = read(mode)?;
    allowed.retain(|row| is_of(&row.test, &names));
    let left_out = |what| what == What::LeftOut;
    let out = allowed.iter().filter(|row| left_out(row.what));
    let mut tests: Vec<_> = out.map(|row| format!("-{}", row.test)).collect();
    tests.extend(names.iter().map(ToString::to_string));
    let kernel = start("kernel", &tests, kernels)?;
    let stack = start("stacks", &tests, &on)?.ends()?;
    let kernel = kernel.ends()?;
    is_the_stacks(&kernel, &stack)?;
    let mut wrong = Vec::new();
    let mut fail = Vec::new();
    let all = kernel.of.keys().chain(stack.of.keys());
    for test in all.collect::<BTreeSet<_>>() {
        let (theirs, ours) = (kernel.of.get(test), stack.of.get(test));
        let of_kernel = theirs.map(|of| of.concat()).unwrap_or_default();
        if ["error", "failure"].contains(&of_kernel.as_str()) {
            fail.push(test);
        } else if !is_as_allowed(&allowed, test, [theirs, ours]) {
            wrong.push((test.clone(), format!("kernel {theirs:?}, stack {ours:?}")));
        }
    }
    again(&mut wrong, &allowed, &on)?;
    let there_is = |test: &String| kernel.of.contains_key(test);
    let stale = allowed.iter().filter(|row| !left_out(row.what));
    let stale: Vec<_> = stale.filter(|row| !there_is(&row.test)).collect();
    ensure!(fail.len() <= FAIL_AT_MOST, "on the kernel's: {fail:?}");
    ensure!(wrong.is_empty(), "{wrong:#?}\n{}", stack.said);
    ensure!(stale.is_empty(), "no such tests: {stale:?}");
    println!(
        "{group}: {} tests, {} allowed",
        kernel.of.len(),
        allowed.len()
    );
    Ok(stack.said)
}

fn is_as_allowed(
    allowed: &[Allowed],
    test: &str,
    [theirs, ours]: [Option<&Vec<String>>; 2],
) -> bool {
    match allowed
        .iter()
        .find(|row| row.test == test)
        .map(|row| row.what)
    {
        None => theirs == ours,
        Some(What::Differs) => theirs != ours,
        Some(What::Flaky) => true,
        Some(What::LeftOut) => false,
    }
}

/// Those that are wrong stay, each time: some are about time, and wrong once on a busy machine, on either stack.
fn again(
    wrong: &mut Vec<(String, String)>,
    allowed: &[Allowed],
    on: &impl Fn(&[&str]) -> Command,
) -> Result<()> {
    for _ in 0..TIMES_AGAIN {
        if wrong.is_empty() {
            break;
        }
        let tests: Vec<String> = wrong.iter().map(|(test, _)| test.clone()).collect();
        println!("again: {wrong:?}");
        let kernel = start("kernel", &tests, kernels)?.ends()?;
        let stack = start("stacks", &tests, on)?.ends()?;
        wrong.retain(|(test, _)| {
            let verdicts = [kernel.of.get(test), stack.of.get(test)];
            !is_as_allowed(allowed, test, verdicts)
        });
    }
    Ok(())
}

/// What was on the kernel's loopback there is not on it here.
fn is_the_stacks(kernel: &Verdicts, stack: &Verdicts) -> Result<()> {
    ensure!(
        stack.said.contains(IS_STACKS) || kernel.frames < 10,
        "no socket of the stack: {}",
        stack.said
    );
    ensure!(
        stack.frames <= kernel.frames / 4,
        "{} frames on the kernel's loopback, {} without the stack",
        stack.frames,
        kernel.frames
    );
    Ok(())
}
