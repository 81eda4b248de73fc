//! All modes and all ways: whatever the size of a message and however a client ends, every byte comes
//! back in order, and the end behind it.
use super::client::{Plan, run};
use super::server::Server;
use super::{KERNEL, network, number};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, counts, hopscope_bin};
use std::net::IpAddr;

/// How the kernel is expected to have sent them back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Egress,
    Ingress,
    User,
}

struct Path {
    name: &'static str,
    words: &'static [&'static str],
    way: Way,
    /// The server in a namespace of its own.
    across: bool,
    v6: bool,
    /// A dual-stack server is asked over IPv4.
    dual: bool,
}

const fn path(
    name: &'static str,
    words: &'static [&'static str],
    way: Way,
    across: bool,
    v6: bool,
) -> Path {
    Path {
        name,
        words,
        way,
        across,
        v6,
        dual: false,
    }
}

const EGRESS: &[&str] = &["--mode", "kernel"];
const INGRESS: &[&str] = &["--mode", "kernel", "--local-clients"];

const KERNEL_PATHS: &[Path] = &[
    path("egress_v4_here", EGRESS, Way::Egress, false, false),
    path("egress_v6_here", EGRESS, Way::Egress, false, true),
    path("egress_v4_across", EGRESS, Way::Egress, true, false),
    path("egress_v6_across", EGRESS, Way::Egress, true, true),
    path("ingress_v4_here", INGRESS, Way::Ingress, false, false),
    path("ingress_v6_here", INGRESS, Way::Ingress, false, true),
    path("ingress_v4_across", INGRESS, Way::Ingress, true, false),
    path("ingress_v6_across", INGRESS, Way::Ingress, true, true),
    Path {
        dual: true,
        ..path("ingress_dual_stack", INGRESS, Way::Ingress, false, false)
    },
];

const USER_PATHS: &[Path] = &[
    path("user", &["--mode", "user"], Way::User, false, false),
    path("user_mt", &["--mode", "user-mt"], Way::User, false, false),
    path("uring", &["--mode", "uring"], Way::User, false, false),
    path("uring_v6", &["--mode", "uring"], Way::User, false, true),
];

pub(super) fn register(suite: &mut Suite) {
    for path in KERNEL_PATHS {
        let name = format!("splice_echo::every_byte_comes_back::{}", path.name);
        suite.case(name, KERNEL, || check(path));
    }
    for path in USER_PATHS {
        let name = format!("splice_echo::every_byte_comes_back::{}", path.name);
        let needs = &[Requirement::Root, Requirement::Netns];
        suite.case(name, needs, || check(path));
    }
}

fn addresses(path: &Path) -> Result<(String, IpAddr, Vec<IpAddr>)> {
    let (listen, to, source) = match (path.across, path.v6) {
        (true, false) => ("0.0.0.0:0", "10.7.0.1", "10.7.0."),
        (true, true) => ("[::]:0", "fd00:8::1", "fd00:8::"),
        (false, false) if path.dual => ("[::]:0", "127.0.0.1", "127.0.0."),
        (false, false) => ("127.0.0.1:0", "127.0.0.1", "127.0.0."),
        (false, true) => ("[::1]:0", "::1", "fd00:7::"),
    };
    let sources: Result<Vec<IpAddr>, _> = (2..=9).map(|n| format!("{source}{n}").parse()).collect();
    Ok((listen.to_owned(), to.parse()?, sources?))
}

fn check(path: &'static Path) -> Result<()> {
    network::own()?;
    let (listen, to, sources) = addresses(path)?;
    let words = [path.words, &["--listen", &listen]].concat();
    let other = match path.across {
        true => Some(network::Other::beside_this()?),
        false => None,
    };
    let server = match &other {
        Some(other) => Server::start_by(other.command(hopscope_bin()), &words)?,
        None => Server::start(&words)?,
    };
    let connections = counts().pick(1200, 100_000);
    let outcome = run(&Plan {
        to: (to, server.address.port()).into(),
        sources,
        connections,
        at_once: 1000,
    })?;
    let summary = server.finish()?;
    outcome
        .ensure_all(connections)
        .map_err(|error| error.context(summary.to_string()))?;
    let user = number(&summary, "/user_bytes")?;
    let (there, none) = match path.way {
        Way::User => {
            ensure!(user == outcome.bytes, "{user} of {outcome:?}");
            return Ok(());
        }
        Way::Egress => ("egress", "ingress"),
        Way::Ingress => ("ingress", "egress"),
    };
    // The kernel turned round all but what it was too much to.
    let kernel = number(&summary, &format!("/kernel/{there}_bytes"))?;
    ensure!(
        kernel + user == outcome.bytes,
        "{kernel} and {user} of {}: {summary}",
        outcome.bytes
    );
    let way = number(&summary, &format!("/kernel/{there}_connections"))?;
    let other = number(&summary, &format!("/kernel/{none}_connections"))?;
    ensure!(
        way == connections as u64 && other == 0,
        "{connections} connections: {summary}"
    );
    Ok(())
}
