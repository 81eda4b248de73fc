//! shutdown(2) of a socket that connects: the attempt ends, whoever waits for it hears of that, and another one may begin.
use super::pipeline::instance::Instance;
use super::running::{cable, left_nothing, on_the_stack, python, words};
use crate::stack::cable::KERNEL;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

const NOBODY: &str = "10.0.0.99";

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_disconnects_as_the_kernel", needs, inline);
    suite.case("stack::pipeline_disconnects_as_the_kernel", needs, pipeline);
}

fn program() -> Vec<String> {
    python("disconnects.py", &[NOBODY, KERNEL])
}

fn is_as_the_kernels(program: &[String], stack: &str) -> Result<()> {
    let kernel = run(Command::new(&program[0]).args(&program[1..]))?.expect_code(0)?;
    ensure!(
        stack == kernel.stdout && stack.lines().count() == 19,
        "{stack}{}",
        kernel.stdout
    );
    Ok(())
}

fn inline() -> Result<()> {
    cable()?;
    let program = program();
    let out = run(&mut on_the_stack(&["--trace"], &words(&program)))?.expect_code(0)?;
    is_as_the_kernels(&program, &out.stdout)?;
    left_nothing(&out.stderr)
}

/// The instance is not taken for one that is gone.
fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    let program = program();
    let out = run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
    is_as_the_kernels(&program, &out.stdout)?;
    ensure!(!out.stderr.contains("gone"), "{}", out.stderr);
    instance.has_nothing_left().map(drop)
}
