//! `vnet drive` with a back end by others: DPDK's.
use super::{drive, summary};
use crate::vnet::{dpdk, network};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, counts};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

pub(super) const CASES: [(&str, &[&str]); 4] = [
    ("split", &["--kick-policy=event-idx"]),
    ("split_by_flags", &["--no-event-idx", "--kick-policy=tam"]),
    ("packed", &["--packed", "--kick-policy=adaptive"]),
    (
        "packed_by_flags",
        &["--packed", "--no-event-idx", "--kick-policy=plain"],
    ),
];

pub(super) fn every_byte(arguments: &[&str]) -> Result<()> {
    let program = dpdk::build("dpdk/vhost_peer.c", &["-O2"])?;
    let place = network::Place::new()?;
    let (socket, ready) = (place.join("vnet.sock"), place.join("ready"));
    let device = format!("--vdev=net_vhost0,iface={},queues=1", socket.display());
    let mut command = Command::new(program);
    command
        .args(["-l", "0", "--no-shconf", "--no-telemetry", "--no-pci"])
        .args(["--no-huge", "-m", "128", &device, "--"])
        .arg(&ready)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let back_end = Target::spawn_with_ready_file(&mut command, &ready)?;
    let (count, mut bytes) = (counts().pick(5_000, 200_000), 0);
    let packets = count.to_string();
    // The second begins where a first has ended.
    let rounds = 2;
    for _ in 0..rounds {
        let frames = [
            "--size=60-1514",
            "--echo=64",
            "--ring=256",
            "--count",
            &packets,
        ];
        let front = Target::spawn_now(&mut drive(&socket, &[&frames[..], arguments].concat()))?;
        let front = summary(front)?;
        for (path, expected) in [
            ("/sent", count),
            ("/came/own", count),
            ("/came/wrong", 0),
            ("/came/disordered", 0),
            ("/came/others", 0),
            ("/tx/entries", count),
        ] {
            let found = front.pointer(path).and_then(Value::as_u64);
            ensure!(found == Some(expected), "{path}: {front}");
        }
        bytes += front["tx"]["bytes"].as_u64().context("bytes")?;
    }
    back_end.signal(Signal::SIGTERM)?;
    let out = back_end.output()?;
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    let line = said.lines().last().unwrap_or_default();
    let back: Value =
        serde_json::from_str(line).with_context(|| format!("{}: {said}{log}", out.status))?;
    ensure!(
        back["received"] == rounds * count && back["sent"] == rounds * count,
        "{back}"
    );
    ensure!(back["bytes"] == bytes, "{bytes}: {back}");
    Ok(())
}
