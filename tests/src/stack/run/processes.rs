//! Programs that fork: one process at a time has the stack; what needs it in several fails, and is said.
use super::running::{
    cable, kernel_has_no_datagrams, kernel_has_none, on_the_stack, python, words,
};
use crate::stack::cable::{STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Only what hangs takes so long.
const WATCHDOG: Duration = Duration::from_secs(60);

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_follows_a_daemon", needs, daemon);
    suite.case("stack::run_follows_a_worker_and_the_next", needs, worker);
    suite.case(
        "stack::run_follows_datagrams_into_children",
        needs,
        datagrams,
    );
    suite.case("stack::run_says_what_needs_several_processes", needs, save);
}

fn start(how: &str) -> Result<Target> {
    cable()?;
    let said = File::create(files().join("said"))?;
    let program = python("processes.py", &[how, STACK]);
    let mut command = on_the_stack(&[], &words(&program));
    command
        .env("READY_FILE", files().join("ready"))
        .stdin(Stdio::null())
        .stderr(said);
    let target = Target::spawn_now(&mut command)?;
    wait_for(&files().join("ready"))?;
    kernel_has_none(7)?;
    Ok(target)
}

/// A file that a process makes which is not our child.
fn wait_for(path: &Path) -> Result<()> {
    let started = Instant::now();
    while !path.exists() {
        ensure!(started.elapsed() < WATCHDOG, "no {}", path.display());
        std::thread::yield_now();
    }
    Ok(())
}

fn connect() -> Result<TcpStream> {
    let stream = TcpStream::connect((STACK, 7))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    Ok(stream)
}

fn echoes() -> Result<()> {
    let mut stream = connect()?;
    let sent: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
    let mut writer = stream.try_clone()?;
    let bytes = sent.clone();
    let sending = std::thread::spawn(move || -> Result<()> {
        writer.write_all(&bytes)?;
        Ok(writer.shutdown(Shutdown::Write)?)
    });
    let mut got = Vec::new();
    stream.read_to_end(&mut got)?;
    sending.join().ok().context("no panic")??;
    ensure!(got == sent, "{} bytes came back", got.len());
    Ok(())
}

/// What was said on standard error.
fn said() -> Result<String> {
    Ok(std::fs::read_to_string(files().join("said"))?)
}

fn daemon() -> Result<()> {
    let first = start("daemon")?;
    ensure!(first.wait()?.success(), "{}", said()?);
    echoes()?;
    ensure!(said()?.is_empty(), "{}", said()?);
    Ok(())
}

fn worker() -> Result<()> {
    let server = start("worker")?;
    echoes()?;
    wait_for(&files().join("ready-again"))?;
    echoes()?;
    ensure!(server.wait()?.success(), "{}", said()?);
    ensure!(said()?.is_empty(), "{}", said()?);
    Ok(())
}

/// What comes while the socket changes hands may be lost: it is sent again.
fn datagrams() -> Result<()> {
    cable()?;
    let program = python("datagram_children.py", &[STACK]);
    let said_to = File::create(files().join("said"))?;
    let mut command = on_the_stack(&[], &words(&program));
    command
        .env("READY_FILE", files().join("ready"))
        .stdin(Stdio::null())
        .stderr(said_to);
    let first = Target::spawn_now(&mut command)?;
    wait_for(&files().join("ready"))?;
    kernel_has_no_datagrams(7)?;
    ensure!(first.wait()?.success(), "{}", said()?);
    let client = UdpSocket::bind("0.0.0.0:0")?;
    client.set_read_timeout(Some(Duration::from_millis(300)))?;
    let started = Instant::now();
    for who in ["first ", "second ", "third "] {
        loop {
            ensure!(started.elapsed() < WATCHDOG, "no {who}: {}", said()?);
            client.send_to(b"question", (STACK, 7))?;
            let mut back = [0; 100];
            match client.recv(&mut back) {
                Ok(len) if back[..len].starts_with(who.as_bytes()) => break,
                _ => {}
            }
        }
    }
    ensure!(said()?.is_empty(), "{}", said()?);
    Ok(())
}

fn save() -> Result<()> {
    let server = start("save")?;
    let mut stream = connect()?;
    let mut five = [0; 5];
    stream.write_all(b"first")?;
    stream.read_exact(&mut five)?;
    ensure!(&five == b"first", "{five:?}");
    // EIO in the child; nothing of it was sent.
    stream.read_exact(&mut five)?;
    ensure!(&five == b"    5", "{five:?}");
    stream.write_all(b"third")?;
    stream.read_exact(&mut five)?;
    ensure!(&five == b"third", "{five:?}");
    ensure!(stream.read(&mut five)? == 0, "more came");
    ensure!(server.wait()?.success(), "{}", said()?);
    ensure!(said()?.contains("need --mode pipeline"), "{}", said()?);
    Ok(())
}
