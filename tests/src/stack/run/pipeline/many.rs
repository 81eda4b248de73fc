//! Servers with several processes that have connections: PostgreSQL, sshd, redis and its copy, haproxy.
use super::super::running::{frames, kernel_has_none};
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::requirement::postgres;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Postgres, Redis, Root, Sshd};
    let needs = &[Root, Netns, Postgres];
    suite
        .case("stack::pipeline_serves_with_postgres", needs, databases)
        .in_turn();
    suite.case("stack::pipeline_serves_with_sshd", &[Netns, Sshd], shells);
    suite
        .case("stack::pipeline_copies_with_redis", &[Netns, Redis], copies)
        .in_turn();
}

/// Until a command says what it is to say.
pub(super) fn until(mut command: impl FnMut() -> Command, says: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let out = run(&mut command())?;
        if out.stdout.contains(says) {
            return Ok(());
        }
        ensure!(
            started.elapsed() < WATCHDOG,
            "{says}: {}{}",
            out.stdout,
            out.stderr
        );
        std::thread::yield_now();
    }
}

/// A process for each connection, which its parent accepts and closes.
fn databases() -> Result<()> {
    let bin = postgres().context("no postgres")?;
    let tool = |name: &str| bin.join(name).display().to_string();
    let instance = Instance::start(&[])?;
    // The program does not run as root.
    std::fs::set_permissions(instance.socket(), PermissionsExt::from_mode(0o666))?;
    let data = std::env::temp_dir().join(format!("hopscope-{}.postgres", std::process::id()));
    let at = data.to_str().context("path")?;
    let as_owner = |words: &[&str]| -> Command {
        let mut command = Command::new("runuser");
        command
            .args(["-u", "postgres", "--"])
            .args(words)
            .current_dir("/");
        command
    };
    let _gone = RemovedAtEnd(&data);
    run(&mut as_owner(&[
        &tool("initdb"),
        "-D",
        at,
        "-A",
        "trust",
        "--no-sync",
    ]))?
    .expect_code(0)?;
    let rules = format!("host all all {KERNEL}/32 trust\n");
    std::fs::write(data.join("pg_hba.conf"), rules)?;
    let program = [
        &tool("postgres"),
        "-D",
        at,
        "-c",
        &format!("listen_addresses={STACK}"),
        "-c",
        &format!("unix_socket_directories={at}"),
        "-c",
        "fsync=off",
    ];
    let whole = instance.run(&[], &program);
    let words: Vec<&str> = std::iter::once(whole.get_program())
        .chain(whole.get_args())
        .filter_map(|word| word.to_str())
        .collect();
    let mut command = as_owner(&words);
    command.stderr(Stdio::null()).stdout(Stdio::null());
    let server = Target::spawn_now(&mut command)?;
    let client = |words: &[&str]| -> Command {
        let mut command = Command::new(tool("psql"));
        command
            .args(["-h", STACK, "-U", "postgres", "-Atc"])
            .args(words);
        command
    };
    until(|| client(&["select 'it ' || 'answers'"]), "it answers")?;
    kernel_has_none(5432)?;
    let before = frames()?;
    let bench = |words: &[&str]| -> Result<String> {
        let out = run(Command::new(tool("pgbench"))
            .args(["-h", STACK, "-U", "postgres"])
            .args(words)
            .arg("postgres"))?
        .expect_code(0)?;
        Ok(out.stdout + &out.stderr)
    };
    bench(&["-i", "-q"])?;
    let transactions = counts().pick("50", "5000");
    let said = bench(&["-c", "8", "-j", "2", "-t", transactions])?;
    ensure!(said.contains("failed transactions: 0 "), "{said}");
    // A connection for each.
    let said = bench(&["-C", "-c", "4", "-t", counts().pick("10", "500")])?;
    ensure!(said.contains("failed transactions: 0 "), "{said}");
    let long = run(&mut client(&["select repeat('x', 3000000)"]))?.expect_code(0)?;
    ensure!(long.stdout.len() == 3_000_001, "{}", long.stdout.len());
    ensure!(frames()? > before + 1_000, "not over the cable");
    let pid = std::fs::read_to_string(data.join("postmaster.pid"))?;
    let pid = pid.lines().next().context("no number")?.parse()?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGINT)?;
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    instance.has_nothing_left().map(drop)
}

struct RemovedAtEnd<'a>(&'a Path);

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0);
    }
}

