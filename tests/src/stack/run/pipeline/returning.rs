//! Listeners of an instance that ends and comes back are there again, without the program.
use super::super::running::{kernel_has_none, python, words};
use super::super::tools::nginx;
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Instant;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Nginx, Python3};
    for how in ["waits", "edges"] {
        suite.case(
            format!("stack::pipeline_listens_again_{how}"),
            &[Netns, Python3],
            move || listens(how),
        );
    }
    for (name, reuse) in [("shared", ""), ("reuseport", " reuseport")] {
        suite
            .case(
                format!("stack::pipeline_listens_again_nginx_{name}"),
                &[Netns, Nginx],
                move || web_server(reuse),
            )
            .in_turn();
    }
}

/// What comes back for `sent` on a connection of its own, once there is one.
fn asked(at: SocketAddr, sent: &[u8]) -> Result<String> {
    let started = Instant::now();
    loop {
        let back = TcpStream::connect(at).and_then(|mut stream| {
            stream.set_read_timeout(Some(WATCHDOG))?;
            stream.write_all(sent)?;
            let mut back = String::new();
            stream.read_to_string(&mut back)?;
            Ok(back)
        });
        match back {
            Ok(back) => return Ok(back),
            Err(error) => ensure!(started.elapsed() < WATCHDOG, "{error}"),
        }
    }
}

fn kill_it(instance: &Instance) -> Result<()> {
    Ok(kill(Pid::from_raw(instance.pid()), Signal::SIGKILL)?)
}

/// A call that waits, and events that are told once; told of the end, and where another instance is there before it could be.
fn listens(how: &str) -> Result<()> {
    let mut instance = Instance::start(&[])?;
    let program = python("listens_again.py", &[how, STACK, "7", "4"]);
    let mut command = instance.run(&[], &words(&program));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = Target::spawn(&mut command)?;
    let mut out = BufReader::new(program.child().stdout.take().context("piped")?);
    let mut said = || -> Result<String> {
        let mut line = String::new();
        out.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    };
    let at: SocketAddr = format!("{STACK}:7").parse()?;
    ensure!(asked(at, b"first")? == "first" && said()? == "1");
    for sent in ["second", "third"] {
        kill_it(&instance)?;
        let told = said()?;
        ensure!(told == "ENETDOWN", "{told}");
        instance = instance.again()?;
        let back = asked(at, sent.as_bytes())?;
        let told = said()?;
        ensure!(back == sent && told == "1", "{back} {told}");
    }
    program.signal(Signal::SIGSTOP)?;
    kill_it(&instance)?;
    let instance = instance.again()?;
    program.signal(Signal::SIGCONT)?;
    let back = asked(at, b"fourth")?;
    let told = said()?;
    ensure!(back == "fourth" && told == "1", "{back} {told}");
    let out = program.output()?;
    let errors = String::from_utf8(out.stderr)?;
    ensure!(out.status.success(), "{}: {errors}", out.status);
    instance.has_nothing_left().map(drop)
}

/// Two workers, at the stack's address and at every one, where the kernel listens, too, with a listener that they share, or one each
/// that both have; the master's are gone for good, and it hands them on to the next workers.
fn web_server(reuse: &str) -> Result<()> {
    let mut instance = Instance::start(&[])?;
    let folder = files().join("nginx");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small"), "x".repeat(600))?;
    let listen = format!("listen {STACK}:80{reuse}; listen 8080{reuse};");
    let plain = nginx(&folder, &listen, "user root; worker_processes 2;")?;
    let mut words: Vec<&str> = vec!["/usr/sbin/nginx"];
    words.extend(plain.get_args().filter_map(|word| word.to_str()));
    let mut command = instance.run(&[], &words);
    let master = Target::spawn_now(&mut command)?;
    let places: [SocketAddr; 3] = [
        (STACK.parse::<Ipv4Addr>()?, 80).into(),
        (STACK.parse::<Ipv4Addr>()?, 8080).into(),
        (Ipv4Addr::LOCALHOST, 8080).into(),
    ];
    let request = b"GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let all_serve = || -> Result<()> {
        // Of a group each one accepts.
        for at in places.into_iter().cycle().take(30) {
            let back = asked(at, request)?;
            let is_whole = back.starts_with("HTTP/1.1 200 ") && back.ends_with(&"x".repeat(600));
            ensure!(is_whole, "{at}: {back:.80}");
        }
        Ok(())
    };
    all_serve()?;
    for _ in 0..2 {
        kill_it(&instance)?;
        instance = instance.again()?;
        all_serve()?;
    }
    kernel_has_none(80)?;
    let pid: i32 = std::fs::read_to_string(folder.join("pid"))?
        .trim()
        .parse()?;
    kill(Pid::from_raw(pid), Signal::SIGHUP)?;
    all_serve()?;
    kill(Pid::from_raw(pid), Signal::SIGQUIT)?;
    let status = master.wait()?;
    ensure!(status.success(), "{status}");
    instance.has_nothing_left().map(drop)
}
