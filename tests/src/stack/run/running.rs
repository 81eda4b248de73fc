//! A program under `stack run`, and what shows that its connections were not the kernel's.
use crate::stack::cable::{STACK, Way, files, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::programs;
use hopscope_tests::{Target, hopscope_bin};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Only what hangs takes so long.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);

/// A cable, the stack's address on no device.
pub(super) fn cable() -> Result<()> {
    namespace()?;
    Way::Packet.make()
}

/// `hopscope stack run OWN -- PROGRAM`
pub(super) fn on_the_stack(own: &[&str], program: &[&str]) -> Command {
    let mut command = Command::new(hopscope_bin());
    command
        .args(["stack", "run"])
        .args(Way::Packet.arguments())
        .args(own)
        .arg("--")
        .args(program)
        .envs(PRELOADED.get().cloned().unwrap_or_default());
    command
}

/// Variables of the environment of each program on the stack.
pub(super) static PRELOADED: OnceLock<Vec<(&str, String)>> = OnceLock::new();

/// Debian's, which no version manager's script stands in front of.
pub(super) fn python(script: &str, arguments: &[&str]) -> Vec<String> {
    let script = programs().join("stack/run").join(script);
    let mut words = vec![
        "/usr/bin/python3".into(),
        // The tree stays as it is.
        "-B".into(),
        script.display().to_string(),
    ];
    words.extend(arguments.iter().map(ToString::to_string));
    words
}

pub(super) fn words(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// A server on the stack that makes a ready file.
pub(super) struct Server {
    target: Target,
    said: PathBuf,
}

impl Server {
    /// With `--trace`: it says at its end what it leaves.
    pub(super) fn start(program: &[&str]) -> Result<Server> {
        Server::spawn(&mut on_the_stack(&["--trace"], program))
    }

    pub(super) fn spawn(command: &mut Command) -> Result<Server> {
        let said = files().join("server-said");
        command.stdin(Stdio::null()).stderr(File::create(&said)?);
        let target = Target::spawn(command)?;
        Ok(Server { target, said })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    pub(super) fn said(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.said)?)
    }

    /// By itself, in order, with nothing left open.
    pub(super) fn ends(self) -> Result<()> {
        let status = self.target.wait()?;
        let said = std::fs::read_to_string(self.said)?;
        ensure!(status.success(), "{status}: {said}");
        left_nothing(&said)
    }
}

/// Until it is so.
pub(super) fn until(what: &str, mut is: impl FnMut() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !is()? {
        ensure!(started.elapsed() < WATCHDOG, "{what}");
        std::thread::yield_now();
    }
    Ok(())
}

/// What `--trace` says at the end of a program.
pub(super) fn left_nothing(said: &str) -> Result<()> {
    // Only libc's own, such as getaddrinfo's.
    let by_passed = |line: &&str| {
        line.contains("by-passed the hooks, from ") && !line.contains(" from libc.so")
    };
    let by_passed: Vec<&str> = said.lines().filter(by_passed).collect();
    ensure!(by_passed.is_empty(), "{by_passed:?}");
    let mut ends = said
        .lines()
        .filter(|line| line.contains("the program has ended"))
        .peekable();
    ensure!(ends.peek().is_some(), "no end: {said}");
    ensure!(
        ends.all(|end| end.contains(" 0 connections, 0 bytes in buffers")),
        "{said}"
    );
    Ok(())
}

/// More than so many frames came over the cable since then, for an address that is on no device.
pub(super) fn over_the_cable(before: u64, least: u64) -> Result<()> {
    on_no_device()?;
    let came = frames()? - before;
    ensure!(came > least, "{came} frames over the cable");
    Ok(())
}

/// Frames that the stack's end of the cable has received.
pub(super) fn frames() -> Result<u64> {
    frames_at("near")
}

pub(super) fn frames_at(device: &str) -> Result<u64> {
    let device = format!("{device}:");
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text
        .lines()
        .find_map(|line| line.trim_start().strip_prefix(&device[..]));
    // Bytes, and packets.
    let packets = line
        .and_then(|line| line.split_whitespace().nth(1))
        .context("no such device")?;
    Ok(packets.parse()?)
}

/// As [`kernel_has_none`], of UDP.
pub(super) fn kernel_has_no_datagrams(port: u16) -> Result<()> {
    kernel_has_no("-Hlun", port)
}

/// It is really not the kernel: that has no listener on the port, and the address is on no device.
pub(super) fn kernel_has_none(port: u16) -> Result<()> {
    kernel_has_no("-Hltn", port)
}

fn kernel_has_no(sockets: &str, port: u16) -> Result<()> {
    let filter = format!("sport = :{port}");
    let out = run(Command::new("ss").args([sockets, &filter]))?.expect_code(0)?;
    ensure!(
        out.stdout.trim().is_empty(),
        "the kernel listens: {}",
        out.stdout
    );
    on_no_device()
}

fn on_no_device() -> Result<()> {
    let out = run(Command::new("ip").args(["-o", "address"]))?.expect_code(0)?;
    ensure!(!out.stdout.contains(&format!("{STACK}/")), "{}", out.stdout);
    Ok(())
}
