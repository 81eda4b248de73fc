//! Python's ways of waiting: blocking calls in threads, select, poll, epoll, asyncio; as servers and as clients.
use super::super::running::{
    Server, cable, frames, kernel_has_none, on_the_stack, over_the_cable, python, words,
};
use super::side::{End, Mode, Side};
use crate::stack::cable::{KERNEL, KERNEL_V6, STACK, STACK_V6};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::process::Command;

const PORT: &str = "7";

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    for mode in Mode::BOTH {
        for how in ["threads", "select", "poll", "epoll", "asyncio"] {
            let name = format!("{}_serves_with_python_{how}", mode.prefix());
            suite.case(name, needs, move || serves(mode, how));
        }
        for how in ["threads", "asyncio"] {
            let name = format!("{}_connects_with_python_{how}", mode.prefix());
            suite.case(name, needs, move || connects(mode, how));
        }
    }
    for how in ["threads", "poll", "epoll"] {
        let name = format!("stack::run_listens_everywhere_with_python_{how}");
        suite.case(name, needs, move || everywhere(how));
    }
}

/// A socket on every address listens in both: each connection is of the stack that has the address.
fn everywhere(how: &str) -> Result<()> {
    cable()?;
    let server = python("echo_server.py", &[how, "0.0.0.0", PORT, "8"]);
    let server = Server::start(&words(&server))?;
    let before = frames()?;
    let mut over_cable = Vec::new();
    for address in [STACK, "127.0.0.1", STACK, "127.0.0.1"] {
        let client = python("echo_client.py", &["threads", address, PORT, "2", size()]);
        let out = run(Command::new(&client[0]).args(&client[1..]))?;
        ensure!(
            out.code == Some(0),
            "{address}: {}{}",
            out.stdout,
            out.stderr
        );
        over_cable.push(frames()? - before);
    }
    ensure!(
        over_cable[0] > 10 && over_cable[2] > over_cable[1] + 10,
        "{over_cable:?}"
    );
    server.ends()?;
    // In the stack alone where that is asked for.
    let server = python("echo_server.py", &["threads", "0.0.0.0", PORT, "2"]);
    let server = Server::spawn(&mut on_the_stack(
        &["--trace", "--wildcard=stack"],
        &words(&server),
    ))?;
    kernel_has_none(7)?;
    ensure!(
        std::net::TcpStream::connect(("127.0.0.1", 7)).is_err(),
        "connected"
    );
    let client = python("echo_client.py", &["threads", STACK, PORT, "2", size()]);
    let out = run(Command::new(&client[0]).args(&client[1..]))?;
    ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
    server.ends()
}

fn size() -> &'static str {
    counts().pick("300000", "20000000")
}

/// A client over the kernel's TCP, compared byte by byte, by IPv4 and IPv6.
fn serves(mode: Mode, how: &str) -> Result<()> {
    let side = Side::new(mode)?;
    for address in [STACK, STACK_V6] {
        let connections = counts().pick("8", "40");
        let before = frames()?;
        let server = python("echo_server.py", &[how, address, PORT, connections]);
        let server = side.spawns(&mut side.command(&words(&server)), Target::spawn)?;
        kernel_has_none(7)?;
        let client = python(
            "echo_client.py",
            &["threads", address, PORT, connections, size()],
        );
        run(&mut side.command_at(End::Kernel, &words(&client)))?.expect_code(0)?;
        side.ended(server, None)?;
        over_the_cable(before, 100)?;
    }
    side.ends(200)
}

/// Against the same server on the kernel's stack.
fn connects(mode: Mode, how: &str) -> Result<()> {
    let side = Side::new(mode)?;
    for address in [KERNEL, KERNEL_V6] {
        let connections = counts().pick("8", "40");
        let before = frames()?;
        let server = python("echo_server.py", &["threads", address, PORT, connections]);
        let mut server = side.command_at(End::Kernel, &words(&server));
        let server = side.spawns_at(End::Kernel, &mut server, Target::spawn)?;
        let client = python("echo_client.py", &[how, address, PORT, connections, size()]);
        side.runs(&words(&client))?;
        side.ended(server, None)?;
        over_the_cable(before, 100)?;
    }
    side.ends(200)
}
