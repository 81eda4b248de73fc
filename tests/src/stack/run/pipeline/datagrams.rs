//! Sockets of UDP: servers and clients, everywhere and at one address, and the same calls on the kernel's stack.
use super::super::datagram_tools as tools;
use super::super::differential::{Of, the_same_programs};
use super::super::running::{frames, kernel_has_no_datagrams, python, words};
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, KERNEL_V6, STACK, STACK_V6, ip};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, counts};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Dnsmasq, Gcc, Iperf, Netns, Python3};
    suite.case(
        "stack::pipeline_says_where_datagrams_were_sent",
        &[Netns, Python3],
        packet_info,
    );
    for how in ["blocking", "epoll", "asyncio"] {
        let name = format!("stack::pipeline_serves_datagrams_with_python_{how}");
        suite.case(name, &[Netns, Python3], move || serves(how));
    }
    for how in ["client", "client_unconnected", "client_asyncio"] {
        let name = format!("stack::pipeline_sends_datagrams_with_python_{how}");
        suite.case(name, &[Netns, Python3], move || sends(how));
    }
    let needs = &[Netns, Python3];
    suite.case(
        "stack::pipeline_receives_datagrams_everywhere",
        needs,
        everywhere,
    );
    suite
        .case(
            "stack::pipeline_gives_datagrams_what_the_kernel_gives",
            needs,
            the_same,
        )
        .watchdog(3_600);
    suite.case(
        "stack::pipeline_waits_for_datagrams_as_the_kernel_does",
        &[Netns, Gcc],
        waits,
    );
    suite.case(
        "stack::pipeline_carries_names_of_dnsmasq_and_dig",
        &[Netns, Dnsmasq],
        names,
    );
    suite.case(
        "stack::pipeline_carries_datagrams_of_iperf3",
        &[Netns, Iperf],
        iperf,
    );
}

const PORT: &str = "7";

fn count() -> &'static str {
    counts().pick("60", "2000")
}

fn on_the_kernel(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    command
}

/// Clients of the kernel's, of all sizes up to several fragments, by IPv4 and IPv6.
fn serves(how: &str) -> Result<()> {
    let instance = Instance::start(&[])?;
    for address in [STACK, STACK_V6] {
        let before = frames()?;
        let server = python("datagram_echo.py", &[how, address, PORT]);
        let server = Target::spawn(&mut instance.run(&[], &words(&server)))?;
        kernel_has_no_datagrams(7)?;
        let client = ["client", address, PORT, count(), "60000"];
        let client = python("datagram_echo.py", &client);
        let out = run(&mut on_the_kernel(&words(&client)))?;
        ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
        ensure!(server.wait()?.success(), "the server failed");
        ensure!(frames()? > before + 200, "frames: {}", frames()? - before);
    }
    instance.has_nothing_left().map(drop)
}

/// The same, the other way round.
fn sends(how: &str) -> Result<()> {
    let instance = Instance::start(&[])?;
    for address in [KERNEL, KERNEL_V6] {
        let before = frames()?;
        let server = python("datagram_echo.py", &["blocking", address, PORT]);
        let server = Target::spawn(&mut on_the_kernel(&words(&server)))?;
        let client = python("datagram_echo.py", &[how, address, PORT, count(), "60000"]);
        let out = run(&mut instance.run(&[], &words(&client)))?;
        ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
        ensure!(server.wait()?.success(), "the server failed");
        ensure!(frames()? > before + 200, "frames: {}", frames()? - before);
    }
    instance.has_nothing_left().map(drop)
}

