//! Ends are handed on as they are: FIN one way, resets, an upstream that is not there.
use super::ENGINES;
use super::proxy::{Proxy, accepted, comes, ends, is_reset, reset, upstream};
use crate::splice_echo::{KERNEL, network, number};
use anyhow::{Result, ensure};
use hopscope_tests::Suite;
use std::io::Write;
use std::net::Shutdown;

pub(super) fn register(suite: &mut Suite) {
    for engine in ENGINES {
        let case = |name: &str| format!("splice_proxy::{name}::{engine}");
        suite.case(case("one_way_ends_before_the_other"), KERNEL, move || {
            half(engine)
        });
        suite.case(case("the_client_resets"), KERNEL, move || {
            resets(engine, true)
        });
        suite.case(case("the_upstream_resets"), KERNEL, move || {
            resets(engine, false)
        });
        suite.case(case("the_upstream_refuses"), KERNEL, move || {
            refused(engine)
        });
        suite.case(case("the_upstream_is_silent"), KERNEL, move || {
            silent(engine)
        });
    }
}

/// Each side ends first once, and hears the other for as long as it talks.
fn half(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    for client_first in [true, false] {
        let mut client = proxy.client()?;
        client.write_all(b"begin")?;
        let mut server = accepted(&listener)?;
        comes(&mut server, b"begin")?;
        let (first, second) = match client_first {
            true => (&mut client, &mut server),
            false => (&mut server, &mut client),
        };
        first.write_all(b"last words")?;
        first.shutdown(Shutdown::Write)?;
        comes(second, b"last words")?;
        ends(second)?;
        let large: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
        for message in [&b"still here"[..], &large] {
            second.write_all(message)?;
            comes(first, message)?;
        }
        second.shutdown(Shutdown::Write)?;
        ends(first)?;
    }
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/ended")? == 2, "{summary}");
    Ok(())
}

fn resets(engine: &str, by_client: bool) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    let proxy = Proxy::start(engine, to, &[])?;
    let mut client = proxy.client()?;
    client.write_all(b"hello")?;
    let mut server = accepted(&listener)?;
    comes(&mut server, b"hello")?;
    let counted = match by_client {
        true => {
            reset(client)?;
            is_reset(&mut server)?;
            "/reset_by_client"
        }
        false => {
            reset(server)?;
            is_reset(&mut client)?;
            "/reset_by_upstream"
        }
    };
    let summary = proxy.finish()?;
    ensure!(number(&summary, counted)? == 1, "{summary}");
    Ok(())
}

/// And is there the next time.
fn refused(engine: &str) -> Result<()> {
    network::own()?;
    let (listener, to) = upstream()?;
    drop(listener);
    let proxy = Proxy::start(engine, to, &[])?;
    for _ in 0..10 {
        is_reset(&mut proxy.client()?)?;
    }
    let listener = std::net::TcpListener::bind(to)?;
    let mut client = proxy.client()?;
    client.write_all(b"hello")?;
    comes(&mut accepted(&listener)?, b"hello")?;
    ends(&mut client)?;
    drop(client);
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/connect_refused")? == 10, "{summary}");
    ensure!(number(&summary, "/accepted")? == 11, "{summary}");
    Ok(())
}

/// An address that nobody has.
fn silent(engine: &str) -> Result<()> {
    network::own()?;
    for words in [
        "link add lost type veth peer name void",
        "address add 10.9.0.1/24 dev lost",
        "link set lost up",
        "link set void up",
    ] {
        network::ip(words)?;
    }
    let words = ["--connect-timeout", "300ms"];
    let proxy = Proxy::start(engine, "10.9.0.2:7".parse()?, &words)?;
    is_reset(&mut proxy.client()?)?;
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/connect_timed_out")? == 1, "{summary}");
    Ok(())
}
