//! Ends that nobody wants: programs that are killed, an instance that is, and programs that mean harm.
use super::super::running::{python, words};
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::Instant;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::pipeline_keeps_nothing_of_the_killed", needs, killed);
    suite.case(
        "stack::pipeline_says_that_its_instance_is_gone",
        needs,
        gone,
    );
    suite.case(
        "stack::pipeline_goes_on_when_its_instance_returns",
        needs,
        returns,
    );
    suite.case("stack::pipeline_waits_for_descriptors", needs, few);
    suite.case("stack::pipeline_leaves_descriptors", needs, greedy);
    suite.case("stack::pipeline_waits_at_the_door", needs, door);
    suite.case(
        "stack::pipeline_withstands_hostile_programs",
        needs,
        hostile,
    );
}

/// Takes what comes, and answers nothing.
fn sink() -> Result<()> {
    let listener = TcpListener::bind((KERNEL, 9))?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut stream = stream;
                let _ = std::io::copy(&mut stream, &mut std::io::sink());
            });
        }
    });
    Ok(())
}

/// Four processes, killed at some point of what they do; peers hear of it.
fn killed() -> Result<()> {
    let instance = Instance::start(&[])?;
    sink()?;
    for _ in 0..counts().pick(5, 250) {
        let program = python("victim.py", &[STACK, KERNEL]);
        let mut command = instance.run(&[], &words(&program));
        command.stdout(Stdio::piped());
        let mut first = Target::spawn_now(&mut command)?;
        let out = first.child().stdout.take().context("piped")?;
        let mut processes = Vec::new();
        for line in BufReader::new(out).lines().take(4) {
            processes.push(line?.parse::<i32>()?);
        }
        ensure!(processes.len() == 4, "{processes:?}");
        let mut streams = Vec::new();
        for _ in 0..8 {
            let mut stream = TcpStream::connect((STACK, 7))?;
            stream.set_read_timeout(Some(WATCHDOG))?;
            stream.write_all(b"there?")?;
            let mut back = [0; 6];
            stream.read_exact(&mut back)?;
            streams.push(stream);
        }
        for pid in processes {
            kill(Pid::from_raw(pid), Signal::SIGKILL)?;
        }
        let _ = first.wait()?;
        for mut stream in streams {
            // In order or by a reset: nothing was unread, or something was.
            let end = stream.read(&mut [0; 10]);
            let over = matches!(&end, Ok(0))
                || end
                    .as_ref()
                    .is_err_and(|error| error.raw_os_error() == Some(104));
            ensure!(over, "{end:?}");
        }
        // The last of them takes the listener with it.
        let started = Instant::now();
        while TcpStream::connect((STACK, 7)).is_ok() {
            ensure!(started.elapsed() < WATCHDOG, "somebody listens");
        }
    }
    instance.has_nothing_left().map(drop)
}

/// Connections stay in the listener's queue while the instance has no descriptor for them.
fn few() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = python("echo_server.py", &["threads", STACK, "7", "8"]);
    let server = Target::spawn(&mut instance.run(&[], &words(&server)))?;
    // Room for two more.
    let most = instance.descriptors()?.len() + 3;
    let pid = instance.pid().to_string();
    let limit = format!("--nofile={most}:{most}");
    run(Command::new("prlimit").args(["--pid", &pid, &limit]))?.expect_code(0)?;
    // Each ends by itself: engines take theirs in no order among them, and those that have one keep it until they end.
    let all_are_there = Arc::new(Barrier::new(8));
    let asks = |_| {
        let all_are_there = all_are_there.clone();
        std::thread::spawn(move || -> Result<()> {
            let mut stream = TcpStream::connect((STACK, 7))?;
            stream.set_read_timeout(Some(WATCHDOG))?;
            all_are_there.wait();
            stream.write_all(b"there?")?;
            let mut back = [0; 6];
            stream.read_exact(&mut back)?;
            ensure!(&back == b"there?");
            Ok(())
        })
    };
    let clients: Vec<_> = (0..8).map(asks).collect();
    for client in clients {
        client.join().ok().context("no panic")??;
    }
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    let summary = instance.has_nothing_left()?;
    let missing = summary["app"]["descriptors_missing"].as_u64();
    ensure!(missing.is_some_and(|missing| missing > 0), "{summary}");
    ensure!(summary["app"]["accepted"] == 8, "{summary}");
    Ok(())
}