/// It forks and executes itself for each connection, shuts its parts into a sandbox, and hands its end on to shells.
fn shells() -> Result<()> {
    let instance = Instance::start(&[])?;
    let folder = files();
    for name in ["host", "user"] {
        let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
        run(Command::new("ssh-keygen")
            .args(words)
            .arg(folder.join(name)))?
        .expect_code(0)?;
    }
    std::fs::create_dir_all("/run/sshd")?;
    std::fs::set_permissions("/run/sshd", PermissionsExt::from_mode(0o755))?;
    let at = |name: &str| folder.join(name).display().to_string();
    let options = [
        format!("ListenAddress={STACK}:22"),
        format!("HostKey={}", at("host")),
        format!("AuthorizedKeysFile={}", at("user.pub")),
        format!("PidFile={}", at("pid")),
        "StrictModes=no".into(),
        "UsePAM=no".into(),
    ];
    let mut program = vec!["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"];
    program.extend(options.iter().flat_map(|option| ["-o", option.as_str()]));
    let mut command = instance.run(&[], &program);
    command.stderr(std::fs::File::create(folder.join("sshd-said"))?);
    let server = Target::spawn_with_ready_file(&mut command, &folder.join("pid"))?;
    kernel_has_none(22)?;
    let before = frames()?;
    let shell = |command: &str| -> Result<String> {
        let mut ssh = Command::new("ssh");
        ssh.args(["-F", "/dev/null", "-o", "BatchMode=yes"])
            .args([
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
            ])
            .args(["-i", &at("user"), &format!("root@{STACK}"), command])
            .stdin(Stdio::null());
        Ok(run(&mut ssh)?.expect_code(0)?.stdout)
    };
    let peers = shell("echo $SSH_CONNECTION")?;
    ensure!(
        peers.starts_with(KERNEL) && peers.contains(&format!("{STACK} 22")),
        "{peers}"
    );
    let bytes = counts().pick(3_000_000, 300_000_000);
    let sum = shell(&format!("head -c {bytes} /dev/zero | tr '\\0' x"))?;
    ensure!(sum.len() == bytes && sum.bytes().all(|byte| byte == b'x'));
    ensure!(frames()? > before + 20, "not over the cable");
    server.signal(Signal::SIGTERM)?;
    server.wait()?;
    instance.has_nothing_left().map(drop)
}

/// The one at the kernel's end copies what the one on the stack has, which saves it in a child and sends it.
fn copies() -> Result<()> {
    let instance = Instance::start(&[])?;
    let folder = files();
    let start = |address: &str, name: &str, more: &[&str]| -> Vec<String> {
        let pid = folder.join(name).display().to_string();
        let dir = folder.display().to_string();
        let all = [
            "/usr/bin/redis-server",
            "--bind",
            address,
            "--save",
            "",
            "--protected-mode",
            "no",
            "--repl-diskless-sync",
            "no",
            "--dir",
            &dir,
            "--dbfilename",
            &format!("{name}.rdb"),
            "--pidfile",
            &pid,
        ]
        .map(str::to_owned);
        let more = more.iter().map(ToString::to_string);
        all.into_iter().chain(more).collect()
    };
    let words = start(STACK, "first", &["--io-threads", "2"]);
    let mut command = instance.run(&[], &super::super::running::words(&words));
    command.stdout(Stdio::null());
    let first = Target::spawn_with_ready_file(&mut command, &folder.join("first"))?;
    kernel_has_none(6379)?;
    let cli = |host: &'static str, words: &[&str]| -> Command {
        let mut command = Command::new("redis-cli");
        command.args(["-h", host]).args(words);
        command
    };
    let value = "v".repeat(100_000);
    let requests = counts().pick("20000", "1000000");
    let words = [
        "-h", STACK, "-c", "50", "-n", requests, "-t", "set,get", "--csv",
    ];
    run(Command::new("redis-benchmark").args(words))?.expect_code(0)?;
    run(&mut cli(STACK, &["set", "long", &value]))?.expect_code(0)?;
    let words = start(KERNEL, "second", &["--replicaof", STACK, "6379"]);
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let second = Target::spawn_with_ready_file(&mut command, &folder.join("second"))?;
    until(|| cli(KERNEL, &["get", "long"]), &value)?;
    run(&mut cli(STACK, &["set", "later", "there"]))?.expect_code(0)?;
    until(|| cli(KERNEL, &["get", "later"]), "there")?;
    for (host, server) in [(KERNEL, second), (STACK, first)] {
        // It answers nothing: the connection ends with it.
        let _ = run(&mut cli(host, &["shutdown", "nosave"]));
        let status = server.wait()?;
        ensure!(status.success(), "{status}");
    }
    instance.has_nothing_left().map(drop)
}
