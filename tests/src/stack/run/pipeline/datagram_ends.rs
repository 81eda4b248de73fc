//! Sockets of UDP in several processes, at their ends, and in hostile hands.
use super::super::running::{python, words};
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    for (name, test) in [
        ("gives_each_datagram_to_one_process", workers as fn() -> _),
        ("hands_on_sockets_of_datagrams", passed),
        ("frees_ports_of_datagrams", closed),
        ("frees_ports_of_the_killed", killed),
        ("drops_datagrams_that_nobody_reads", unread),
        ("tells_of_refused_datagrams", refused),
        ("says_that_datagrams_are_gone", gone),
        ("withstands_hostile_datagrams", hostile),
    ] {
        suite.case(format!("stack::pipeline_{name}"), needs, test);
    }
}

fn program(instance: &Instance, how: &str) -> Command {
    let program = python("datagram_ends.py", &[how, STACK, KERNEL]);
    let mut command = instance.run(&[], &words(&program));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn client() -> Result<UdpSocket> {
    let client = UdpSocket::bind((KERNEL, 0))?;
    client.set_read_timeout(Some(WATCHDOG))?;
    client.connect((STACK, 7))?;
    Ok(client)
}

fn asks(client: &UdpSocket, text: &[u8]) -> Result<Vec<u8>> {
    client.send(text)?;
    let mut back = [0; 1000];
    let len = client.recv(&mut back)?;
    Ok(back[..len].to_vec())
}

fn workers() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = Target::spawn(&mut program(&instance, "workers"))?;
    let client = client()?;
    let mut who = BTreeSet::new();
    for _ in 0..200 {
        who.insert(asks(&client, b"who?")?);
    }
    // One answer for each question.
    client.set_nonblocking(true)?;
    ensure!(client.recv(&mut [0; 10]).is_err(), "two have answered");
    client.set_nonblocking(false)?;
    ensure!(!who.is_empty() && who.len() <= 4, "{who:?}");
    for _ in 0..4 {
        ensure!(asks(&client, b"over")? == b"over");
    }
    ensure!(server.wait()?.success(), "the server failed");
    let summary = instance.has_nothing_left()?;
    ensure!(summary["app"]["datagrams_received"] == 204, "{summary}");
    Ok(())
}

fn passed() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = Target::spawn(&mut program(&instance, "passed"))?;
    ensure!(asks(&client()?, b"there?")? == b"there?");
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left().map(drop)
}

fn closed() -> Result<()> {
    let instance = Instance::start(&[])?;
    let out = run(&mut program(&instance, "closed"))?.expect_code(0)?;
    ensure!(out.stdout.contains("done"), "{}", out.stdout);
    instance.has_nothing_left().map(drop)
}

/// All of its processes: nobody has the port then, and its sender hears so.
fn killed() -> Result<()> {
    let instance = Instance::start(&[])?;
    let mut server = Target::spawn(&mut program(&instance, "unread"))?;
    let client = client()?;
    client.send(b"to nobody")?;
    server.child().kill()?;
    let _ = server.wait()?;
    client.set_nonblocking(true)?;
    let started = std::time::Instant::now();
    loop {
        let sent = client.send(b"somebody?");
        if sent.is_err_and(|error| error.raw_os_error() == Some(111)) {
            break;
        }
        ensure!(started.elapsed() < WATCHDOG, "somebody has the port");
    }
    instance.has_nothing_left().map(drop)
}

fn counter(instance: &Instance, name: &str) -> Result<u64> {
    let stats = instance.stats()?;
    let value = stats.pointer(&format!("/engines/0/counters/Udp/{name}"));
    value
        .and_then(Value::as_u64)
        .with_context(|| stats.to_string())
}

