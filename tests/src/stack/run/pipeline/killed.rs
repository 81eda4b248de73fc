//! Programs that are killed wherever they are: nothing of them is left in the instance.
use super::super::running::{python, words};
use super::instance::{Instance, WATCHDOG, of_all_engines};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3, Redis};
    suite
        .case(
            "stack::pipeline_keeps_nothing_of_the_killed_anywhere",
            &[Netns, Python3],
            anywhere,
        )
        .watchdog(3_600);
    suite
        .case(
            "stack::pipeline_keeps_nothing_of_a_killed_redis",
            &[Netns, Redis],
            redis,
        )
        .watchdog(3_600);
}

/// Takes what comes at one port, and sends without an end at another.
fn peers() -> Result<UdpSocket> {
    for (port, sends) in [(9, false), (19, true)] {
        let listener = TcpListener::bind((KERNEL, port))?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || match sends {
                    true => std::io::copy(&mut std::io::repeat(7), &mut &stream),
                    false => std::io::copy(&mut &stream, &mut std::io::sink()),
                });
            }
        });
    }
    Ok(UdpSocket::bind((KERNEL, 9))?)
}

/// Which of many, by this seed (splitmix64).
pub(super) fn seeded(seed: u64, below: u64) -> u64 {
    let mixed = (seed.wrapping_add(1)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) % below
}

/// Sockets, descriptors and bytes of programs that are gone.
fn is_empty(instance: &Instance, own: usize, of: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let descriptors = instance.descriptors()?.len();
        let stats = instance.stats()?;
        let count = |path| of_all_engines(&stats, path);
        let (open, bytes) = (
            count("/counters/Tcp/CurrEstab")?,
            count("/memory/buffer_bytes")?,
        );
        if descriptors <= own && open == 0 && bytes == 0 {
            return Ok(());
        }
        ensure!(
            started.elapsed() < WATCHDOG,
            "{of}: {descriptors} descriptors of {own}, {open} connections, {bytes} bytes"
        );
        std::thread::yield_now();
    }
}

/// Clients of one that is going to be killed: each until its first error. Answers are counted.
fn clients(answers: &AtomicU64, sent: &[u8], back: usize) {
    let ask = || -> std::io::Result<()> {
        let mut stream = TcpStream::connect((STACK, 7))?;
        stream.set_read_timeout(Some(WATCHDOG))?;
        let mut bytes = vec![0; back];
        loop {
            stream.write_all(sent)?;
            stream.read_exact(&mut bytes)?;
            answers.fetch_add(1, Ordering::Relaxed);
        }
    };
    let hung = ask().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    assert!(!hung, "a client hears nothing for a minute");
}

/// Connecting, accepting, bulk both ways, events, forks, datagrams: after so many of them.
fn anywhere() -> Result<()> {
    let instance = Instance::start(&[])?;
    let _datagrams = peers()?;
    let own = instance.descriptors()?.len();
    for seed in 0..counts().pick(6, 1_000) {
        let program = python("killed.py", &[STACK, KERNEL]);
        let mut command = instance.run(&[], &words(&program));
        command.stdout(Stdio::piped());
        let mut first = Target::spawn_now(&mut command)?;
        let mut out = BufReader::new(first.child().stdout.take().context("piped")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        let processes: Result<Vec<i32>, _> = line.split_whitespace().map(str::parse).collect();
        let processes = processes?;
        let (answers, sent) = (AtomicU64::new(0), vec![7; 100_000]);
        std::thread::scope(|scope| -> Result<()> {
            for _ in 0..3 {
                scope.spawn(|| clients(&answers, &sent, sent.len()));
            }
            let steps = usize::try_from(seeded(seed, 300))?;
            out.read_exact(&mut vec![0; steps])?;
            for pid in &processes {
                kill(Pid::from_raw(*pid), Signal::SIGKILL)?;
            }
            Ok(())
        })?;
        let _ = first.wait()?;
        is_empty(&instance, own, &format!("seed {seed}"))?;
    }
    instance.has_nothing_left().map(drop)
}

/// Amid redis-benchmark's commands, after so many of others.
fn redis() -> Result<()> {
    let instance = Instance::start(&[])?;
    let own = instance.descriptors()?.len();
    let folder = files().join("redis");
    std::fs::create_dir_all(&folder)?;
    let dir = folder.to_str().context("path")?;
    for seed in 0..counts().pick(2, 1_000) {
        let ready = folder.join("pid");
        let program = [
            "/usr/bin/redis-server",
            "--bind",
            STACK,
            "--port",
            "7",
            "--protected-mode",
            "no",
            "--save",
            "",
            "--daemonize",
            "no",
            "--io-threads",
            "2",
            "--dir",
            dir,
            "--pidfile",
            ready.to_str().context("path")?,
        ];
        let mut command = instance.run(&[], &program);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let _ = std::fs::remove_file(&ready);
        let server = Target::spawn_with_ready_file(&mut command, &ready)?;
        let load = [
            "-h", STACK, "-p", "7", "-c", "30", "-P", "4", "-d", "3000", "-l", "-q", "-t",
            "set,get",
        ];
        let mut load = Command::new("redis-benchmark")
            .args(load)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let answers = AtomicU64::new(0);
        std::thread::scope(|scope| -> Result<()> {
            scope.spawn(|| clients(&answers, b"PING\r\n", 7));
            let started = Instant::now();
            while answers.load(Ordering::Relaxed) < seeded(seed, counts().pick(100, 1_000)) {
                ensure!(started.elapsed() < WATCHDOG, "no answers");
                std::thread::yield_now();
            }
            server.signal(Signal::SIGKILL)
        })?;
        let _ = server.wait()?;
        // It gives up, or tries again without an end.
        let _ = load.kill();
        load.wait()?;
        is_empty(&instance, own, &format!("seed {seed}"))?;
    }
    instance.has_nothing_left().map(drop)
}
