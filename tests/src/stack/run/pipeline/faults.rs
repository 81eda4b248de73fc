//! Servers and clients of all kinds at once, and one fault after the other: after each of them new connections are served.
use super::super::running::{python, words};
use super::super::tools::nginx;
use super::instance::{Instance, WATCHDOG};
use super::killed::seeded;
use crate::stack::cable::{KERNEL, STACK, files, ip};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Nft, Nginx, Python3, Redis};
    suite
        .case(
            "stack::pipeline_serves_on_after_faults",
            &[Netns, Nft, Nginx, Python3, Redis],
            faults,
        )
        .in_turn()
        .watchdog(3_600);
}

/// What is lost in a fault is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);
const LOADS: [&str; 4] = ["nginx", "redis", "datagrams", "a client"];

/// Answers of each load, each on a connection of its own.
type Answers = [AtomicU64; LOADS.len()];

struct Programs {
    web: Target,
    folder: std::path::PathBuf,
    redis: Target,
    echo: Target,
    client: Target,
}

impl Programs {
    fn start(instance: &Instance) -> Result<Programs> {
        let folder = files().join("nginx");
        let plain = nginx(
            &folder,
            &format!("listen {STACK}:80;"),
            "user root; worker_processes 2;",
        )?;
        std::fs::write(folder.join("small"), "x".repeat(600))?;
        let mut all: Vec<&str> = vec!["/usr/sbin/nginx"];
        all.extend(plain.get_args().filter_map(|word| word.to_str()));
        let mut command = instance.run(&[], &all);
        let web = Target::spawn_with_ready_file(&mut command, &folder.join("pid"))?;
        let client = python("asks_on.py", &[KERNEL, "9"]);
        let mut command = instance.run(&[], &words(&client));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        Ok(Programs {
            web,
            folder,
            redis: redis(instance)?,
            echo: echo(instance)?,
            client: Target::spawn(&mut command)?,
        })
    }

    /// One of its processes; the master makes another one.
    fn kill_worker(&self, seed: u64) -> Result<()> {
        let master: i32 = std::fs::read_to_string(self.folder.join("pid"))?
            .trim()
            .parse()?;
        let of = format!("/proc/{master}/task/{master}/children");
        let started = Instant::now();
        let workers = loop {
            let text = std::fs::read_to_string(&of)?;
            let workers: Result<Vec<i32>, _> = text.split_whitespace().map(str::parse).collect();
            let workers = workers?;
            if workers.len() == 2 {
                break workers;
            }
            ensure!(started.elapsed() < WATCHDOG, "workers: {text}");
            std::thread::yield_now();
        };
        let worker = workers[usize::try_from(seeded(seed, 2))?];
        Ok(kill(Pid::from_raw(worker), Signal::SIGKILL)?)
    }

    fn end(self) -> Result<()> {
        let master: i32 = std::fs::read_to_string(self.folder.join("pid"))?
            .trim()
            .parse()?;
        kill(Pid::from_raw(master), Signal::SIGQUIT)?;
        for program in [self.redis, self.echo, self.client] {
            program.signal(Signal::SIGKILL)?;
            let _ = program.wait()?;
        }
        let status = self.web.wait()?;
        ensure!(status.success(), "nginx: {status}");
        Ok(())
    }
}

fn redis(instance: &Instance) -> Result<Target> {
    let folder = files().join("redis");
    std::fs::create_dir_all(&folder)?;
    let ready = folder.join("pid");
    let _ = std::fs::remove_file(&ready);
    let (dir, pid) = (folder.to_str(), ready.to_str());
    let program = [
        "/usr/bin/redis-server",
        "--bind",
        STACK,
        "--protected-mode",
        "no",
        "--save",
        "",
        "--dir",
        dir.context("path")?,
        "--pidfile",
        pid.context("path")?,
    ];
    let mut command = instance.run(&[], &program);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Target::spawn_with_ready_file(&mut command, &ready)
}

fn echo(instance: &Instance) -> Result<Target> {
    let server = python("datagram_echo.py", &["blocking", STACK, "7"]);
    let mut command = instance.run(&[], &words(&server));
    command.stderr(Stdio::null());
    Target::spawn(&mut command)
}

/// The kernel's, for the client on the stack.
fn peer() -> Result<()> {
    let peer = TcpListener::bind((KERNEL, 9))?;
    std::thread::spawn(move || {
        for stream in peer.incoming().flatten() {
            std::thread::spawn(move || -> std::io::Result<()> {
                let mut stream = stream;
                let mut bytes = [0; 100];
                let count = stream.read(&mut bytes)?;
                stream.write_all(&bytes[..count])
            });
        }
    });
    Ok(())
}

fn asks(port: u16, sent: &[u8], last: &[u8]) -> Result<()> {
    let at: SocketAddr = format!("{STACK}:{port}").parse()?;
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(sent)?;
    let mut back = Vec::new();
    while !back.ends_with(last) {
        let mut bytes = [0; 2000];
        let count = stream.read(&mut bytes)?;
        ensure!(count > 0, "an end");
        back.extend_from_slice(&bytes[..count]);
    }
    Ok(())
}

