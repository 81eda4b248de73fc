//! Sockets of the stack that talk to each other at its own addresses: of one program, of several. No frame is on the cable.
use super::pipeline::instance::Instance;
use super::running::{
    cable, frames, frames_at, kernel_has_none, left_nothing, on_the_stack, python, words,
};
use super::tools::{body, nginx as server};
use crate::stack::cable::{STACK, STACK_V6, files, ip};
use anyhow::{Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::process::Stdio;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Nginx, Python3, Redis};
    let python = &[Netns, Python3];
    for how in ["threads", "asyncio"] {
        let name = format!("stack::run_talks_to_itself_{how}");
        suite.case(name, python, move || alone(how));
        let name = format!("stack::pipeline_talks_to_itself_{how}");
        suite.case(name, python, move || there(how));
        let name = format!("stack::pipeline_talks_to_another_{how}");
        suite.case(name, python, move || another(how));
    }
    suite.case("stack::run_has_loopback", python, || loopback(false));
    suite.case("stack::pipeline_has_loopback", python, || loopback(true));
    suite
        .case("stack::pipeline_has_both_of_redis", &[Netns, Redis], redis)
        .in_turn();
    suite.case("stack::pipeline_has_both_of_nginx", &[Netns, Nginx], nginx);
}

fn size() -> &'static str {
    counts().pick("300000", "20000000")
}

/// What the kernel's end of the cable sends by itself, to find its neighbours.
const FEW: u64 = 40;

fn went_well(out: &Output) -> Result<()> {
    ensure!(out.code == Some(0), "{}{}", out.stdout, out.stderr);
    Ok(())
}

fn alone(how: &str) -> Result<()> {
    cable()?;
    let before = frames()?;
    for address in [STACK, STACK_V6] {
        let program = python("itself.py", &[how, address, size()]);
        let out = run(&mut on_the_stack(&["--trace"], &words(&program)))?;
        went_well(&out)?;
        left_nothing(&out.stderr)?;
    }
    ensure!(frames()? < before + FEW, "over the cable");
    Ok(())
}

fn there(how: &str) -> Result<()> {
    let instance = Instance::start(&[])?;
    let before = frames()?;
    for address in [STACK, STACK_V6] {
        let program = python("itself.py", &[how, address, size()]);
        went_well(&run(&mut instance.run(&[], &words(&program)))?)?;
    }
    ensure!(frames()? < before + FEW, "over the cable");
    instance.has_nothing_left().map(drop)
}

/// By a rule that names it.
fn loopback(there: bool) -> Result<()> {
    let instance = there.then(|| Instance::start(&[])).transpose()?;
    if !there {
        cable()?;
    }
    ip("link set lo up")?;
    let rules = files().join("rules");
    std::fs::write(&rules, "stack address=127.0.0.0/8\nstack address=::1\n")?;
    let policy = format!("--policy={}", rules.display());
    for (how, address) in [
        ("threads", "127.0.0.1"),
        ("asyncio", "127.0.0.1"),
        ("asyncio", "::1"),
    ] {
        let before = frames_at("lo")?;
        let program = python("itself.py", &[how, address, size()]);
        let mut command = match &instance {
            Some(instance) => instance.run(&[&policy], &words(&program)),
            None => on_the_stack(&[&policy], &words(&program)),
        };
        went_well(&run(&mut command)?)?;
        ensure!(frames_at("lo")? == before, "by the kernel's");
    }
    instance.map_or(Ok(()), |instance| instance.has_nothing_left().map(drop))
}

fn another(how: &str) -> Result<()> {
    let instance = Instance::start(&[])?;
    let before = frames()?;
    for address in [STACK, STACK_V6] {
        let server = python("echo_server.py", &[how, address, "7", "8"]);
        let server = Target::spawn(&mut instance.run(&[], &words(&server)))?;
        let client = python("echo_client.py", &[how, address, "7", "8", size()]);
        went_well(&run(&mut instance.run(&[], &words(&client)))?)?;
        ensure!(server.wait()?.success(), "the server failed");
    }
    ensure!(frames()? < before + FEW, "over the cable");
    instance.has_nothing_left().map(drop)
}

fn redis() -> Result<()> {
    let instance = Instance::start(&[])?;
    let pid = files().join("pid");
    let pid_file = pid.display().to_string();
    let server = [
        "redis-server",
        "--bind",
        STACK,
        "--save",
        "",
        "--protected-mode",
        "no",
        "--pidfile",
        &pid_file,
    ];
    let mut command = instance.run(&[], &server);
    command.stdout(Stdio::null());
    let server = Target::spawn_with_ready_file(&mut command, &pid)?;
    kernel_has_none(6379)?;
    let before = frames()?;
    let requests = counts().pick("20000", "1000000");
    let bench = [
        "redis-benchmark",
        "-h",
        STACK,
        "-n",
        requests,
        "-t",
        "set,get",
        "--csv",
    ];
    went_well(&run(&mut instance.run(&[], &bench))?)?;
    ensure!(frames()? < before + FEW, "over the cable");
    let end = ["redis-cli", "-h", STACK, "shutdown", "nosave"];
    run(&mut instance.run(&[], &end))?;
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left().map(drop)
}

/// A proxy in front of itself, and its client.
fn nginx() -> Result<()> {
    let instance = Instance::start(&[])?;
    let folder = files().join("nginx");
    let bytes = body(&folder, counts().pick(5_000_000, 100_000_000))?;
    let listen = format!(
        "listen {STACK}:80; }} server {{ listen {STACK}:8080; location / {{ proxy_pass http://{STACK}; proxy_max_temp_file_size 0; }}"
    );
    let whole = server(&folder, &listen, "user root; worker_processes 2;")?;
    let mut program = vec!["/usr/sbin/nginx".to_owned()];
    program.extend(whole.get_args().map(|w| w.to_string_lossy().into_owned()));
    let mut command = instance.run(&[], &words(&program));
    let server = Target::spawn_with_ready_file(&mut command, &folder.join("pid"))?;
    kernel_has_none(8080)?;
    let before = frames()?;
    let got = files().join("got");
    let to = got.display().to_string();
    let url = format!("http://{STACK}:8080/body");
    let client = ["/usr/bin/curl", "-sS", "-o", &to, &url];
    went_well(&run(&mut instance.run(&[], &client))?)?;
    ensure!(std::fs::read(&got)? == bytes, "the body differs");
    ensure!(frames()? < before + FEW, "over the cable");
    server.signal(nix::sys::signal::Signal::SIGQUIT)?;
    ensure!(server.wait()?.success(), "the server failed");
    instance.has_nothing_left().map(drop)
}
