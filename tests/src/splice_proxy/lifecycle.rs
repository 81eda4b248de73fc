//! Starting, refusing, ending, being killed.
use super::ENGINES;
use super::proxy::{Proxy, accepted, comes, ends, upstream};
use crate::splice_echo::client::{Plan, run};
use crate::splice_echo::server::Server;
use crate::splice_echo::{KERNEL, network, number};
use anyhow::{Result, bail, ensure};
use hopscope_tests::{Suite, hopscope, hopscope_bin};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    for engine in ENGINES {
        let case = |name: &str| format!("splice_proxy::{name}::{engine}");
        suite.case(
            case("open_connections_have_their_grace"),
            KERNEL,
            move || grace(engine),
        );
        suite.case(case("is_killed_and_starts_again"), KERNEL, move || {
            killed(engine)
        });
        suite.case(case("descriptors_are_given_back"), KERNEL, move || {
            descriptors(engine)
        });
        suite.case(case("too_few_descriptors"), KERNEL, move || too_few(engine));
    }
    suite.case("splice_proxy::bad_addresses_are_refused", KERNEL, refused);
}

/// Told to end, it takes nobody any more, and the one that is there ends in order.
fn grace(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &["--grace", "1min"])?;
    let mut client = proxy.client()?;
    client.write_all(b"hello")?;
    let mut server = accepted(&listener)?;
    comes(&mut server, b"hello")?;
    let address = proxy.address;
    let pid = nix::unistd::Pid::from_raw(proxy.pid() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
    while TcpStream::connect(address).is_ok() {
        std::thread::yield_now();
    }
    // Those that were still taken end with it: nobody accepts them here.
    drop(listener);
    server.write_all(b"last words")?;
    drop(server);
    comes(&mut client, b"last words")?;
    ends(&mut client)?;
    client.shutdown(Shutdown::Write)?;
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/open_at_stop")? == 0, "{summary}");
    ensure!(number(&summary, "/ended")? >= 1, "{summary}");
    Ok(())
}

/// Both ends hear of it, and the port is free at once.
fn killed(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let mut listen = "127.0.0.1:0".to_owned();
    for _ in 0..3 {
        let words = ["--engine", engine, "--listen", &listen];
        let proxy = Proxy::start_by(Command::new(hopscope_bin()), to, &words)?;
        listen = proxy.address.to_string();
        let mut client = proxy.client()?;
        client.write_all(b"hello")?;
        let mut server = accepted(&listener)?;
        comes(&mut server, b"hello")?;
        proxy.kill()?;
        for stream in [&mut client, &mut server] {
            match stream.read(&mut [0; 8]) {
                Ok(0) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
                other => bail!("{other:?} from a killed proxy"),
            }
        }
    }
    Ok(())
}

fn open(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

fn through(to: std::net::SocketAddr, connections: usize) -> Result<()> {
    let plan = Plan {
        to,
        sources: vec!["127.0.0.2".parse()?],
        connections,
        at_once: 100,
    };
    run(&plan)?.ensure_all(connections)
}

fn descriptors(engine: &str) -> Result<()> {
    network::own()?;
    let echo = Server::start(&["--mode", "user", "--listen", "127.0.0.1:0"])?;
    let proxy = Proxy::start(engine, echo.address, &[])?;
    let before = open(proxy.pid())?;
    through(proxy.address, 300)?;
    // The last ones are closed when the proxy has seen their ends; the clients have closed.
    while open(proxy.pid())? != before {
        std::thread::yield_now();
    }
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/open_at_stop")? == 0, "{summary}");
    Ok(())
}

/// Clients wait in the queue, or are reset because the upstream cannot be connected to; it is counted,
/// and the proxy serves on.
fn too_few(engine: &str) -> Result<()> {
    network::own()?;
    let echo = Server::start(&["--mode", "user", "--listen", "127.0.0.1:0"])?;
    let mut command = Command::new("prlimit");
    command.args(["--nofile=60:60", "--"]).arg(hopscope_bin());
    let words = ["--engine", engine, "--listen", "127.0.0.1:0"];
    let proxy = Proxy::start_by(command, echo.address, &words)?;
    let plan = Plan {
        to: proxy.address,
        sources: vec!["127.0.0.2".parse()?],
        connections: 200,
        at_once: 100,
    };
    let outcome = run(&plan)?;
    ensure!(outcome.hang == 0 && outcome.done > 0, "{outcome:?}");
    through(proxy.address, 1)?;
    let summary = proxy.finish()?;
    let (failed, waited) = (
        number(&summary, "/connect_failed")?,
        number(&summary, "/accept_failed")?,
    );
    ensure!(failed + waited > 0, "{summary}");
    let wrong: usize = outcome.wrong.values().sum();
    ensure!(wrong as u64 == failed, "{outcome:?}: {summary}");
    Ok(())
}

fn refused() -> Result<()> {
    network::own()?;
    let (_listener, taken) = upstream()?;
    let taken = taken.to_string();
    let proxy = ["splice", "proxy", "--to", "127.0.0.1:7", "--listen"];
    for (listen, words) in [
        (taken.as_str(), &[taken.as_str(), "in use"][..]),
        ("192.0.2.1:0", &["192.0.2.1", "assign"]),
        ("nowhere", &["nowhere", "HOST:PORT"]),
    ] {
        hopscope(&[&proxy[..], &[listen]].concat())?.expect_refusal(words)?;
    }
    Ok(())
}
