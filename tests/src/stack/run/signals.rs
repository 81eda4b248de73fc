//! Signals end waits also where their handlers run before these sleep.
use super::running::{cable, on_the_stack};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case("stack::run_hears_signals", needs, heard);
    suite.case("stack::run_hears_signals_within_calls", needs, heard_within);
}

const TIMES: u32 = 40;

/// A signal may come before the call on the kernel's stack, too: those are about as many on both.
fn heard() -> Result<()> {
    cable()?;
    let program = compile("gcc", &["stack/run/interrupted.c"], &["-O2"])?;
    let program = program.to_str().context("a path in UTF-8")?;
    let times = TIMES.to_string();
    let missed = |command: &mut Command| -> Result<[u32; 2]> {
        let out = run(command)?.expect_code(0)?;
        let numbers = out.stdout.split_whitespace().map(str::parse);
        match numbers.collect::<Result<Vec<u32>, _>>()?[..] {
            [by_epoll, by_poll] => Ok([by_epoll, by_poll]),
            _ => bail!("{}", out.stdout),
        }
    };
    let kernels = missed(Command::new(program).args([KERNEL, "7", &times]))?;
    let own = missed(&mut on_the_stack(&[], &[program, STACK, "7", &times]))?;
    let is_near = |(own, kernels): (&u32, &u32)| own < &(kernels + TIMES / 8);
    ensure!(
        own.iter().zip(&kernels).all(is_near),
        "of {TIMES} signals {own:?} did not end epoll_wait, poll; {kernels:?} on the kernel's stack"
    );
    Ok(())
}

/// Of calls that wait by themselves: the program raises them where the library reads the clock.
fn heard_within() -> Result<()> {
    cable()?;
    let program = compile("gcc", &["stack/run/signalled.c"], &["-O1", "-rdynamic"])?;
    let program = program.to_str().context("a path in UTF-8")?;
    let out = run(&mut on_the_stack(&[], &[program, STACK]))?.expect_code(0)?;
    let ended =
        ["recv", "recvmmsg", "accept", "recv"].map(|call| format!("{call}: EINTR, slept on 0"));
    ensure!(out.stdout.lines().eq(ended), "{}", out.stdout);
    Ok(())
}
