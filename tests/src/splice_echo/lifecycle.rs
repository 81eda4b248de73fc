//! Starting, refusing, ending: descriptors, ports, what the machine lacks.
use super::client::{Plan, run};
use super::server::Server;
use super::{KERNEL, network, number};
use anyhow::{Result, bail, ensure};
use hopscope_tests::{Requirement, Suite, hopscope, hopscope_bin};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

const MODES: [&str; 4] = ["kernel", "user", "user-mt", "uring"];

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "splice_echo::descriptors_are_given_back",
        KERNEL,
        descriptors,
    );
    suite.case(
        "splice_echo::too_few_descriptors_are_counted",
        KERNEL,
        too_few,
    );
    suite.case("splice_echo::restarts_at_once", KERNEL, restarts);
    suite.case("splice_echo::a_port_in_use_is_refused", KERNEL, port_in_use);
    suite.case("splice_echo::no_cgroup_is_refused", KERNEL, no_cgroup);
    let needs = &[Requirement::Root];
    suite.case(
        "splice_echo::no_permission_is_refused",
        needs,
        not_permitted,
    );
}

fn plan(server: &Server, connections: usize) -> Result<Plan> {
    Ok(Plan {
        to: server.address,
        sources: vec!["127.0.0.2".parse()?],
        connections,
        at_once: 100,
    })
}

/// Descriptors of a process, by what they are: how many of it the program opens itself is its own business.
fn open(server: &Server) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{}/fd", server.pid()))?.count())
}

fn descriptors() -> Result<()> {
    network::own()?;
    for mode in MODES {
        let server = Server::start(&["--mode", mode, "--listen", "127.0.0.1:0"])?;
        let before = open(&server)?;
        run(&plan(&server, 300)?)?.ensure_all(300)?;
        // The last ones are closed when the server has seen their ends; the clients have closed.
        while open(&server)? != before {
            std::thread::yield_now();
        }
        let summary = server.finish()?;
        ensure!(number(&summary, "/open_at_stop")? == 0, "{mode}: {summary}");
    }
    Ok(())
}

/// Clients wait in the queue until others are through; every one is served.
fn too_few() -> Result<()> {
    network::own()?;
    for mode in MODES {
        let mut command = Command::new("prlimit");
        command.args(["--nofile=40:40", "--"]).arg(hopscope_bin());
        let server = Server::start_by(command, &["--mode", mode, "--listen", "127.0.0.1:0"])?;
        // More than it has descriptors for, and none of them ends before it has found that out.
        let connect = |_| TcpStream::connect(server.address);
        let waiting: Vec<TcpStream> = (0..60).map(connect).collect::<Result<_, _>>()?;
        while open(&server)? < 40 || !is_idle(&server)? {
            std::thread::yield_now();
        }
        // Whoever is served makes room: which are first is not known, where threads have a queue each.
        let mut waiting = waiting;
        for stream in &mut waiting {
            stream.write_all(b"hello")?;
            stream.set_nonblocking(true)?;
        }
        while !waiting.is_empty() {
            let mut left = Vec::new();
            for mut stream in waiting {
                let mut back = [0; 5];
                match stream.peek(&mut back) {
                    Ok(5) => stream.read_exact(&mut back)?,
                    Ok(0) => bail!("{mode}: ended without an answer"),
                    Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                    _ => {
                        left.push(stream);
                        continue;
                    }
                }
                ensure!(&back == b"hello", "{mode}: {back:?}");
            }
            waiting = left;
        }
        let summary = server.finish()?;
        ensure!(number(&summary, "/accept_failed")? > 0, "{mode}: {summary}");
    }
    Ok(())
}

/// All of its threads wait: what it could do with what has come is done.
fn is_idle(server: &Server) -> Result<bool> {
    for task in std::fs::read_dir(format!("/proc/{}/task", server.pid()))? {
        let stat = std::fs::read_to_string(task?.path().join("stat"))?;
        if !stat.contains(") S ") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// With connections of the server before still in the kernel.
fn restarts() -> Result<()> {
    network::own()?;
    for mode in MODES {
        let mut listen = "127.0.0.1:0".to_owned();
        for _ in 0..3 {
            let server = Server::start(&["--mode", mode, "--listen", &listen])?;
            listen = server.address.to_string();
            let mut stream = TcpStream::connect(server.address)?;
            let mut back = [0; 5];
            stream.write_all(b"hello")?;
            stream.read_exact(&mut back)?;
            let summary = server.finish()?;
            ensure!(number(&summary, "/open_at_stop")? == 1, "{mode}: {summary}");
        }
    }
    Ok(())
}

fn port_in_use() -> Result<()> {
    network::own()?;
    let server = Server::start(&["--mode", "user-mt", "--listen", "127.0.0.1:0"])?;
    let listen = server.address.to_string();
    for mode in MODES {
        let out = hopscope(&["splice", "echo", "--mode", mode, "--listen", &listen])?;
        out.expect_refusal(&[&listen, "in use"])?;
    }
    Ok(())
}

fn no_cgroup() -> Result<()> {
    network::own()?;
    let words = [
        "splice",
        "echo",
        "--listen",
        "127.0.0.1:0",
        "--cgroup",
        "/proc",
    ];
    hopscope(&words)?.expect_refusal(&["/proc", "--mode user"])
}

fn not_permitted() -> Result<()> {
    let mut command = Command::new(hopscope_bin());
    command.args(["splice", "echo", "--listen", "127.0.0.1:0"]);
    let out = hopscope_tests::command::run(command.uid(65534).gid(65534))?;
    out.expect_refusal(&["--mode user"])
}
