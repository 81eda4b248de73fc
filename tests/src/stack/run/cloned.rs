//! Children that no fork of libc's made (vsftpd's clone(2) by number): they are found at their first call.
use super::pipeline::instance::Instance;
use super::running::{cable, on_the_stack};
use crate::stack::cable::STACK;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case("stack::run_knows_cloned_children", needs, inline);
    suite.case("stack::pipeline_knows_cloned_children", needs, pipeline);
}

fn program() -> Result<[String; 2]> {
    let program = compile("gcc", &["stack/run/cloned.c"], &["-O1"])?;
    let program = program.to_str().context("a path in UTF-8")?;
    Ok([program.into(), STACK.into()])
}

/// Each asks the instance by itself, and has its own answers.
fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    let words = program()?;
    let words = words.each_ref().map(String::as_str);
    let out = run(&mut instance.run(&[], &words))?.expect_code(0)?;
    ensure!(out.stdout == "100\n".repeat(4), "{}", out.stdout);
    instance.has_nothing_left().map(drop)
}

/// One process has the stack; the others are told so, as behind fork(3).
fn inline() -> Result<()> {
    cable()?;
    let words = program()?;
    let words = words.each_ref().map(String::as_str);
    let out = run(&mut on_the_stack(&[], &words))?.expect_code(0)?;
    ensure!(out.stdout == "0\n".repeat(4), "{}", out.stdout);
    let said = out
        .stderr
        .matches("another process of this program has the stack");
    ensure!(said.count() == 4, "{}", out.stderr);
    Ok(())
}
