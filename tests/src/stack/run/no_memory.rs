//! Programs whose malloc(3) has nothing any more.
use super::pipeline::instance::Instance;
use super::running::{cable, on_the_stack, words};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case("stack::run_goes_on_without_memory", needs, inline);
    suite.case("stack::pipeline_goes_on_without_memory", needs, pipeline);
}

/// `no_memory OWN PEER PORT`
fn program(own: &str) -> Result<Vec<String>> {
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut stream, mut bytes) = (stream, [0; 4]);
                while stream.read_exact(&mut bytes).is_ok() {
                    let _ = stream.write_all(&bytes);
                }
            });
        }
    });
    let program = compile_c(&["stack/run/no_memory.c"], &["-O1"])?;
    let program = program.to_str().context("path")?;
    Ok([program, own, KERNEL, &port.to_string()]
        .map(String::from)
        .into())
}

/// What was connected before goes on, and most else; nothing ends the program, and the end of the library's own memory is said.
fn goes_on(on_the_stack: &mut Command) -> Result<()> {
    let out = run(on_the_stack)?.expect_code(0)?;
    let done = out.stdout.split(' ').nth(2).context("a count")?;
    ensure!(done.parse::<u32>()? > 200, "{}{}", out.stdout, out.stderr);
    ensure!(out.stdout.contains(" 1 refused, 0 other"), "{}", out.stdout);
    let said = out.stderr.matches("no memory left").count();
    ensure!(said == 1, "{}", out.stderr);
    Ok(())
}

fn inline() -> Result<()> {
    cable()?;
    let on_kernel = program(KERNEL)?;
    run(Command::new(&on_kernel[0]).args(&on_kernel[1..]))?.expect_code(0)?;
    goes_on(&mut on_the_stack(&[], &words(&program(STACK)?)))
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    goes_on(&mut instance.run(&[], &words(&program(STACK)?)))?;
    instance.has_nothing_left().map(drop)
}
