//! `--policy FILE`: whose a socket is, by program, address and port.
use super::pipeline::instance::Instance;
use super::refused::expect;
use super::running::{cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const OWN: [u16; 2] = [7_101, 7_102];

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    suite.case("stack::run_obeys_a_policy", &[Netns, Python3], inline);
    suite.case(
        "stack::pipeline_obeys_a_policy",
        &[Netns, Python3],
        pipeline,
    );
    suite.case("stack::run_refuses_what_is_no_policy", &[Netns], refused);
}

/// What the program asks, in the namespace of the test.
struct Peer {
    tcp: [TcpListener; 2],
    udp: [UdpSocket; 2],
}

impl Peer {
    fn new() -> Result<Peer> {
        let udp = || {
            let socket = UdpSocket::bind((KERNEL, 0))?;
            socket.set_read_timeout(Some(Duration::from_secs(20)))?;
            anyhow::Ok(socket)
        };
        Ok(Peer {
            tcp: [
                TcpListener::bind((KERNEL, 0))?,
                TcpListener::bind((KERNEL, 0))?,
            ],
            udp: [udp()?, udp()?],
        })
    }

    fn ports(&self) -> Result<[u16; 4]> {
        let [a, b] = &self.tcp;
        let [c, d] = &self.udp;
        Ok([
            a.local_addr()?.port(),
            b.local_addr()?.port(),
            c.local_addr()?.port(),
            d.local_addr()?.port(),
        ])
    }

    fn policy(&self, text: &str) -> Result<PathBuf> {
        let [first, _, third, _] = self.ports()?;
        let text = text.replace("FIRST", &first.to_string());
        let file = files().join("policy");
        std::fs::write(&file, text.replace("THIRD", &third.to_string()))?;
        Ok(file)
    }

    /// Whether each question is of the stack's address: two connections, two datagrams, and of two listeners whether it has them.
    /// `is_there`: the stack has any socket; without, nobody answers.
    fn whose(&self, mut command: Command, is_there: bool) -> Result<[bool; 6]> {
        let target = Target::spawn(command.stdin(Stdio::null()))?;
        let mut whose = [false; 6];
        let is_stacks = |ip: std::net::IpAddr| ip.to_string() == STACK;
        for (n, listener) in self.tcp.iter().enumerate() {
            whose[n] = is_stacks(listener.accept()?.1.ip());
        }
        for (n, socket) in self.udp.iter().enumerate() {
            let (_, from) = socket.recv_from(&mut [0; 9])?;
            whose[2 + n] = is_stacks(from.ip());
        }
        for (n, port) in OWN.into_iter().enumerate() {
            if is_there {
                whose[4 + n] = match TcpStream::connect((STACK, port)) {
                    Ok(_) => true,
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => false,
                    Err(error) => return Err(error).context("neither accepted nor refused"),
                };
            }
            TcpStream::connect(("127.0.0.1", port))?;
        }
        let status = target.wait()?;
        ensure!(status.success(), "{status}");
        Ok(whose)
    }
}

const BY_PORT: &str = "stack connect tcp port=FIRST   # the other connection is the kernel's\n\
                       kernel connect tcp\nkernel udp port=THIRD\nkernel bind port=7000-7101\n";

fn check(run: impl Fn(&[&str], &[&str]) -> Command) -> Result<()> {
    let peer = Peer::new()?;
    let python3 = std::fs::canonicalize("/usr/bin/python3")?;
    let of_program = |path: &str| format!("kernel program={path}\n");
    let name = python3
        .file_name()
        .and_then(|name| name.to_str())
        .context("name")?;
    let path = python3.to_str().context("path")?;
    for (text, expected) in [
        (String::new(), [true; 6]),
        (BY_PORT.into(), [true, false, false, true, false, true]),
        (of_program(name), [false; 6]),
        (of_program(path), [false; 6]),
        (of_program("/usr/bin/python3"), [false; 6]),
        (of_program("/usr/bin/env"), [true; 6]),
        (
            format!("kernel address={KERNEL}/32 connect\n"),
            [false, false, false, false, true, true],
        ),
    ] {
        let policy = peer.policy(&text)?;
        let ports = peer.ports()?.map(|port| port.to_string());
        let own = OWN.map(|port| port.to_string());
        let accepts = 2 + expected[4..].iter().filter(|stacks| **stacks).count();
        let mut arguments = vec![KERNEL];
        arguments.extend(ports.iter().chain(&own).map(String::as_str));
        let accepts = accepts.to_string();
        arguments.push(&accepts);
        let file = policy.to_str().context("path")?;
        let program = python("asks.py", &arguments);
        let command = run(&["--policy", file], &words(&program));
        let whose = peer.whose(command, expected.contains(&true))?;
        ensure!(whose == expected, "{text}: {whose:?}, {expected:?}");
    }
    Ok(())
}

fn inline() -> Result<()> {
    cable()?;
    check(on_the_stack)
}

fn pipeline() -> Result<()> {
    let instance = Instance::start(&[])?;
    check(|own, program| instance.run(own, program))?;
    instance.has_nothing_left().map(drop)
}

fn refused() -> Result<()> {
    cable()?;
    let file = files().join("policy");
    let policy = file.to_str().context("path")?;
    expect(
        &mut on_the_stack(&["--policy", policy], &["true"]),
        &[policy],
    )?;
    for (text, words) in [
        (
            "kernel port=22\n\nallow port=7\n",
            ["line 3", "stack or kernel"],
        ),
        ("kernel port=22,\n", ["line 1", "no ports"]),
        (&"kernel\n".repeat(100_000), ["more than", "no policy"]),
    ] {
        std::fs::write(&file, text)?;
        expect(&mut on_the_stack(&["--policy", policy], &["true"]), &words)?;
    }
    Ok(())
}
