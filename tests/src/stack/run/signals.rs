//! Signals end waits also where their handlers run before these sleep, and where handlers leave them by longjmp(3).
use super::pipeline::instance::Instance;
use super::running::{cable, left_nothing, on_the_stack};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile};
use std::net::TcpListener;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case("stack::run_hears_signals", needs, heard);
    suite.case("stack::run_hears_signals_within_calls", needs, heard_within);
    suite.case("stack::run_is_left_by_handlers", needs, left);
    suite.case(
        "stack::pipeline_is_left_by_handlers",
        needs,
        left_in_pipeline,
    );
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

/// The program's words, with a server of the kernel's that sends back what it is sent.
fn jumped() -> Result<[String; 3]> {
    let program = compile("gcc", &["stack/run/jumped.c"], &["-O2", "-D_GNU_SOURCE"])?;
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || std::io::copy(&mut &stream, &mut &stream));
        }
    });
    let program = program.to_str().context("a path in UTF-8")?;
    Ok([program.into(), KERNEL.into(), port])
}

fn is_as_the_kernels(words: &[&str], stack: &str) -> Result<()> {
    let kernel = run(Command::new(words[0]).args(&words[1..]))?.expect_code(0)?;
    ensure!(
        stack == kernel.stdout && stack.lines().count() == 16,
        "{stack}{}",
        kernel.stdout
    );
    Ok(())
}

fn left() -> Result<()> {
    cable()?;
    let words = jumped()?;
    let words = words.each_ref().map(String::as_str);
    let out = run(&mut on_the_stack(&["--trace"], &words))?.expect_code(0)?;
    is_as_the_kernels(&words, &out.stdout)?;
    left_nothing(&out.stderr)
}

fn left_in_pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    let words = jumped()?;
    let words = words.each_ref().map(String::as_str);
    let out = run(&mut instance.run(&[], &words))?.expect_code(0)?;
    is_as_the_kernels(&words, &out.stdout)?;
    instance.has_nothing_left().map(drop)
}
