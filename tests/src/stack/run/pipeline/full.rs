//! Connections that are full when their program ends: what nobody will ever read keeps nothing.
use super::super::running::{python, words};
use super::instance::Instance;
use crate::stack::cable::{STACK, STACK_V6};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::pipeline_keeps_nothing_of_the_full", needs, full);
}

fn full() -> Result<()> {
    let instance = Instance::start(&[])?;
    for address in [STACK, STACK_V6] {
        for how in ["itself", "each other", "one way"] {
            let program = python("full.py", &[address, how]);
            run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
        }
        let program = python("full.py", &[address, "read"]);
        let out = run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
        ensure!(out.stdout.trim() == "all", "{}", out.stdout);
    }
    instance.has_nothing_left().map(drop)
}
