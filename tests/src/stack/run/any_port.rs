//! A port that a listener on every address does not name is free in the kernel and in the stack.
use super::pipeline::instance::Instance;
use super::running::{cable, on_the_stack, python, words};
use crate::stack::cable::STACK;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_listens_at_any_port", needs, || {
        cable()?;
        listens(on_the_stack)
    });
    suite.case("stack::pipeline_listens_at_any_port", needs, || {
        let instance = Instance::start(&[])?;
        listens(|own, program| instance.run(own, program))?;
        instance.has_nothing_left().map(drop)
    });
}

/// Of the 28,232 ports that Linux chooses from, 1,500 are those of connections that are over: 16 of 300 listeners would not get theirs.
fn listens(on: impl Fn(&[&str], &[&str]) -> Command) -> Result<()> {
    let program = python("any_port.py", &[STACK, "1500", "300"]);
    let out = run(&mut on(&[], &words(&program)))?.expect_code(0)?;
    ensure!(out.stdout == "refused 0\n", "{}{}", out.stdout, out.stderr);
    Ok(())
}
