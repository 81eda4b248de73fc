//! Listeners of an instance that ends and comes back are there again, without the program.
use super::super::running::{kernel_has_none, python, words};
use super::super::tools::nginx;
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Nginx, Python3};
    for how in ["waits", "edges"] {
        suite.case(
            format!("stack::pipeline_listens_again_{how}"),
            &[Netns, Python3],
            move || listens(how),
        );
    }
    suite.case(
        "stack::pipeline_listens_again_threads",
        &[Netns, Python3],
        several,
    );
    suite.case(
        "stack::pipeline_listens_again_in_another_directory",
        &[Netns, Python3],
        moved,
    );
    suite
        .case(
            "stack::pipeline_says_whose_the_returned_instance_is",
            &[Netns, Nginx],
            others,
        )
        .in_turn();
    suite
        .case(
            "stack::pipeline_serves_on_after_each_kill",
            &[Netns, Python3],
            killed_under_load,
        )
        .in_turn();
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

/// Workers of another user may not come to an instance of root's: they say so.
fn others() -> Result<()> {
    let mut instance = Instance::start(&[])?;
    let folder = files().join("nginx");
    let listen = format!("listen {STACK}:80;");
    let plain = nginx(&folder, &listen, "user www-data; worker_processes 1;")?;
    let mut words: Vec<&str> = vec!["/usr/sbin/nginx"];
    words.extend(plain.get_args().filter_map(|word| word.to_str()));
    let master = Target::spawn_now(&mut instance.run(&[], &words))?;
    let at: SocketAddr = format!("{STACK}:80").parse()?;
    let answer = asked(at, b"GET / HTTP/1.0\r\n\r\n")?;
    ensure!(answer.starts_with("HTTP/1.1 "), "{answer:.80}");
    kill_it(&instance)?;
    instance = instance.again()?;
    let started = Instant::now();
    loop {
        let said = std::fs::read_to_string(folder.join("error.log"))?;
        if said.contains("is not for this process's user") {
            break;
        }
        ensure!(started.elapsed() < WATCHDOG, "{said}");
        std::thread::yield_now();
    }
    let pid: i32 = std::fs::read_to_string(folder.join("pid"))?
        .trim()
        .parse()?;
    kill(Pid::from_raw(pid), Signal::SIGQUIT)?;
    master.wait()?;
    instance.has_nothing_left().map(drop)
}

const THREADS: usize = 4;

/// Of threads that wait in accept each one serves, before and after.
fn several() -> Result<()> {
    let mut instance = Instance::start(&[])?;
    let program = python(
        "listens_again.py",
        &["threads", STACK, "7", &THREADS.to_string()],
    );
    let mut command = instance.run(&[], &words(&program));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let program = Target::spawn(&mut command)?;
    let at: SocketAddr = format!("{STACK}:7").parse()?;
    for _ in 0..3 {
        ensure!(asked(at, b"one")? == "one");
        let clients = (0..THREADS).map(|_| TcpStream::connect(at));
        let clients = clients.collect::<Result<Vec<_>, _>>()?;
        // Those that came first keep their threads waiting.
        for mut client in clients.iter().rev() {
            client.set_read_timeout(Some(WATCHDOG))?;
            client.write_all(b"hello")?;
            let mut back = [0; 5];
            client.read_exact(&mut back)?;
            ensure!(&back == b"hello");
        }
        drop(clients);
        kill_it(&instance)?;
        instance = instance.again()?;
    }
    program.signal(Signal::SIGKILL)?;
    program.wait()?;
    instance.has_nothing_left().map(drop)
}

