//! Bytes that are there before the two sockets are joined: they come first, and they come at all. The
//! proxy is stopped (SIGSTOP) where it must not have accepted yet.
use super::ENGINES;
use super::proxy::{Proxy, accepted, comes, ends, moved, upstream};
use crate::splice_echo::cases::overlap;
use crate::splice_echo::server::Server;
use crate::splice_echo::{KERNEL, OVERLAP, network, number};
use anyhow::{Result, ensure};
use hopscope_tests::Suite;
use nix::sys::signal::Signal;
use std::io::Write;
use std::net::Shutdown;

pub(super) fn register(suite: &mut Suite) {
    let name = "splice_proxy::bytes_that_come_again_are_handed_on_once";
    suite.case(name, OVERLAP, again);
    for engine in ENGINES {
        let case = |name: &str| format!("splice_proxy::{name}::{engine}");
        suite.case(case("the_client_is_early"), KERNEL, move || client(engine));
        suite.case(case("the_upstream_is_early"), KERNEL, move || {
            greeting(engine)
        });
        suite.case(case("the_client_ended_early"), KERNEL, move || {
            ended(engine)
        });
    }
}

fn again() -> Result<()> {
    network::own()?;
    let echo = Server::start(&["--mode", "user", "--listen", "127.0.0.1:0"])?;
    let proxy = Proxy::start("kernel", echo.address, &[])?;
    overlap(proxy.address.port())?;
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/kernel/overlaps")? > 0, "{summary}");
    ensure!(number(&summary, "/kernel/bytes_up")? == 40_000, "{summary}");
    Ok(())
}

/// Nothing by the other engine.
fn by(engine: &str, proxy: Proxy, up: u64, down: u64) -> Result<()> {
    let summary = proxy.finish()?;
    for (direction, bytes) in [("up", up), ("down", down)] {
        let (user, kernel) = moved(&summary, direction)?;
        let all = match engine {
            "user" => (bytes, 0),
            _ => (0, bytes),
        };
        ensure!((user, kernel) == all, "{direction}: {summary}");
    }
    Ok(())
}

fn client(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    proxy.signal(Signal::SIGSTOP)?;
    let mut client = proxy.client()?;
    client.write_all(b"hello")?;
    proxy.signal(Signal::SIGCONT)?;
    let mut server = accepted(&listener)?;
    comes(&mut server, b"hello")?;
    client.write_all(b"again")?;
    comes(&mut server, b"again")?;
    server.write_all(b"yes")?;
    comes(&mut client, b"yes")?;
    client.shutdown(Shutdown::Write)?;
    ends(&mut server)?;
    drop(server);
    ends(&mut client)?;
    by(engine, proxy, 10, 3)
}

/// The kernel accepts for the upstream, and it writes before the proxy goes on.
fn greeting(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    for _ in 0..20 {
        let proxy = Proxy::start(engine, to, &[])?;
        let mut client = proxy.client()?;
        let mut server = accepted(&listener)?;
        server.write_all(b"220 hello")?;
        comes(&mut client, b"220 hello")?;
        client.write_all(b"quit")?;
        comes(&mut server, b"quit")?;
        drop(client);
        ends(&mut server)?;
        drop(server);
        by(engine, proxy, 4, 9)?;
    }
    Ok(())
}

/// The kernel joins no socket that has an end: copied, and said.
fn ended(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    proxy.signal(Signal::SIGSTOP)?;
    let mut client = proxy.client()?;
    client.write_all(b"hello")?;
    client.shutdown(Shutdown::Write)?;
    proxy.signal(Signal::SIGCONT)?;
    let mut server = accepted(&listener)?;
    comes(&mut server, b"hello")?;
    ends(&mut server)?;
    server.write_all(b"yes")?;
    drop(server);
    comes(&mut client, b"yes")?;
    ends(&mut client)?;
    let summary = proxy.finish()?;
    let copied = u64::from(engine == "kernel");
    let not_joined = crate::splice_echo::number(&summary, "/not_joined_ended")?;
    ensure!(not_joined == copied, "{summary}");
    ensure!(moved(&summary, "up")? == (5, 0), "{summary}");
    Ok(())
}
