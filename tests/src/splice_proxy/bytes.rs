//! Both engines, all kinds of addresses: whatever the size of a message and however a client ends, every
//! byte gets through in order, and the end behind it.
use super::ENGINES;
use super::proxy::{Proxy, moved};
use crate::splice_echo::client::{Plan, run};
use crate::splice_echo::server::Server;
use crate::splice_echo::{KERNEL, network, number};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Suite, counts, hopscope_bin};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;

/// Where the proxy listens, where its clients come from, and where the upstream is.
struct Path {
    name: &'static str,
    listen: &'static str,
    /// What clients connect to.
    to: &'static str,
    sources: fn(u8) -> String,
    upstream: &'static str,
    /// The proxy in a namespace of its own, its clients and the upstream in another.
    across: bool,
}

const PATHS: &[Path] = &[
    Path {
        name: "v4_here",
        listen: "127.0.0.1:0",
        to: "127.0.0.1",
        sources: |last| format!("127.0.0.{last}"),
        upstream: "127.0.0.1:0",
        across: false,
    },
    Path {
        name: "v6_here",
        listen: "[::1]:0",
        to: "::1",
        sources: |last| format!("fd00:7::{last}"),
        upstream: "[::1]:0",
        across: false,
    },
    Path {
        name: "v4_to_dual_stack_to_v6",
        listen: "[::]:0",
        to: "127.0.0.1",
        sources: |last| format!("127.0.0.{last}"),
        upstream: "[::1]:0",
        across: false,
    },
    Path {
        name: "v4_across",
        listen: "10.7.0.1:0",
        to: "10.7.0.1",
        sources: |last| format!("10.7.0.{last}"),
        upstream: "10.7.0.2:0",
        across: true,
    },
    Path {
        name: "v6_across",
        listen: "[fd00:8::1]:0",
        to: "fd00:8::1",
        sources: |last| format!("fd00:8::{last}"),
        upstream: "[fd00:8::2]:0",
        across: true,
    },
];

pub(super) fn register(suite: &mut Suite) {
    for engine in ENGINES {
        for path in PATHS {
            let name = format!("splice_proxy::every_byte::{engine}_{}", path.name);
            suite.case(name, KERNEL, move || every_byte(engine, path));
        }
    }
}

fn every_byte(engine: &str, path: &Path) -> Result<()> {
    network::own()?;
    let other = match path.across {
        true => Some(network::Other::beside_this()?),
        false => None,
    };
    let upstream = Server::start_by(
        Command::new(hopscope_bin()),
        &["--mode", "user", "--listen", path.upstream],
    )?;
    let command = match &other {
        Some(other) => other.command(hopscope_bin()),
        None => Command::new(hopscope_bin()),
    };
    let words = ["--engine", engine, "--listen", path.listen];
    let proxy = Proxy::start_by(command, upstream.address, &words)?;
    let sources: Result<Vec<IpAddr>, _> =
        (2..=9).map(|last| (path.sources)(last).parse()).collect();
    let connections = counts().pick(600, 10_000);
    let outcome = run(&Plan {
        to: SocketAddr::new(path.to.parse()?, proxy.address.port()),
        sources: sources?,
        connections,
        at_once: counts().pick(200, 1000),
    })?;
    let summary = proxy.finish()?;
    outcome
        .ensure_all(connections)
        .with_context(|| summary.to_string())?;
    upstream.finish()?;
    ensure!(
        number(&summary, "/ended")? == connections as u64,
        "{summary}"
    );
    for direction in ["up", "down"] {
        let (user, kernel) = moved(&summary, direction)?;
        ensure!(user + kernel == outcome.bytes, "{direction}: {summary}");
        if engine == "user" {
            ensure!(kernel == 0, "{direction}: {summary}");
            continue;
        }
        // Clients that end at once may have done so before the upstream was there; of all others the
        // kernel has every byte.
        let copied =
            number(&summary, "/not_joined_ended")? + number(&summary, "/kernel/reader_is_slow")?;
        ensure!(kernel > outcome.bytes / 3, "{direction}: {summary}");
        ensure!(user == 0 || copied > 0, "{direction}: {summary}");
    }
    if engine == "kernel" {
        for name in ["events_lost", "no_record", "over_limit", "redirect_failed"] {
            ensure!(
                number(&summary, &format!("/kernel/{name}"))? == 0,
                "{summary}"
            );
        }
    }
    Ok(())
}