fn asks_by_datagram(n: u64) -> Result<()> {
    let socket = UdpSocket::bind((KERNEL, 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    socket.send_to(&n.to_le_bytes(), (STACK, 7))?;
    let mut back = [0; 9];
    let count = socket.recv(&mut back)?;
    ensure!(back[..count] == n.to_le_bytes(), "{count} bytes");
    Ok(())
}

/// Of load `n`, until all is over.
fn load(n: usize, answers: &Answers, is_over: &AtomicBool) {
    let http = b"GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    while !is_over.load(Ordering::Relaxed) {
        let done = match n {
            0 => asks(80, http, &[b'x'; 600]),
            1 => asks(6379, b"PING\r\n", b"+PONG\r\n"),
            _ => asks_by_datagram(answers[n].load(Ordering::Relaxed)),
        };
        match done {
            Ok(()) => answers[n].fetch_add(1, Ordering::Relaxed),
            Err(_) => {
                std::thread::yield_now();
                0
            }
        };
    }
}

/// So many more of each.
fn all_answer(answers: &Answers, more: u64, after: &str) -> Result<()> {
    let before = answers
        .each_ref()
        .map(|count| count.load(Ordering::Relaxed));
    let started = Instant::now();
    for (n, name) in LOADS.iter().enumerate() {
        while answers[n].load(Ordering::Relaxed) < before[n] + more {
            ensure!(
                started.elapsed() < WATCHDOG,
                "{name}, after {after}: no answers"
            );
            std::thread::yield_now();
        }
    }
    Ok(())
}

const FAULTS: [&str; 6] = [
    "the instance's end",
    "a worker's end",
    "redis' end",
    "the echo's end",
    "a device that was down",
    "losses",
];

fn fault(
    which: usize,
    seed: u64,
    mut instance: Instance,
    programs: &mut Programs,
    answers: &Answers,
) -> Result<Instance> {
    match which {
        0 => {
            kill(Pid::from_raw(instance.pid()), Signal::SIGKILL)?;
            // Its socket is lost, and it hears of it.
            let status = programs.echo.wait_at_most(WATCHDOG)?;
            ensure!(!status.success(), "the echo of datagrams goes on: {status}");
            instance = instance.again()?;
            programs.echo = echo(&instance)?;
        }
        1 => programs.kill_worker(seed)?,
        2 => {
            programs.redis.signal(Signal::SIGKILL)?;
            programs.redis.wait_at_most(WATCHDOG)?;
            programs.redis = redis(&instance)?;
        }
        3 => {
            programs.echo.signal(Signal::SIGKILL)?;
            programs.echo.wait_at_most(WATCHDOG)?;
            programs.echo = echo(&instance)?;
        }
        4 => {
            ip("link set near down")?;
            let started = Instant::now();
            while instance.stats()?["engines"][0]["link"]["is_up"] != false {
                ensure!(started.elapsed() < WATCHDOG, "the device is up");
            }
            ip("link set near up")?;
        }
        _ => {
            // Of what the stack sends.
            let lossy = "add table ip lossy; add chain ip lossy in { type filter hook input priority 0; }; \
                         add rule ip lossy in iifname far numgen random mod 100 < 5 drop";
            run(Command::new("nft").arg(lossy))?.expect_code(0)?;
            all_answer(answers, counts().pick(5, 50), "the first losses")?;
            run(Command::new("nft").arg("delete table ip lossy"))?.expect_code(0)?;
        }
    }
    Ok(instance)
}

/// Each of them once, then any, after so many answers.
fn one_after_the_other(
    mut instance: Instance,
    programs: &mut Programs,
    answers: &Answers,
) -> Result<Instance> {
    all_answer(answers, 10, "the start")?;
    for round in 0..counts().pick(FAULTS.len(), 300) {
        let seed = u64::try_from(round)?;
        let which = match round {
            first if first < FAULTS.len() => first,
            _ => usize::try_from(seeded(seed, 6))?,
        };
        all_answer(answers, seeded(seed + 1_000, counts().pick(20, 300)), "all")?;
        instance = fault(which, seed, instance, programs, answers)?;
        all_answer(answers, 10, FAULTS[which])?;
    }
    Ok(instance)
}

fn faults() -> Result<()> {
    let instance = Instance::start(&[])?;
    peer()?;
    let mut programs = Programs::start(&instance)?;
    let said = programs.client.child().stdout.take().context("piped")?;
    let answers = Answers::default();
    let is_over = AtomicBool::new(false);
    let instance = std::thread::scope(|scope| {
        for n in 0..3 {
            let (answers, is_over) = (&answers, &is_over);
            scope.spawn(move || load(n, answers, is_over));
        }
        scope.spawn(|| {
            for _ in BufReader::new(said).lines() {
                answers[3].fetch_add(1, Ordering::Relaxed);
            }
        });
        let instance = one_after_the_other(instance, &mut programs, &answers);
        is_over.store(true, Ordering::Relaxed);
        programs.end()?;
        instance
    })?;
    instance.has_nothing_left().map(drop)
}
