//! Against gVisor's netstack: a TCP of other people that is neither ours nor the kernel's, with SACK and RACK of its own.
use super::cable::{ip, namespace, whole};
use super::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::paths::{built_programs, programs};
use hopscope_tests::requirement::go;
use hopscope_tests::{Requirement, Suite, Target, counts, hopscope, hopscope_bin, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NETSTACK: &str = "10.0.0.3";
/// Of a request, in bytes.
const SIZE: u64 = 50_000;
const OWN: [&str; 2] = ["--if=packet:near", "--addr=10.0.0.2/24"];

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Go, Netns};
    for (name, impairments) in [
        ("whole", &[][..]),
        ("impaired", &["--loss=1", "--reorder=1", "--duplicate=1"]),
    ] {
        let needs = &[Netns, Ethtool, Go];
        suite
            .case(
                format!("stack::netstack_connects_{name}"),
                needs,
                move || connects(impairments),
            )
            .in_turn()
            .watchdog(600);
        suite
            .case(format!("stack::netstack_serves_{name}"), needs, move || {
                serves(impairments)
            })
            .in_turn()
            .watchdog(600);
    }
}

/// near ── left [bridge] right ── far: ours, and netstack's, which the kernel has no address on.
fn cable(impairments: &[&str]) -> Result<Target> {
    namespace()?;
    for (a, b) in [("near", "left"), ("right", "far")] {
        ip(&format!("link add {a} type veth peer name {b}"))?;
        for device in [a, b] {
            let quiet = format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6");
            std::fs::write(quiet, "1")?;
            whole(device)?;
            ip(&format!("link set {device} up"))?;
        }
    }
    let ready = scratch().join("ready-bridge");
    let mut command = Command::new(hopscope_bin());
    command
        .args(["load", "bridge", "left", "right", "--json", "--seed=11"])
        .args(impairments)
        .arg("--ready-file")
        .arg(&ready)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    Target::spawn_with_ready_file(&mut command, &ready)
}

/// The peer, from its module at the version of go.sum; built once.
fn peer() -> Result<PathBuf> {
    let folder = built_programs();
    std::fs::create_dir_all(&folder)?;
    let out = folder.join("netstack-peer");
    let done = run(Command::new(go().context("no go")?)
        .current_dir(programs().join("stack/netstack"))
        .env("GOCACHE", folder.join("go-cache"))
        .env("GOFLAGS", "-mod=readonly")
        .args(["build", "-o"])
        .arg(&out)
        .arg("."))?;
    ensure!(done.code == Some(0), "go build: {}", done.stderr);
    Ok(out)
}

fn bytes() -> u64 {
    counts().pick(20_000_000, 1_000_000_000)
}

/// Of the peer. With RACK it may stand still where it loses something: main.go says why.
fn recovery(impairments: &[&str]) -> &'static [&'static str] {
    match impairments {
        [] => &[],
        _ => &["no-rack"],
    }
}

/// netstack sends, our echo server returns each byte.
fn connects(impairments: &[&str]) -> Result<()> {
    let peer = peer()?;
    let _bridge = cable(impairments)?;
    let serving = Serving::with(&[&OWN[..], &["--app=echo", "--port=7"]].concat())?;
    let bytes = bytes().to_string();
    let sent = run(Command::new(&peer)
        .args(["send", "far", "10.0.0.3/24", "10.0.0.2:7", &bytes])
        .args(recovery(impairments)))?;
    ensure!(sent.code == Some(0), "{}{}", sent.stdout, sent.stderr);
    let said: Value = serde_json::from_str(sent.stdout.trim())?;
    ensure!(said["received"].as_u64() == bytes.parse().ok(), "{said}");
    let summary = serving.stop()?;
    ensure!(
        summary["app"]["bytes_received"] == said["sent"],
        "{summary}"
    );
    expect_checksums(&said)
}

/// Our client sends, and compares what netstack returns.
fn serves(impairments: &[&str]) -> Result<()> {
    let peer = peer()?;
    let _bridge = cable(impairments)?;
    let ready = scratch().join("ready-peer");
    let _serving = listening(&peer, &ready, recovery(impairments))?;
    let requests = bytes() / SIZE;
    let (count, size) = (requests.to_string(), SIZE.to_string());
    let target = format!("{NETSTACK}:7");
    let more = [
        "-c",
        &count,
        "-n",
        "4",
        "--size",
        &size,
        "--timeout=60s",
        "--json",
    ];
    let words = [&["stack", "connect", &target][..], &OWN, &more].concat();
    let out = hopscope(&words)?.expect_code(0)?;
    let summary: Value = serde_json::from_str(out.stdout.lines().last().context("no line")?)?;
    ensure!(
        summary["answered"] == requests && summary["corrupt"] == 0,
        "{summary}"
    );
    Ok(())
}

/// Its first line says that it listens, and becomes the ready file.
fn listening(peer: &Path, ready: &Path, recovery: &[&str]) -> Result<Target> {
    let line = r#"ready=$1; shift; "$0" serve far 10.0.0.3/24 7 "$@" | { read said; echo "$said" >"$ready"; cat; }"#;
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .arg(peer)
        .arg(ready)
        .args(recovery);
    Target::spawn_with_ready_file(command.stdin(Stdio::null()).stdout(Stdio::null()), ready)
}

/// Nothing that we sent was damaged on the way, as far as netstack saw.
fn expect_checksums(said: &Value) -> Result<()> {
    ensure!(said["checksum_errors"] == 0, "{said}");
    Ok(())
}
