//! `--engine auto`: it measures, says what it chose and why, and does so; without the kernel's engine it
//! says that.
use super::proxy::{Proxy, ends, moved};
use crate::splice_echo::client::{Plan, run};
use crate::splice_echo::server::Server;
use crate::splice_echo::{KERNEL, network, number};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope_bin};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("splice_proxy::auto_measures_and_chooses", KERNEL, chooses);
    suite.case("splice_proxy::auto_measures_again", KERNEL, again);
    let needs = &[Requirement::Root, Requirement::Netns];
    suite.case("splice_proxy::auto_without_permission", needs, unprivileged);
    suite.case("splice_proxy::the_kernel_is_full", KERNEL, full);
}

fn echo() -> Result<Server> {
    Server::start(&["--mode", "user", "--listen", "127.0.0.1:0"])
}

fn exchange(client: &mut TcpStream) -> Result<()> {
    client.write_all(b"hello")?;
    let mut back = [0; 5];
    client.read_exact(&mut back)?;
    ensure!(&back == b"hello", "{back:?}");
    Ok(())
}

fn end(mut client: TcpStream) -> Result<()> {
    client.shutdown(Shutdown::Write)?;
    ends(&mut client)
}

/// Twelve connections that stay, six of each engine, until it has chosen.
fn measured(proxy: &mut Proxy) -> Result<(serde_json::Value, Vec<TcpStream>)> {
    let mut clients = Vec::new();
    for _ in 0..12 {
        let mut client = proxy.client()?;
        exchange(&mut client)?;
        clients.push(client);
    }
    Ok((proxy.line()?, clients))
}

fn chooses() -> Result<()> {
    network::own()?;
    let echo = echo()?;
    let mut proxy = Proxy::start("auto", echo.address, &["--window", "300ms"])?;
    let (choice, clients) = measured(&mut proxy)?;
    ensure!(choice["type"] == "choice", "{choice}");
    for engine in ["user", "kernel"] {
        let connections = number(&choice, &format!("/{engine}/connections"))?;
        ensure!(connections == 6, "{choice}");
    }
    ensure!(
        choice["why"].is_string() && choice["ratio"].is_number(),
        "{choice}"
    );
    let chosen = choice["engine"].as_str().context("no engine")?.to_owned();
    for _ in 0..10 {
        let mut client = proxy.client()?;
        exchange(&mut client)?;
        end(client)?;
    }
    for client in clients {
        end(client)?;
    }
    let summary = proxy.finish()?;
    let of = |engine: &str| number(&summary, &format!("/{engine}_connections"));
    let expected = match chosen.as_str() {
        "kernel" => (16, 6),
        _ => (6, 16),
    };
    ensure!(
        (of("kernel")?, of("user")?) == expected,
        "{chosen}: {summary}"
    );
    ensure!(number(&summary, "/choices_made")? == 1, "{summary}");
    ensure!(
        summary["choices"][0]["engine"] == chosen.as_str(),
        "{summary}"
    );
    let (user, kernel) = moved(&summary, "up")?;
    ensure!(
        user > 0 && kernel > 0 && user + kernel == 22 * 5,
        "{summary}"
    );
    Ok(())
}

fn again() -> Result<()> {
    network::own()?;
    let echo = echo()?;
    let words = ["--window", "200ms", "--again", "1ms"];
    let mut proxy = Proxy::start("auto", echo.address, &words)?;
    for _ in 0..2 {
        let (choice, clients) = measured(&mut proxy)?;
        ensure!(choice["type"] == "choice", "{choice}");
        for client in clients {
            end(client)?;
        }
    }
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/choices_made")? == 2, "{summary}");
    Ok(())
}

fn unprivileged() -> Result<()> {
    network::own()?;
    let echo = echo()?;
    let words = ["--listen", "127.0.0.1:0"];
    let said = hopscope_tests::scratch().join("said");
    let mut command = Command::new(hopscope_bin());
    command.uid(65534).gid(65534);
    command.stderr(std::fs::File::create(&said)?);
    let proxy = Proxy::start_by(command, echo.address, &words)?;
    let mut client = proxy.client()?;
    exchange(&mut client)?;
    end(client)?;
    let summary = proxy.finish()?;
    let why = summary["kernel_unavailable"].as_str();
    ensure!(why.is_some_and(|why| why.contains("root")), "{summary}");
    ensure!(number(&summary, "/user_connections")? == 1, "{summary}");
    let said = std::fs::read_to_string(said)?;
    ensure!(said.contains("--engine user for all connections"), "{said}");
    let to = echo.address.to_string();
    let mut command = Command::new(hopscope_bin());
    command.args(["splice", "proxy", "--engine", "kernel", "--to", &to]);
    command.args(words).uid(65534).gid(65534);
    hopscope_tests::command::run(&mut command)?.expect_refusal(&["--engine user", "root"])
}

/// Further connections are copied, and counted.
fn full() -> Result<()> {
    network::own()?;
    let echo = echo()?;
    let proxy = Proxy::start("kernel", echo.address, &["--kernel-connections", "10"])?;
    let plan = Plan {
        to: proxy.address,
        sources: vec!["127.0.0.2".parse()?],
        connections: 200,
        at_once: 100,
    };
    run(&plan)?.ensure_all(200)?;
    let summary = proxy.finish()?;
    ensure!(number(&summary, "/not_joined_full")? > 0, "{summary}");
    ensure!(moved(&summary, "up")?.1 > 0, "{summary}");
    Ok(())
}