/// A socket at every address hears both stacks by one descriptor. Answers go where they belong.
fn everywhere() -> Result<()> {
    let instance = Instance::start(&[])?;
    for (how, local) in [
        ("blocking", "0.0.0.0"),
        ("epoll", "0.0.0.0"),
        ("asyncio", "::"),
    ] {
        let server = python("datagram_echo.py", &[how, local, PORT]);
        let server = Target::spawn(&mut instance.run(&[], &words(&server)))?;
        tools::ask_everywhere(how)?;
        ensure!(server.wait()?.success(), "{how}: the server failed");
    }
    // In the stack alone where that is asked for.
    let server = python("datagram_echo.py", &["blocking", "0.0.0.0", PORT]);
    let server = Target::spawn(&mut instance.run(&["--wildcard=stack"], &words(&server)))?;
    kernel_has_no_datagrams(7)?;
    let client = UdpSocket::bind("0.0.0.0:0")?;
    client.send_to(b"over", (STACK, 7))?;
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left().map(drop)
}

/// Random calls; of events less is compared than of inline's: a pair reports no errors.
fn the_same() -> Result<()> {
    let instance = Instance::start(&[])?;
    ip("link set lo mtu 1500")?;
    // As many errors as there are.
    std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
    std::fs::write("/proc/sys/net/ipv6/icmp/ratelimit", "0")?;
    let on_the_stack = |own: &[&str], program: &[&str]| instance.run(own, program);
    the_same_programs(Of::DatagramsOfPairs, &on_the_stack)?;
    the_same_programs(Of::DatagramsOfPairsV6, &on_the_stack)?;
    instance.has_nothing_left().map(drop)
}

/// What waits for datagrams, many at once, control messages, lengths: a line each.
fn waits() -> Result<()> {
    let instance = Instance::start(&[])?;
    // As the cable's, and as many errors as there are.
    ip("link set lo mtu 1500")?;
    std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
    let program = compile_c(&["stack/run/datagrams.c"], &["-O1", "-pthread"])?;
    let program = program.to_str().context("path")?;
    let mut said = (String::new(), String::new());
    // A thread that comes late on a busy machine, on either stack, waits for what is over.
    for _ in 0..3 {
        let kernel =
            run(&mut on_the_kernel(&[program, KERNEL, KERNEL, "pairs"]))?.expect_code(0)?;
        let stack =
            run(&mut instance.run(&[], &[program, STACK, KERNEL, "pairs"]))?.expect_code(0)?;
        ensure!(kernel.stdout.lines().count() > 30, "{}", kernel.stdout);
        // Of a pair an error is POLLIN.
        said = (
            kernel.stdout.replace("events 8\n", "events 1\n"),
            stack.stdout,
        );
        if said.0 == said.1 {
            return instance.has_nothing_left().map(drop);
        }
    }
    bail!("kernel:\n{}stack:\n{}", said.0, said.1)
}

/// An answer goes out by the stack that the question came in by, as IP_PKTINFO says.
fn packet_info() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = python("packet_info.py", &["7004", "3"]);
    let server = Target::spawn(&mut instance.run(&[], &words(&server)))?;
    let client = UdpSocket::bind("0.0.0.0:0")?;
    client.set_read_timeout(Some(WATCHDOG))?;
    for address in [KERNEL, STACK, "127.0.0.1"] {
        client.send_to(b"?", (address, 7004))?;
        let mut said = [0; 64];
        let (len, from) = client.recv_from(&mut said)?;
        let said = std::str::from_utf8(&said[..len])?;
        ensure!(said == format!("{address} {address}"), "{address}: {said}");
        ensure!(from.ip().to_string() == address, "{address}: {from}");
    }
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    instance.has_nothing_left().map(drop)
}

fn names() -> Result<()> {
    let instance = Instance::start(&[])?;
    tools::names(|on_stack, words| on_either(&instance, on_stack, words))?;
    instance.has_nothing_left().map(drop)
}

fn iperf() -> Result<()> {
    let instance = Instance::start(&[])?;
    tools::iperf(|on_stack, words| on_either(&instance, on_stack, words))?;
    instance.has_nothing_left().map(drop)
}

fn on_either(instance: &Instance, on_stack: bool, words: &[&str]) -> Command {
    match on_stack {
        true => instance.run(&[], words),
        false => on_the_kernel(words),
    }
}
