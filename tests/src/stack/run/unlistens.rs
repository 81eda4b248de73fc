//! shutdown(2) of a listener: it is bound and no more, and may listen again, as haproxy's do that pause.
use super::pipeline::instance::Instance;
use super::running::{cable, left_nothing, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK, ip};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_unlistens_as_the_kernel", needs, inline);
    suite.case("stack::pipeline_unlistens_as_the_kernel", needs, pipeline);
}

/// Bound there, and reached there.
const WAYS: [[&str; 2]; 3] = [[STACK, STACK], ["0.0.0.0", STACK], ["0.0.0.0", "127.0.0.1"]];

fn program([address, to]: [&str; 2], own: &str, processes: bool) -> Vec<String> {
    let how = if processes { "processes" } else { "threads" };
    python("unlistens.py", &[address, to, own, how])
}

fn on_the_kernel(processes: bool) -> Result<String> {
    let kernel = program([KERNEL; 2], KERNEL, processes);
    let kernel = run(Command::new(&kernel[0]).args(&kernel[1..]))?;
    Ok(kernel.expect_code(0)?.stdout)
}

fn inline() -> Result<()> {
    cable()?;
    ip("link set lo up")?;
    let kernel = on_the_kernel(false)?;
    for way in WAYS {
        let program = program(way, STACK, false);
        let out = run(&mut on_the_stack(&["--trace"], &words(&program)))?.expect_code(0)?;
        ensure!(out.stdout == kernel, "{way:?}: {}{kernel}", out.stdout);
        left_nothing(&out.stderr)?;
    }
    Ok(())
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    ip("link set lo up")?;
    let kernel = on_the_kernel(true)?;
    for way in WAYS {
        let program = program(way, STACK, true);
        let out = run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
        ensure!(out.stdout == kernel, "{way:?}: {}{kernel}", out.stdout);
    }
    instance.has_nothing_left().map(drop)
}
