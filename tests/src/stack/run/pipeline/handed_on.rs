//! Sockets that go from process to process: fork, exec, SCM_RIGHTS, programs without the library.
use super::super::running::{kernel_has_none, python, words};
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, compile_c};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Python3};
    for (how, connections) in [
        ("forks", 4),
        ("prefork", 12),
        ("executes", 2),
        ("inetd", 1),
        ("passes", 2),
    ] {
        let name = format!("stack::pipeline_hands_on_{how}");
        suite.case(name, &[Netns, Python3, Gcc], move || {
            hands_on(how, connections)
        });
    }
    suite.case(
        "stack::pipeline_hands_on_to_another_program",
        &[Netns, Python3],
        to_another_program,
    );
    suite.case(
        "stack::pipeline_reads_on_where_a_call_ends_early",
        &[Netns, Python3, Gcc],
        reads_on,
    );
}

fn connect() -> Result<TcpStream> {
    let stream = TcpStream::connect((STACK, 7))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    Ok(stream)
}

/// What is sent comes back, and the end with it.
fn echoes(bytes: &[u8]) -> Result<()> {
    let mut stream = connect()?;
    let mut writer = stream.try_clone()?;
    let mut got = Vec::new();
    std::thread::scope(|scope| -> Result<()> {
        let sending = scope.spawn(move || -> Result<()> {
            writer.write_all(bytes)?;
            Ok(writer.shutdown(Shutdown::Write)?)
        });
        stream.read_to_end(&mut got)?;
        sending.join().ok().context("no panic")?
    })?;
    ensure!(got == bytes, "{} of {} bytes", got.len(), bytes.len());
    Ok(())
}

fn hands_on(how: &str, connections: usize) -> Result<()> {
    let instance = Instance::start(&[])?;
    let cat = compile_c(&["stack/run/cat.c"], &["-static"])?;
    let program = python("handed_on.py", &[how, STACK, cat.to_str().context("path")?]);
    let server = Target::spawn(&mut instance.run(&[], &words(&program)))?;
    kernel_has_none(7)?;
    let bytes: Vec<u8> = (0..400_000_u32).map(|n| (n % 251) as u8).collect();
    for _ in 0..connections {
        echoes(&bytes)?;
    }
    if how == "prefork" {
        // One for each worker, which ends then; all at a time, so that each has its own.
        let mut last: Vec<TcpStream> = (0..3).map(|_| connect()).collect::<Result<_>>()?;
        for stream in &mut last {
            stream.write_all(b".")?;
            let mut back = [0];
            stream.read_exact(&mut back)?;
            ensure!(back == *b".", "{back:?}");
        }
    }
    let status = server.wait()?;
    ensure!(status.success(), "{how}: {status}");
    instance.has_nothing_left().map(drop)
}

/// A program of another `stack run` has what it is given as its own, and who gave it ends.
fn to_another_program() -> Result<()> {
    let instance = Instance::start(&[])?;
    let door = std::env::temp_dir().join(format!("hopscope-{}.door", std::process::id()));
    let start = |how: &str| {
        let program = python("handed_on.py", &[how, STACK, &door.display().to_string()]);
        instance.run(&[], &words(&program))
    };
    let giver = Target::spawn(&mut start("gives"))?;
    let mut first = connect()?;
    first.write_all(b"one")?;
    // Accepted: of several engines the second connection may be there first.
    first.read_exact(&mut [0])?;
    let mut waiting = connect()?;
    waiting.write_all(b"waiting")?;
    waiting.shutdown(Shutdown::Write)?;
    let taker = Target::spawn_now(&mut start("takes"))?;
    let status = giver.wait()?;
    ensure!(status.success(), "gives: {status}");
    let mut back = [0; 3];
    first.read_exact(&mut back)?;
    ensure!(&back == b"two", "{}", back.escape_ascii());
    first.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    waiting.read_to_string(&mut text)?;
    ensure!(text == "waiting", "{text}");
    echoes(&[b'x'; 100_000])?;
    let datagrams = UdpSocket::bind((KERNEL, 0))?;
    datagrams.set_read_timeout(Some(WATCHDOG))?;
    datagrams.connect((STACK, 7))?;
    datagrams.send(b"datagram")?;
    let mut back = [0; 100];
    let len = datagrams.recv(&mut back)?;
    ensure!(&back[..len] == b"datagram", "{}", back.escape_ascii());
    let status = taker.wait()?;
    ensure!(status.success(), "takes: {status}");
    let _ = std::fs::remove_file(&door);
    drop((first, waiting));
    instance.has_nothing_left().map(drop)
}

/// A program that the library is not in sends a descriptor along, and an urgent byte: all bytes arrive, and its answer.
fn reads_on() -> Result<()> {
    let instance = Instance::start(&[])?;
    let piecemeal = compile_c(&["stack/run/piecemeal.c"], &["-static"])?;
    let program = python(
        "handed_on.py",
        &["inetd", STACK, piecemeal.to_str().context("path")?],
    );
    let server = Target::spawn(&mut instance.run(&[], &words(&program)))?;
    let mut stream = connect()?;
    let mut got = [0; 8];
    stream.read_exact(&mut got)?;
    ensure!(&got == b"abcdefgh", "{}", got.escape_ascii());
    stream.write_all(b"!")?;
    drop(stream);
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    instance.has_nothing_left().map(drop)
}
