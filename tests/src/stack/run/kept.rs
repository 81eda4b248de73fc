//! The kernel at the stack's end of the cable sees nothing of what is for the stack.
use super::pipeline::instance::Instance;
use super::running::{Server, cable, frames_at, python, words};
use crate::netio::packets_received;
use crate::stack::cable::{STACK, STACK_V6};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target};
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3, Tcx};
    let needs = &[Netns, Tcx, Python3];
    suite.case("stack::run_keeps_packets_from_the_kernel", needs, inline);
    suite.case(
        "stack::pipeline_keeps_packets_from_the_kernel",
        needs,
        pipeline,
    );
}

/// Of neighbours, and of what the kernel says on a new device.
const FEW: u64 = 40;

fn asked(address: &str) -> Result<()> {
    // Both ends of the cable are in one namespace.
    let before = packets_received()?;
    let (sent, came) = (frames_at("near")?, frames_at("far")?);
    // In segments of 64 KiB, which none exceeds, still more than twice `FEW`.
    let client = python("echo_client.py", &["threads", address, "7", "4", "2000000"]);
    run(Command::new(&client[0]).args(&client[1..]))?.expect_code(0)?;
    let seen = packets_received()? - before;
    let (sent, came) = (frames_at("near")? - sent, frames_at("far")? - came);
    ensure!(sent > 2 * FEW, "{sent} frames");
    ensure!(
        seen <= came + FEW,
        "{seen} packets, {came} frames were for it"
    );
    Ok(())
}

fn server(address: &str) -> Vec<String> {
    python("echo_server.py", &["epoll", address, "7", "4"])
}

fn inline() -> Result<()> {
    cable()?;
    for address in [STACK, STACK_V6] {
        let server = Server::start(&words(&server(address)))?;
        asked(address)?;
        server.ends()?;
    }
    Ok(())
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    for address in [STACK, STACK_V6] {
        let server = Target::spawn(&mut instance.run(&[], &words(&server(address))))?;
        asked(address)?;
        ensure!(server.wait()?.success(), "the server failed");
    }
    instance.has_nothing_left().map(drop)
}
