//! The device's MTU changes under a program on the stack: its connections go on, and it is told what it is now.
use super::pipeline::instance::Instance;
use super::running::{Server, cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK, Way, ip, whole};
use crate::stack::mtu::{WATCHDOG, amid_a_transfer, set_mtu};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::socket::{getsockopt, sockopt::TcpMaxSeg};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Instant;

const PORT: &str = "7";
const DONT: u8 = 0;
const WANT: u8 = 1;
const DO: u8 = 2;
const PROBE: u8 = 3;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns, Python3};
    let needs = &[Netns, Ethtool, Python3];
    for (name, case) in [
        ("stack::run_follows_the_mtu", follows as fn() -> Result<()>),
        ("stack::run_follows_the_mtu_whole", follows_whole),
        ("stack::pipeline_follows_the_mtu", follows_there),
        ("stack::pipeline_follows_the_mtu_whole", follows_there_whole),
        ("stack::run_tells_the_mtu", tells),
        ("stack::pipeline_tells_the_mtu", tells_there),
    ] {
        suite.case(name, needs, case).watchdog(600);
    }
}

fn echo() -> Vec<String> {
    python("echo_server.py", &["threads", STACK, PORT, "1"])
}

fn follows() -> Result<()> {
    cable()?;
    set_mtu(Way::Packet, 9_000)?;
    let server = Server::start(&words(&echo()))?;
    amid_a_transfer(9_000)?;
    server.ends()
}

fn follows_there() -> Result<()> {
    let instance = Instance::start(&[])?;
    // It was started with less: what connections are opened with is raised, too.
    set_mtu(Way::Packet, 9_000)?;
    let server = Target::spawn(&mut instance.run(&[], &words(&echo())))?;
    amid_a_transfer(9_000)?;
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left()?;
    Ok(())
}

/// Each segment is a frame, which the device takes or does not.
const WHOLE: &[&str] = &["--trace", "--no-offload"];

fn follows_whole() -> Result<()> {
    cable()?;
    ["near", "far"].into_iter().try_for_each(whole)?;
    let server = Server::spawn(&mut on_the_stack(WHOLE, &words(&echo())))?;
    amid_a_transfer(1_500)?;
    server.ends()
}

fn follows_there_whole() -> Result<()> {
    let instance = Instance::start(&WHOLE[1..])?;
    ["near", "far"].into_iter().try_for_each(whole)?;
    let server = Target::spawn(&mut instance.run(&[], &words(&echo())))?;
    amid_a_transfer(1_500)?;
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left()?;
    Ok(())
}

fn asked() -> Vec<String> {
    python("mtu.py", &[STACK, PORT])
}

fn tells() -> Result<()> {
    cable()?;
    let server = Server::start(&words(&asked()))?;
    is_told(true)?;
    server.ends()
}

fn tells_there() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = Target::spawn(&mut instance.run(&[], &words(&asked())))?;
    is_told(false)?;
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left()?;
    Ok(())
}

/// Whoever does what lines ask for.
struct Asked(BufReader<TcpStream>);

impl Asked {
    fn connect() -> Result<Asked> {
        Ok(Asked(BufReader::new(TcpStream::connect((STACK, 7))?)))
    }

    fn ask(&mut self, line: &str) -> Result<String> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes())?;
        let mut answer = String::new();
        self.0.read_line(&mut answer)?;
        Ok(answer.trim().to_owned())
    }

    /// `at_once`: it asks the device each time; else the instance has seen it before long.
    fn is_told(&mut self, mtu: u16, at_once: bool) -> Result<()> {
        let started = Instant::now();
        // Options of timestamps are in each segment.
        let expected = format!("{mtu} {} {mtu}", mtu - 40 - 12);
        loop {
            let told = self.ask("mtu")?;
            if told == expected {
                return Ok(());
            }
            let waits = !at_once && started.elapsed() < WATCHDOG;
            ensure!(waits, "{told}, not {expected}");
        }
    }
}

fn is_told(at_once: bool) -> Result<()> {
    let peer = UdpSocket::bind((KERNEL, 7))?;
    peer.set_read_timeout(Some(WATCHDOG))?;
    let mut program = Asked::connect()?;
    let sends = |program: &mut Asked, discover, arrives: bool| -> Result<()> {
        let answer = program.ask(&format!("send 1400 {discover}"))?;
        if !arrives {
            ensure!(answer == "EMSGSIZE", "IP_MTU_DISCOVER {discover}: {answer}");
            return Ok(());
        }
        ensure!(
            answer == "sent 1400",
            "IP_MTU_DISCOVER {discover}: {answer}"
        );
        let mut into = [1; 2_000];
        let count = peer.recv(&mut into).context("no datagram")?;
        ensure!(into[..count] == [0; 1_400], "{count} bytes");
        Ok(())
    };
    program.is_told(1_500, at_once)?;
    for discover in [DONT, WANT, DO, PROBE] {
        sends(&mut program, discover, true)?;
    }
    set_mtu(Way::Packet, 1_000)?;
    program.is_told(1_000, at_once)?;
    for (discover, arrives) in [(DONT, true), (WANT, true), (DO, false), (PROBE, false)] {
        sends(&mut program, discover, arrives)?;
    }
    set_mtu(Way::Packet, 1_500)?;
    program.is_told(1_500, at_once)?;
    sends(&mut program, DO, true)?;
    set_mtu(Way::Packet, 1_000)?;
    program.is_told(1_000, at_once)?;
    // What the stack announces is what bounds the kernel's segments.
    ip("link set far mtu 1500")?;
    drop(program);
    let mut next = Asked::connect()?;
    next.is_told(1_000, at_once)?;
    let mss = getsockopt(next.0.get_ref(), TcpMaxSeg)?;
    ensure!(mss == 948, "the kernel's MSS: {mss}");
    Ok(())
}
