//! A port is free once the call that closes its socket has returned, as it is in the kernel.
use super::super::running::{python, words};
use super::instance::Instance;
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    suite.case(
        "stack::pipeline_binds_again_at_once",
        &[Netns, Python3],
        binds_again,
    );
}

fn binds_again() -> Result<()> {
    let instance = Instance::start(&[])?;
    let rounds = hopscope_tests::counts().pick("200", "20000");
    let program = |address, port| python("bound_again.py", &[address, port, rounds]);
    let kernel = program(KERNEL, "7001");
    let kernel = run(Command::new(&kernel[0]).args(&kernel[1..]))?.expect_code(0)?;
    for (address, port) in [(STACK, "7002"), ("0.0.0.0", "7003")] {
        let there = program(address, port);
        let there = run(&mut instance.run(&[], &words(&there)))?.expect_code(0)?;
        ensure!(there.stdout == kernel.stdout, "{}", there.stdout);
    }
    instance.has_nothing_left().map(drop)
}