/// Those for which there is no room are counted, and the instance does not grow.
fn unread() -> Result<()> {
    const SENT: u64 = 20_000;
    let instance = Instance::start(&[])?;
    let mut server = Target::spawn(&mut program(&instance, "unread"))?;
    let before = instance.resident_kib()?;
    let client = client()?;
    for _ in 0..SENT {
        client.send(&[7; 1400])?;
    }
    let arrived = |name| counter(&instance, name);
    let started = std::time::Instant::now();
    let mut seen = 0;
    loop {
        let now = arrived("InDatagrams")? + arrived("RcvbufErrors")?;
        // What the cable had no room for does not come.
        if now == seen && now > 1_000 {
            break;
        }
        seen = now;
        ensure!(started.elapsed() < WATCHDOG, "{now} have come");
    }
    let dropped = arrived("RcvbufErrors")?;
    ensure!(dropped > 1_000, "{dropped} dropped of {seen}");
    let grown = instance.resident_kib()?.saturating_sub(before);
    ensure!(grown < 4_096, "{grown} KiB more");
    // What was not dropped is read, and each of it once.
    let taken = arrived("InDatagrams")?;
    let mut input = server.child().stdin.take().context("piped")?;
    writeln!(input, "{taken}")?;
    let out = server.output()?;
    ensure!(out.status.success() && out.stdout == b"done\n", "{out:?}");
    let summary = instance.has_nothing_left()?;
    ensure!(
        summary["app"]["datagrams_received"] == taken,
        "{taken}: {summary}"
    );
    Ok(())
}

fn refused() -> Result<()> {
    let instance = Instance::start(&[])?;
    std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")?;
    let out = run(&mut program(&instance, "refused"))?.expect_code(0)?;
    let said = out.stdout.trim();
    let expected =
        "[1, 'ECONNREFUSED', [], 1, 'ECONNREFUSED', 0, 'ECONNREFUSED', 1, 1, 'ECONNREFUSED', []]";
    ensure!(said == expected, "{said}");
    instance.has_nothing_left().map(drop)
}

fn gone() -> Result<()> {
    let instance = Instance::start(&[])?;
    let peer = UdpSocket::bind((KERNEL, 9))?;
    let mut command = program(&instance, "orphan");
    command.stderr(Stdio::piped());
    let program = Target::spawn(&mut command)?;
    kill(Pid::from_raw(instance.pid()), Signal::SIGKILL)?;
    let out = program.output()?;
    let said = String::from_utf8(out.stdout)?;
    let errors = String::from_utf8(out.stderr)?;
    ensure!(out.status.success(), "{}: {errors}", out.status);
    for result in [
        "receives ENETDOWN",
        "hears ENETDOWN",
        "sends ENETDOWN",
        "answers ENETDOWN",
        "opens ENETDOWN",
        "waits []",
    ] {
        ensure!(said.contains(result), "{result}: {said}");
    }
    ensure!(errors.lines().count() == 1, "{errors}");
    ensure!(errors.contains("gone"), "{errors}");
    drop(peer);
    Ok(())
}

/// What is no datagram is counted, and nothing leaves by an address that the stack has not.
fn hostile() -> Result<()> {
    let instance = Instance::start(&[])?;
    let peer = UdpSocket::bind((KERNEL, 9))?;
    peer.set_read_timeout(Some(WATCHDOG))?;
    let mut server = Target::spawn_now(&mut program(&instance, "hostile"))?;
    let mut text = [0; 100];
    let (len, from) = peer.recv_from(&mut text)?;
    ensure!(&text[..len] == b"honest", "{:?}", &text[..len]);
    ensure!(from.to_string() == format!("{STACK}:7"), "{from}");
    let mut output = BufReader::new(server.child().stdout.take().context("piped")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    ensure!(line.trim() == "done", "{line}");
    let client = client()?;
    ensure!(asks(&client, b"there?")? == b"there?");
    ensure!(server.wait()?.success(), "the program failed");
    let summary = instance.has_nothing_left()?;
    let count = |name: &str| summary["app"][name].as_u64().unwrap_or(0);
    ensure!(count("datagrams_malformed") > 800, "{summary}");
    ensure!(count("datagrams_sent") < 10, "{summary}");
    Ok(())
}
