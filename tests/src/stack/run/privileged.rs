//! Ports below 1024: who may bind them.
use super::differential::the_same_of_all;
use super::pipeline::instance::Instance;
use super::running::{cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::Result;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_asks_who_may_bind", needs, inline);
    suite.case("stack::pipeline_asks_who_may_bind", needs, pipeline);
}

fn is_the_kernels(on_the_stack: &mut Command) -> Result<()> {
    let kernel = python("privileged.py", &[KERNEL]);
    the_same_of_all(12, &words(&kernel), on_the_stack)
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
