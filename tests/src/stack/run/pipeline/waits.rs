//! Calls that wait, and events: the same as on the kernel's stack.
use super::super::differential::{
    CALLS_FLAGS, Of, the_same_connects, the_same_edges, the_same_options, the_same_programs,
};
use super::instance::Instance;
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Python3};
    suite.case(
        "stack::pipeline_waits_as_the_kernel_does",
        &[Netns, Gcc],
        waits,
    );
    suite.case(
        "stack::pipeline_calls_as_the_kernel_does",
        &[Netns, Gcc],
        calls,
    );
    for (name, of) in [
        ("programs", Of::Streams(&["pairs"])),
        ("processes", Of::Streams(&["pairs", "shared"])),
        ("threads", Of::Threads(&["pairs"])),
        ("those_that_connect", Of::Opening(&["pairs"])),
    ] {
        let name = format!("stack::pipeline_gives_{name}_what_the_kernel_gives");
        suite
            .case(name, &[Netns, Python3], move || the_same(of))
            .watchdog(3_600);
    }
    suite.case(
        "stack::pipeline_connects_without_waiting",
        &[Netns, Python3],
        connects_without_waiting,
    );
    suite.case(
        "stack::pipeline_tells_edges_as_the_kernel_does",
        &[Netns, Gcc],
        edges,
    );
    suite.case(
        "stack::pipeline_takes_options_as_the_kernel_does",
        &[Netns, Python3],
        options,
    );
}

/// Time-outs, interruptions, cancelled threads, resets, ends of descriptors: a line each.
fn waits() -> Result<()> {
    // A pair of unix(7) that its other end closes is not in error: POLLERR (8) is not there.
    let reset = ("after a reset: poll 19", "after a reset: poll 11");
    the_same_lines("stack/run/waiting.c", &["-O1", "-pthread"], &[reset])
}

/// What few programs call, and what options tell.
fn calls() -> Result<()> {
    the_same_lines("stack/run/calls.c", &CALLS_FLAGS, &[])
}

/// Apart from what is known to differ: the kernel's, and the stack's.
fn the_same_lines(source: &str, flags: &[&str], known: &[(&str, &str)]) -> Result<()> {
    let instance = Instance::start(&[])?;
    let program = compile_c(&[source], flags)?;
    let program = program.to_str().context("path")?;
    let mut said = (String::new(), String::new());
    // A thread that comes late on a busy machine, on either stack, waits for what is over.
    for _ in 0..3 {
        let kernel = run(Command::new(program).arg(KERNEL))?.expect_code(0)?;
        let own = format!("--kernel={STACK}/32");
        let stack = run(&mut instance.run(&[&own], &[program, STACK]))?.expect_code(0)?;
        ensure!(kernel.stdout.lines().count() > 30, "{}", kernel.stdout);
        let mut kernels = kernel.stdout;
        for (kernel, stack) in known {
            kernels = kernels.replace(kernel, stack);
        }
        said = (kernels, stack.stdout);
        if said.0 == said.1 {
            return instance.has_nothing_left().map(drop);
        }
    }
    anyhow::bail!("kernel:\n{}stack:\n{}", said.0, said.1)
}

/// Random calls.
fn the_same(of: Of) -> Result<()> {
    let instance = Instance::start(&[])?;
    let on_the_stack = |own: &[&str], program: &[&str]| instance.run(own, program);
    the_same_programs(of, &on_the_stack)?;
    instance.has_nothing_left().map(drop)
}

/// Not writable before the connection is there; its errors; its first edge.
fn connects_without_waiting() -> Result<()> {
    let instance = Instance::start(&[])?;
    let on_the_stack = |own: &[&str], program: &[&str]| instance.run(own, program);
    the_same_connects(&on_the_stack)?;
    instance.has_nothing_left().map(drop)
}

/// Of sockets at every address.
fn edges() -> Result<()> {
    let instance = Instance::start(&[])?;
    let on_the_stack = |own: &[&str], program: &[&str]| instance.run(own, program);
    the_same_edges(&on_the_stack, &["pairs"], 118)?;
    instance.has_nothing_left().map(drop)
}

/// Of both protocols and families, in all states.
fn options() -> Result<()> {
    let instance = Instance::start(&[])?;
    let on_the_stack = |own: &[&str], program: &[&str]| instance.run(own, program);
    the_same_options(&on_the_stack)?;
    instance.has_nothing_left().map(drop)
}
