//! The cases in which published servers of this kind hang: bytes that come before `accept`, a port that
//! comes again. The server is stopped (SIGSTOP) where it must not have accepted yet.
use super::server::Server;
use super::{KERNEL, OVERLAP, network, number};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Suite, compile_c};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket, sockopt,
};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// Only what hangs is waited for so long.
const WATCHDOG: Duration = Duration::from_secs(20);

type Case = fn(&Server) -> Result<()>;

const CASES: &[(&str, Case)] = &[
    ("a_sent_after_accept", sent_after),
    ("b_sent_before_accept", sent_before),
    ("b2_sent_before_and_after", sent_before_and_after),
    ("f_ended_before_accept", ended_before),
    ("f2_reset_before_accept", reset_before),
    ("g_the_same_port_again", same_port),
];

pub(super) fn register(suite: &mut Suite) {
    let name = "splice_echo::bytes_that_come_again_are_sent_back_once";
    suite.case(name, OVERLAP, || {
        network::own()?;
        let words = ["--mode", "kernel", "--listen", "127.0.0.1:0"];
        let server = Server::start(&words)?;
        overlap(server.address.port())?;
        let summary = server.finish()?;
        ensure!(number(&summary, "/kernel/overlaps")? > 0, "{summary}");
        ensure!(
            number(&summary, "/kernel/egress_bytes")? == 40_000,
            "{summary}"
        );
        Ok(())
    });
    let name = "splice_echo::the_socket_of_a_local_client_is_left_alone";
    suite.case(name, OVERLAP, || {
        network::own()?;
        let server = Server::start(&["--mode", "kernel", "--listen", "127.0.0.1:0"])?;
        let rings = compile_c(&["splice/rings.c"], &["-O2", "-Wall"])?;
        let port = server.address.port().to_string();
        let out = command(Command::new(rings).arg(port))?;
        ensure!(out.stdout.contains("to the echo: 8  'zerocopy'"), "{out:?}");
        server.finish().map(drop)
    });
    for (way, words) in [
        ("egress", &["--mode", "kernel"][..]),
        ("ingress", &["--mode", "kernel", "--local-clients"][..]),
    ] {
        for (name, case) in CASES {
            let name = format!("splice_echo::{name}::{way}");
            suite.case(name, KERNEL, move || {
                network::own()?;
                let server = Server::start(&[words, &["--listen", "127.0.0.1:0"]].concat())?;
                case(&server)?;
                let summary = server.finish()?;
                // None of it by user space.
                let user = number(&summary, "/user_bytes")?;
                ensure!(user == 0, "{user} B by user space: {summary}");
                Ok(())
            });
        }
    }
}

/// Bytes that have come come again in one packet with others, as a retransmission may bring them.
pub(crate) fn overlap(port: u16) -> Result<()> {
    let program = compile_c(&["splice/overlap.c"], &["-O2", "-Wall"])?;
    command(Command::new(program).arg(port.to_string()))?.expect_code(0)?;
    Ok(())
}

fn signal(server: &Server, signal: Signal) -> Result<()> {
    let pid = server.pid();
    kill(Pid::from_raw(pid as i32), signal)?;
    if signal == Signal::SIGSTOP {
        // It has stopped when the kernel says so.
        let stat = format!("/proc/{pid}/stat");
        while !std::fs::read_to_string(&stat)?.contains(") T ") {
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn client(server: &Server) -> Result<TcpStream> {
    let stream = TcpStream::connect(server.address)?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    Ok(stream)
}

fn comes_back(stream: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).context("nothing came back")?;
    ensure!(got == bytes, "{got:?} instead of {bytes:?}");
    Ok(())
}

fn sent_after(server: &Server) -> Result<()> {
    let mut stream = client(server)?;
    for text in [&b"hello"[..], b"again"] {
        stream.write_all(text)?;
        comes_back(&mut stream, text)?;
    }
    Ok(())
}

fn sent_before(server: &Server) -> Result<()> {
    signal(server, Signal::SIGSTOP)?;
    let mut stream = client(server)?;
    stream.write_all(b"hello")?;
    signal(server, Signal::SIGCONT)?;
    comes_back(&mut stream, b"hello")
}

fn sent_before_and_after(server: &Server) -> Result<()> {
    signal(server, Signal::SIGSTOP)?;
    let mut stream = client(server)?;
    stream.write_all(b"hello")?;
    signal(server, Signal::SIGCONT)?;
    stream.write_all(b"X")?;
    comes_back(&mut stream, b"helloX")
}

fn ended_before(server: &Server) -> Result<()> {
    signal(server, Signal::SIGSTOP)?;
    let mut stream = client(server)?;
    stream.write_all(b"hello")?;
    stream.shutdown(Shutdown::Write)?;
    signal(server, Signal::SIGCONT)?;
    comes_back(&mut stream, b"hello")?;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).context("no end")?;
    ensure!(rest.is_empty(), "{rest:?} behind the end");
    Ok(())
}

/// The next one is served as if nothing had been.
fn reset_before(server: &Server) -> Result<()> {
    signal(server, Signal::SIGSTOP)?;
    let mut stream = client(server)?;
    stream.write_all(b"hello")?;
    reset(stream)?;
    signal(server, Signal::SIGCONT)?;
    sent_after(server)
}

fn reset(stream: TcpStream) -> Result<()> {
    let linger = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    Ok(setsockopt(&stream, sockopt::Linger, &linger)?)
}

fn from_port(server: &Server, port: u16) -> Result<TcpStream> {
    let fd = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    setsockopt(&fd, sockopt::ReuseAddr, &true)?;
    let here = SocketAddr::new(server.address.ip(), port);
    bind(fd.as_raw_fd(), &SockaddrStorage::from(here))?;
    connect(fd.as_raw_fd(), &SockaddrStorage::from(server.address))?;
    let stream = TcpStream::from(fd);
    stream.set_read_timeout(Some(WATCHDOG))?;
    Ok(stream)
}

/// While the server still has what came from it before.
fn same_port(server: &Server) -> Result<()> {
    signal(server, Signal::SIGSTOP)?;
    for _ in 0..3 {
        let mut stream = from_port(server, 7)?;
        stream.write_all(b"lost")?;
        reset(stream)?;
    }
    let mut stream = from_port(server, 7)?;
    stream.write_all(b"hello")?;
    signal(server, Signal::SIGCONT)?;
    comes_back(&mut stream, b"hello")
}
