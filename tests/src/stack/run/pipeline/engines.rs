//! Programs on an instance of several engines: what they see is what one engine shows, and each engine has its share.
use super::super::running::{python, words};
use super::instance::{Instance, WATCHDOG, on_two_engines};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    let needs = &[Netns, Python3];
    suite.case("stack::connections_spread_over_engines", needs, spreads);
    suite.case("stack::pipeline_gives_ports_as_the_kernel", needs, || {
        as_the_kernel(Instance::start(&[])?).map(drop)
    });
}

/// Of those that run with an instance of one engine and one of two.
const KEPT: [&str; 9] = [
    "binds_again_at_once",
    "hands_on_passes",
    "keeps_nothing_of_the_killed",
    "listens_again_waits",
    "proxies_with_haproxy",
    "serves_with_postgres",
    "talks_to_another_threads",
    "upgrades_nginx_reuseport",
    "withstands_hostile_programs",
];

/// A device's queues give fragments and whole datagrams of one peer to different engines, so that these may change places, as on any
/// device with several queues: their order is not the kernel's, with one.
const LEFT_OUT: [&str; 1] = ["gives_datagrams_what_the_kernel_gives"];

/// What is tested with an instance of one engine, with one of two.
pub(crate) fn register_again(suite: &mut Suite) {
    let names = ("stack::pipeline_", "stack::engines_");
    let which = |rest: &str| (!LEFT_OUT.contains(&rest)).then(|| !KEPT.contains(&rest));
    suite.again(names, &[], which, on_two_engines);
}

/// Says to each client from where it has come.
fn says_from_where(address: &str) -> Result<()> {
    let listener = TcpListener::bind((address, 9))?;
    std::thread::spawn(move || {
        while let Ok((mut stream, peer)) = listener.accept() {
            std::thread::spawn(move || {
                let _ = writeln!(stream, "{peer}");
                std::io::copy(&mut stream, &mut std::io::sink())
            });
        }
    });
    Ok(())
}

fn echoes(address: &str, count: usize) -> Result<()> {
    let mut streams = Vec::new();
    for n in 0..count {
        let mut stream = TcpStream::connect((address, 7))?;
        stream.set_read_timeout(Some(WATCHDOG))?;
        writeln!(stream, "{n}")?;
        streams.push(stream);
    }
    for (n, stream) in streams.iter().enumerate() {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        ensure!(line == format!("{n}\n"), "{line}");
    }
    let mut last = streams.pop().context("none")?;
    last.write_all(b"end")?;
    last.read_exact(&mut [0; 3])?;
    Ok(())
}

/// What it says until it is told to end.
fn says(command: &mut Command, address: &str, peek: impl FnOnce() -> Result<()>) -> Result<String> {
    command.stdout(Stdio::piped());
    let mut program = Target::spawn_now(command)?;
    let out = program.child().stdout.take().context("piped")?;
    let mut said = String::new();
    for line in BufReader::new(out).lines() {
        let line = line?;
        said += &line;
        said.push('\n');
        if line == "serves" {
            echoes(address, 64)?;
            break;
        }
    }
    peek()?;
    let status = program.wait()?;
    ensure!(status.success(), "{status}: {said}");
    Ok(said)
}

/// What `stack stats` said of an instance while a program was connected to and from everywhere, which saw what the kernel shows.
fn as_the_kernel(instance: Instance) -> Result<Value> {
    let on_the_kernel = python("engines.py", &[KERNEL, KERNEL, "20000"]);
    says_from_where(KERNEL)?;
    let mut kernel = Command::new(&on_the_kernel[0]);
    let kernel = says(kernel.args(&on_the_kernel[1..]), KERNEL, || Ok(()))?;
    let program = python("engines.py", &[STACK, KERNEL, "25000"]);
    let mut stats = Value::Null;
    let said = says(&mut instance.run(&[], &words(&program)), STACK, || {
        stats = instance.stats()?;
        Ok(())
    })?;
    ensure!(
        said == kernel && said.ends_with("serves\n"),
        "{said}{kernel}"
    );
    instance.has_nothing_left()?;
    Ok(stats)
}

fn spreads() -> Result<()> {
    let stats = as_the_kernel(Instance::of_engines(3)?)?;
    let engines = stats["engines"].as_array().context("no engines")?;
    ensure!(engines.len() == 3, "{stats}");
    for engine in engines {
        for opens in ["ActiveOpens", "PassiveOpens"] {
            let count = engine.pointer(&format!("/counters/Tcp/{opens}"));
            // Some 42 of 128 connections out, and 21 of 64 in.
            ensure!(count.and_then(Value::as_u64) >= Some(8), "{opens}: {stats}");
        }
    }
    let passed = |engine: &Value| engine.pointer("/share/received").and_then(Value::as_u64);
    ensure!(
        engines.iter().any(|engine| passed(engine) > Some(0)),
        "{stats}"
    );
    Ok(())
}
