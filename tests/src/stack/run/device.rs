//! A device that goes down, or is deleted, while a program's stack is on it.
use super::running::{Server, WATCHDOG, cable, python, until, words};
use crate::stack::cable::{STACK, ip};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case(
        "stack::run_goes_on_when_its_device_is_up_again",
        needs,
        down,
    );
    suite.case("stack::run_says_that_its_device_is_gone", needs, gone);
}

/// A program that waits in accept.
fn waits() -> Result<Server> {
    cable()?;
    let program = python("echo_server.py", &["threads", STACK, "7", "1"]);
    Server::start(&words(&program))
}

/// Once.
fn says(server: &Server, what: &str) -> Result<()> {
    until(what, || Ok(server.said()?.contains(what)))?;
    let said = server.said()?;
    ensure!(said.matches(what).count() == 1, "{said}");
    Ok(())
}

fn down() -> Result<()> {
    let server = waits()?;
    ip("link set near down")?;
    says(
        &server,
        "near is down: `ip link set near up`; nothing comes",
    )?;
    ip("link set near up")?;
    says(&server, "near is up again")?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    stream.write_all(b"echo")?;
    stream.shutdown(Shutdown::Write)?;
    let mut back = String::new();
    stream.read_to_string(&mut back)?;
    ensure!(back == "echo", "{back:?}");
    drop(stream);
    server.ends()
}

/// The program is left as it is.
fn gone() -> Result<()> {
    let server = waits()?;
    ip("link del near")?;
    let what = "near was deleted while it was in use; the program's connections end by their own";
    says(&server, what)
}
