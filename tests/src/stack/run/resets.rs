//! Ends that are resets, and a program that ends without exit(3).
use super::pipeline::instance::Instance;
use super::running::{Server, cable, left_nothing, on_the_stack, python, words};
use crate::stack::cable::STACK;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_resets_as_the_kernel", needs, inline);
    suite.case("stack::pipeline_resets_as_the_kernel", needs, pipeline);
    suite.case("stack::run_ends_by_quick_exit", needs, quick);
}

fn inline() -> Result<()> {
    cable()?;
    let program = python("resets.py", &[STACK]);
    let out = run(&mut on_the_stack(&["--trace"], &words(&program)))?.expect_code(0)?;
    left_nothing(&out.stderr)
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    let program = python("resets.py", &[STACK]);
    run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
    instance.has_nothing_left().map(drop)
}

/// What was sent arrives, and the end.
fn quick() -> Result<()> {
    cable()?;
    for bytes in [300, 200_000] {
        let program = python("quick.py", &[STACK, &bytes.to_string()]);
        let server = Server::start(&words(&program))?;
        let mut stream = TcpStream::connect((STACK, 7))?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(b"request")?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        ensure!(all.len() == bytes, "{} of {bytes} bytes", all.len());
        server.ends()?;
    }
    Ok(())
}
