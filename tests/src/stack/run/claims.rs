//! An address of a device is one stack's at a time: another one is refused, and told who has it.
use super::pipeline::instance::{Instance, WATCHDOG};
use super::refused::expect;
use super::running::{cable, on_the_stack};
use crate::stack::cable::{KERNEL, STACK, STACK_V6};
use crate::stack::cable::{Way, files};
use crate::stack::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{hopscope, run};
use hopscope_tests::{Requirement, Suite, Target, hopscope_bin};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns];
    suite.case("stack::run_has_its_addresses_alone", needs, inline);
    suite.case("stack::pipeline_has_its_addresses_alone", needs, pipeline);
    suite.case("stack::run_leaves_addresses_to_its_children", needs, child);
}

/// All that would take one of the addresses too, in one line each.
fn nobody_else_has_them(owner: i32, called: &str) -> Result<()> {
    let owner = format!("process {owner}, {called}");
    let words = [&owner[..], STACK, "near"];
    expect(&mut on_the_stack(&[], &["true"]), &words)?;
    let socket = files().join("another").display().to_string();
    let own = Way::Packet.arguments();
    let serve = [&["stack", "serve", "--socket", &socket], &own[..]].concat();
    hopscope(&serve)?.expect_refusal(&words)?;
    let peer = format!("{KERNEL}:7");
    let connect = [&["stack", "connect", &peer], &own[..]].concat();
    hopscope(&connect)?.expect_refusal(&words)?;
    // One of several is enough.
    let second = format!("--addr={STACK_V6}/64");
    let both = ["stack", "run", "--if=near", "--addr=10.0.0.8/24", &second];
    let mut both_of = Command::new(hopscope_bin());
    expect(
        both_of.args(both).args(["--", "true"]),
        &[&owner, STACK_V6, "near"],
    )?;
    another_address()
}

fn another_address() -> Result<()> {
    let own = ["stack", "run", "--if=near", "--addr=10.0.0.9/24", "--"];
    hopscope(&[&own[..], &["true"]].concat())?
        .expect_code(0)
        .map(drop)
}

fn inline() -> Result<()> {
    cable()?;
    let waits = ["sh", "-c", ": > $READY_FILE; read end"];
    let mut command = on_the_stack(&[], &waits);
    command.stdin(Stdio::piped());
    let mut program = Target::spawn(&mut command)?;
    nobody_else_has_them(program.pid(), "sh")?;
    drop(program.child().stdin.take());
    program.wait()?;
    run(&mut on_the_stack(&[], &["true"]))?
        .expect_code(0)
        .map(drop)
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    nobody_else_has_them(instance.pid(), "hopscope")?;
    // Its programs have none of their own.
    for mode in ["--mode=pipeline", "--mode=auto"] {
        let mut command = Command::new(hopscope_bin());
        command.args(["stack", "run", mode, "--if=near", "--socket"]);
        command.arg(instance.socket()).args(["--", "true"]);
        run(&mut command)?.expect_code(0)?;
    }
    instance.has_nothing_left()?;
    // They are free, also for a server.
    Serving::start(Way::Packet, &["--app=echo"])?
        .stop()
        .map(drop)
}

/// They go with the last process that has the port.
fn child() -> Result<()> {
    cable()?;
    let leaves = ["sh", "-c", "sleep 1000 > /dev/null 2>&1 & echo $!"];
    let out = run(&mut on_the_stack(&[], &leaves))?.expect_code(0)?;
    let child: i32 = out.stdout.trim().parse().context("no number")?;
    let refused = expect(&mut on_the_stack(&[], &["true"]), &[STACK, "near", "ended"]);
    kill(Pid::from_raw(child), Signal::SIGKILL)?;
    refused?;
    let started = Instant::now();
    while run(&mut on_the_stack(&[], &["true"]))?.code != Some(0) {
        ensure!(started.elapsed() < WATCHDOG, "{STACK} is still taken");
    }
    Ok(())
}