/// A program that takes all it can get keeps nobody else from attaching, and waits for nobody.
fn greedy() -> Result<()> {
    // Of the instance; the program has as many.
    setrlimit(Resource::RLIMIT_NOFILE, 700, 700)?;
    let instance = Instance::start(&[])?;
    let program = python("greedy.py", &[STACK]);
    let mut command = instance.run(&[], &words(&program));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut first = Target::spawn(&mut command)?;
    run(&mut instance.run(&[], &["true"]))?.expect_code(0)?;
    drop(first.child().stdin.take());
    let said = String::from_utf8(first.output()?.stdout)?;
    // Three quarters, each engine its part of them, and the one that there was none for.
    let most = 525 / usize::from(instance.engines()) + 1;
    ensure!(said.trim() == format!("ENFILE {most}"), "{said}");
    let summary = instance.has_nothing_left()?;
    ensure!(summary["app"]["descriptors_missing"] == 1, "{summary}");
    Ok(())
}

/// Whoever comes while the instance has no descriptor at all waits at its door.
fn door() -> Result<()> {
    let instance = Instance::start(&[])?;
    let pid = instance.pid().to_string();
    let limited = |most: usize| -> Result<()> {
        let limit = format!("--nofile={most}:20000");
        run(Command::new("prlimit").args(["--pid", &pid, &limit]))?.expect_code(0)?;
        Ok(())
    };
    // Not one number is free below it, nor becomes so.
    let is_free = |fd: &usize| !Path::new(&format!("/proc/{pid}/fd/{fd}")).exists();
    let first_free = || (0..20_000).find(is_free).context("all are in use");
    let mut most = first_free()?;
    limited(most)?;
    while first_free()? < most {
        most = first_free()?;
        limited(most)?;
    }
    let mut waits = instance.run(&[], &["true"]).spawn()?;
    // It is connected, and hears nothing.
    let call = format!("/proc/{}/syscall", waits.id());
    let started = Instant::now();
    loop {
        // recvmsg (asm/unistd_64.h)
        let now = std::fs::read_to_string(&call).unwrap_or_default();
        if now.starts_with("47 ") {
            break;
        }
        ensure!(
            started.elapsed() < WATCHDOG && waits.try_wait()?.is_none(),
            "{now}"
        );
    }
    // Meanwhile the instance sleeps, again and again.
    let before = instance.sleeps()?;
    while instance.sleeps()? < before + 20 {
        ensure!(started.elapsed() < WATCHDOG, "it does not sleep");
    }
    limited(20_000)?;
    ensure!(waits.wait()?.success());
    let summary = instance.has_nothing_left()?;
    let missing = summary["app"]["descriptors_missing"].as_u64().unwrap_or(0);
    ensure!(missing > 0, "{summary}");
    Ok(())
}

fn gone() -> Result<()> {
    let instance = Instance::start(&[])?;
    sink()?;
    let program = python("orphan.py", &[STACK, KERNEL]);
    let mut command = instance.run(&[], &words(&program));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = Target::spawn(&mut command)?;
    kill(Pid::from_raw(instance.pid()), Signal::SIGKILL)?;
    let out = program.output()?;
    let (said, errors) = (
        String::from_utf8(out.stdout)?,
        String::from_utf8(out.stderr)?,
    );
    ensure!(out.status.success(), "{}: {errors}", out.status);
    for result in [
        "receives ECONNRESET",
        "accepts ENETDOWN",
        "sends EPIPE",
        "opens ENETDOWN",
        "options ENETDOWN",
        "waits []",
        "kernel '127.0.0.1'",
    ] {
        ensure!(said.contains(result), "{result}: {said}");
    }
    ensure!(errors.lines().count() == 1, "{errors}");
    ensure!(errors.contains("gone"), "{errors}");
    Ok(())
}

