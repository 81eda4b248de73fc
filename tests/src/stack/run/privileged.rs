//! Ports below 1024: who may bind them.
use super::pipeline::instance::Instance;
use super::running::{cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_asks_who_may_bind", needs, inline);
    suite.case("stack::pipeline_asks_who_may_bind", needs, pipeline);
}

fn is_the_kernels(on_the_stack: &mut Command) -> Result<()> {
    let kernel = python("privileged.py", &[KERNEL]);
    let kernel = run(Command::new(&kernel[0]).args(&kernel[1..]))?.expect_code(0)?;
    let refused = kernel.stdout.matches("EACCES").count();
    ensure!(refused == 4, "{}", kernel.stdout);
    let stack = run(on_the_stack)?.expect_code(0)?;
    ensure!(
        stack.stdout == kernel.stdout,
        "{}{}",
        stack.stdout,
        kernel.stdout
    );
    Ok(())
}

fn inline() -> Result<()> {
    cable()?;
    let program = python("privileged.py", &[STACK]);
    is_the_kernels(&mut on_the_stack(&[], &words(&program)))
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    let program = python("privileged.py", &[STACK]);
    is_the_kernels(&mut instance.run(&[], &words(&program)))?;
    instance.has_nothing_left().map(drop)
}
