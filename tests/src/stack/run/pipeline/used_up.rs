//! A program that has used up its descriptors may bind, listen and connect, as on the kernel's stack.
use super::super::running::{python, words};
use super::instance::Instance;
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    suite.case(
        "stack::pipeline_connects_without_a_free_descriptor",
        &[Requirement::Netns, Requirement::Python3],
        used_up,
    );
}

fn used_up() -> Result<()> {
    let instance = Instance::start(&[])?;
    let kernel = python("used_up.py", &[KERNEL]);
    let kernel = run(Command::new(&kernel[0]).args(&kernel[1..]))?.expect_code(0)?;
    let program = python("used_up.py", &[STACK]);
    let out = run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
    ensure!(
        out.stdout == kernel.stdout,
        "{}{}",
        out.stdout,
        kernel.stdout
    );
    instance.has_nothing_left().map(drop)
}