/// Another one in its place has what is new, also what a child has.
fn returns() -> Result<()> {
    let instance = Instance::start(&[])?;
    sink()?;
    let fifo = files().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU)?;
    let program = python("returns.py", &[STACK, KERNEL, &fifo.display().to_string()]);
    let mut command = instance.run(&[], &words(&program));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Target::spawn(&mut command)?;
    let mut out = BufReader::new(program.child().stdout.take().context("piped")?);
    let mut said = String::new();
    kill(Pid::from_raw(instance.pid()), Signal::SIGKILL)?;
    std::fs::write(&fifo, "gone")?;
    out.read_line(&mut said)?;
    let instance = instance.again()?;
    std::fs::write(&fifo, "back")?;
    let started = Instant::now();
    let mut stream = loop {
        match TcpStream::connect((STACK, 7)) {
            Ok(stream) => break stream,
            Err(error) => ensure!(started.elapsed() < WATCHDOG, "{error}"),
        }
    };
    stream.set_read_timeout(Some(WATCHDOG))?;
    stream.write_all(b"hello")?;
    let mut back = [0; 5];
    stream.read_exact(&mut back)?;
    let socket = UdpSocket::bind((KERNEL, 0))?;
    socket.set_read_timeout(Some(WATCHDOG))?;
    socket.connect((STACK, 9))?;
    socket.send(b"too")?;
    ensure!(&back == b"hello" && socket.recv(&mut back)? == 3);
    // Else its other end waits for it, for a minute.
    drop(stream);
    out.read_to_string(&mut said)?;
    let out = program.output()?;
    let errors = String::from_utf8(out.stderr)?;
    ensure!(out.status.success(), "{}: {said}{errors}", out.status);
    ensure!(
        said == "opens ENETDOWN receives ECONNRESET\n\
                 opens 1 receives ECONNRESET sends EPIPE accepts ENETDOWN listens ENETDOWN options ENETDOWN waits [] datagrams ENETDOWN\n\
                 child 1\n",
        "{said}{errors}"
    );
    // Of the listener whose port the program has given to another one.
    let of = [
        "gone",
        "is back",
        "does not listen again: Address already in use",
    ];
    let told: Vec<&str> = errors.lines().collect();
    let is_told = of.iter().zip(&told).all(|(of, told)| told.contains(of));
    ensure!(told.len() == of.len() && is_told, "{errors}");
    instance.has_nothing_left().map(drop)
}

/// A program with sockets that others name.
struct Bystander {
    program: Target,
    said: BufReader<std::process::ChildStdout>,
    first: String,
    stream: TcpStream,
    datagrams: UdpSocket,
}

impl Bystander {
    fn start(instance: &Instance) -> Result<Bystander> {
        let program = python("bystander.py", &[STACK]);
        let mut command = instance.run(&[], &words(&program));
        command.stdout(Stdio::piped());
        let mut program = Target::spawn(&mut command)?;
        let mut said = BufReader::new(program.child().stdout.take().context("piped")?);
        let stream = TcpStream::connect((STACK, 8))?;
        stream.set_read_timeout(Some(WATCHDOG))?;
        let datagrams = UdpSocket::bind(stream.local_addr()?)?;
        datagrams.set_read_timeout(Some(WATCHDOG))?;
        let mut first = String::new();
        said.read_line(&mut first)?;
        Ok(Bystander {
            program,
            said,
            first,
            stream,
            datagrams,
        })
    }

    /// Names, options, and both ways of both.
    fn are_as_before(&mut self) -> Result<()> {
        self.stream.write_all(b"?")?;
        self.stream.read_exact(&mut [0])?;
        self.datagrams.recv(&mut [0])?;
        let mut now = String::new();
        self.said.read_line(&mut now)?;
        ensure!(now == self.first, "before: {}now: {now}", self.first);
        Ok(())
    }

    fn ends(self) -> Target {
        self.program
    }
}

/// Another program is served meanwhile, and nothing of the hostile ones is left.
fn hostile() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = python("echo_server.py", &["threads", STACK, "7", "1"]);
    let server = Target::spawn(&mut instance.run(&[], &words(&server)))?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    let mut others = Bystander::start(&instance)?;
    let rounds = counts().pick("5", "500");
    for seed in 0..counts().pick(3_u32, 20) {
        let version = env!("CARGO_PKG_VERSION");
        let program = python(
            "hostile.py",
            &[
                instance.socket(),
                version,
                &seed.to_string(),
                rounds,
                &others.program.pid().to_string(),
            ],
        );
        let out = run(Command::new(&program[0]).args(&program[1..]))?.expect_code(0)?;
        ensure!(out.stdout.contains("done"), "{}", out.stdout);
        stream.write_all(b"still there?")?;
        let mut back = [0; 12];
        stream.read_exact(&mut back)?;
        ensure!(&back == b"still there?");
        others.are_as_before()?;
    }
    drop(stream);
    for program in [server, others.ends()] {
        let status = program.wait()?;
        ensure!(status.success(), "{status}");
    }
    let summary = instance.has_nothing_left()?;
    let count = |name: &str| summary["app"][name].as_u64().unwrap_or(0);
    ensure!(count("programs_refused") > 0, "{summary}");
    ensure!(count("requests_refused") > 0, "{summary}");
    Ok(())
}