/// The directory of the instance's socket is removed, or moved away, and made anew, before it is back.
fn moved() -> Result<()> {
    let own = std::env::temp_dir().join(format!("hopscope-{}-moved", std::process::id()));
    let folder = own.join("a");
    let mut instance = Instance::start_in(&folder)?;
    let program = python("listens_again.py", &["edges", STACK, "7", "3"]);
    let mut command = instance.run(&[], &words(&program));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut program = Target::spawn(&mut command)?;
    let mut out = BufReader::new(program.child().stdout.take().context("piped")?);
    let at: SocketAddr = format!("{STACK}:7").parse()?;
    ensure!(asked(at, b"first")? == "first");
    for way in ["moved", "removed"] {
        kill_it(&instance)?;
        let mut line = String::new();
        while line != "ENETDOWN\n" {
            line.clear();
            ensure!(out.read_line(&mut line)? > 0, "the program has ended");
        }
        match way {
            "moved" => std::fs::rename(&folder, own.join("b"))?,
            _ => std::fs::remove_dir_all(&folder)?,
        }
        std::fs::create_dir(&folder)?;
        instance = instance.again()?;
        let back = asked(at, way.as_bytes())?;
        ensure!(back == way, "{back}");
    }
    let status = program.wait()?;
    ensure!(status.success(), "{status}");
    instance.has_nothing_left()?;
    Ok(std::fs::remove_dir_all(own)?)
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

/// Answers in each round before the instance is killed again.
const ANSWERS: u64 = 300;
/// What is under way when the instance is killed is lost to a peer that hears nothing more; it is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Clients on the kernel's stack and on the instance's, as fast as they can, while the instance is killed: what a program on it has is over
/// at once, and once it is back all are served as before.
fn killed_under_load() -> Result<()> {
    let instance = Instance::start(&[])?;
    let server = python("listens_again.py", &["edges", STACK, "7", "1000000000"]);
    let mut command = instance.run(&[], &words(&server));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let server = Target::spawn(&mut command)?;
    let peer = TcpListener::bind((KERNEL, 7))?;
    std::thread::spawn(move || {
        for stream in peer.incoming().flatten() {
            // Of one that has gone it hears nothing more.
            std::thread::spawn(|| echo(stream));
        }
    });
    let client = python("asks_on.py", &[KERNEL, "7"]);
    let mut command = instance.run(&[], &words(&client));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut client = Target::spawn(&mut command)?;
    let said = BufReader::new(client.child().stdout.take().context("piped")?);
    let stop = AtomicBool::new(false);
    let answers: [AtomicU64; 2] = Default::default();
    let instance = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let is_served = echoed().is_ok_and(|back| &back == b"hello");
                    answers[0].fetch_add(is_served.into(), Ordering::Relaxed);
                }
            });
        }
        // A line for each answer.
        scope.spawn(|| {
            for _ in said.lines() {
                answers[1].fetch_add(1, Ordering::Relaxed);
            }
        });
        let done = killed_again_and_again(instance, &answers);
        stop.store(true, Ordering::Relaxed);
        for program in [&client, &server] {
            program.signal(Signal::SIGTERM)?;
        }
        done
    })?;
    instance.has_nothing_left().map(drop)
}

/// After each time both ways go on.
fn killed_again_and_again(mut instance: Instance, answers: &[AtomicU64; 2]) -> Result<Instance> {
    for _ in 0..counts().pick(3, 60) {
        let now = || {
            answers
                .each_ref()
                .map(|count| count.load(Ordering::Relaxed))
        };
        let (before, started) = (now(), Instant::now());
        let most = counts().pick(ANSWERS, 20 * ANSWERS);
        while now()
            .iter()
            .zip(before)
            .any(|(now, before)| now - before < most)
        {
            ensure!(
                started.elapsed() < WATCHDOG,
                "{:?} answers, {before:?} before",
                now()
            );
            std::thread::yield_now();
        }
        kill_it(&instance)?;
        instance = instance.again()?;
    }
    Ok(instance)
}

fn echo(mut stream: TcpStream) -> std::io::Result<()> {
    let mut bytes = [0; 100];
    let count = stream.read(&mut bytes)?;
    stream.write_all(&bytes[..count])
}

fn echoed() -> Result<[u8; 5]> {
    let at: SocketAddr = format!("{STACK}:7").parse()?;
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"hello")?;
    let mut back = [0; 5];
    stream.read_exact(&mut back)?;
    Ok(back)
}
