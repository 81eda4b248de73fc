//! Servers that everybody has, on the stack: nginx, redis.
use super::running::{cable, frames, kernel_has_none, on_the_stack};
use super::tools::{body, nginx};
use crate::stack::cable::{STACK, STACK_V6, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Redis, Wrk};
    let needs = &[Netns, Nginx, Curl, Wrk];
    for (name, more) in [
        ("one_process", "master_process off;"),
        ("one_worker", "worker_processes 1;"),
    ] {
        suite
            .case(
                format!("stack::run_serves_with_nginx_{name}"),
                needs,
                move || serves(more),
            )
            .in_turn();
    }
    suite
        .case("stack::run_serves_with_redis", &[Netns, Redis], redis)
        .in_turn();
}

fn serves(more: &str) -> Result<()> {
    cable()?;
    let folder = files().join("nginx");
    let bytes = body(&folder, counts().pick(5_000_000, 100_000_000))?;
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let listen = format!("listen {STACK}:80; listen [{STACK_V6}]:80;");
    let plain = nginx(&folder, &listen, &format!("user root; {more}"))?;
    let words: Vec<String> = std::iter::once(plain.get_program())
        .chain(plain.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut command = on_the_stack(&[], &super::running::words(&words));
    command.stdin(Stdio::null());
    let server = Target::spawn_with_ready_file(&mut command, &folder.join("pid"))?;
    kernel_has_none(80)?;
    let before = frames()?;
    for host in [STACK.to_owned(), format!("[{STACK_V6}]")] {
        let got = files().join("got");
        let url = format!("http://{host}/body");
        let mut curl = Command::new("curl");
        curl.args([
            "-sS",
            "--max-time",
            "60",
            "--retry",
            "20",
            "--retry-connrefused",
            "-o",
        ])
        .arg(&got)
        .arg(&url);
        let out = run(&mut curl)?;
        ensure!(out.code == Some(0), "{}", out.stderr);
        ensure!(std::fs::read(&got)? == bytes, "the body differs");
    }
    answers(&["-H", "Connection: close"])?;
    let mut answered = 0;
    let wanted = counts().pick(1, 10_000_000);
    while answered < wanted {
        answered += answers(&[])?;
    }
    ensure!(frames()? > before + 1_000, "not over the cable");
    server.signal(Signal::SIGQUIT)?;
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

/// How many requests of wrk were answered, all of them in order.
fn answers(more: &[&str]) -> Result<u64> {
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c64", "-d", counts().pick("1s", "20s")])
        .args(more)
        .arg(format!("http://{STACK}/small"));
    let out = run(&mut wrk)?;
    ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
    ensure!(!out.stdout.contains("Socket errors"), "{}", out.stdout);
    ensure!(!out.stdout.contains("Non-2xx"), "{}", out.stdout);
    let words: Vec<&str> = out.stdout.split_whitespace().collect();
    let at = words.windows(2).find(|two| two[1] == "requests");
    let count = at.and_then(|two| two[0].parse().ok());
    count.with_context(|| out.stdout.clone())
}

/// Commands of redis-benchmark over the kernel's TCP, a background save in between, and what was set is there.
fn redis() -> Result<()> {
    cable()?;
    let folder = files();
    let dir = folder.to_str().unwrap_or(".").to_owned();
    let pid = folder.join("redis.pid");
    let words = [
        "redis-server",
        "--bind",
        STACK,
        "--port",
        "6379",
        "--save",
        "",
        "--protected-mode",
        "no",
        "--dir",
        &dir,
        "--pidfile",
        pid.to_str().unwrap_or("redis.pid"),
        "--daemonize",
        "no",
    ];
    let mut command = on_the_stack(&[], &words);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let server = Target::spawn_with_ready_file(&mut command, &pid)?;
    kernel_has_none(6379)?;
    let before = frames()?;
    let requests = counts().pick("20000", "1000000");
    for pipeline in ["1", "16"] {
        let out = run(Command::new("redis-benchmark").args([
            "-h",
            STACK,
            "-c",
            "50",
            "-n",
            requests,
            "-P",
            pipeline,
            "-t",
            "set,get,lpush",
            "--csv",
        ]))?;
        ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
        ensure!(out.stdout.lines().count() >= 4, "{}", out.stdout);
    }
    let cli = |words: &[&str]| -> Result<String> {
        let out = run(Command::new("redis-cli").args(["-h", STACK]).args(words))?;
        ensure!(
            out.code == Some(0),
            "{words:?}: {}{}",
            out.stdout,
            out.stderr
        );
        Ok(out.stdout.trim().to_owned())
    };
    ensure!(cli(&["set", "there", "still"])? == "OK");
    let saved = cli(&["bgsave"])?;
    ensure!(saved.contains("started"), "{saved}");
    ensure!(cli(&["get", "there"])? == "still");
    ensure!(frames()? > before + 1_000, "not over the cable");
    // It answers nothing: the connection ends with it.
    let _ = run(Command::new("redis-cli").args(["-h", STACK, "shutdown", "nosave"]))?;
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}
