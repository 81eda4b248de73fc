//! Much over a cable that loses, reorders and repeats, both ways, every byte compared.
use super::cable::{KERNEL, STACK, Way, files, ip, namespace, whole};
use super::clients::{connect, ended, server};
use super::serving::{Serving, counter};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts, hopscope, hopscope_bin};
use serde_json::Value;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns};
    let some = || counts().pick(20u64 << 20, 200 << 20);
    for (name, impairments) in [
        ("loss", &["--loss=1"][..]),
        ("reordering", &["--reorder=2"]),
        ("duplicates", &["--duplicate=2"]),
        ("damage", &["--corrupt=0.2"]),
        (
            "all",
            &[
                "--loss=1",
                "--reorder=1",
                "--duplicate=1",
                "--corrupt=0.1",
                "--delay=500us",
            ],
        ),
    ] {
        let sends = format!("stack::bulk_out_survives_{name}");
        suite
            .case(sends, &[Netns, Ethtool], move || out(impairments, some()))
            .watchdog(600);
        let receives = format!("stack::bulk_in_survives_{name}");
        suite
            .case(receives, &[Netns, Ethtool], move || {
                into(impairments, some())
            })
            .watchdog(600);
    }
    let all = &[
        "--loss=0.1",
        "--reorder=1",
        "--duplicate=1",
        "--corrupt=0.01",
    ][..];
    let much = 10u64 << 30;
    for (name, way) in [("out", out as fn(&[&str], u64) -> Result<()>), ("in", into)] {
        let name = format!("stack::ten_gigabytes_{name}_are_whole");
        suite
            .case(name, &[Netns, Ethtool], move || way(all, much))
            .soak()
            .watchdog(3_000);
    }
}

/// near ── left [bridge] right ── far: the stack's end, and the kernel's.
fn cable(impairments: &[&str]) -> Result<Target> {
    namespace()?;
    for (a, b) in [("near", "left"), ("right", "far")] {
        ip(&format!("link add {a} type veth peer name {b}"))?;
        for device in [a, b] {
            if device != "far" {
                std::fs::write(
                    format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"),
                    "1",
                )?;
            }
            whole(device)?;
            ip(&format!("link set {device} up"))?;
        }
    }
    ip(&format!("address add {KERNEL}/24 dev far"))?;
    let ready = files().join("ready-bridge");
    let mut command = Command::new(hopscope_bin());
    command
        .args(["load", "bridge", "left", "right", "--json", "--seed=7"])
        .args(impairments)
        .arg("--ready-file")
        .arg(&ready)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Target::spawn_with_ready_file(&mut command, &ready)
}

fn out(impairments: &[&str], size: u64) -> Result<()> {
    let bridge = cable(impairments)?;
    let bytes = size.to_string();
    let sink = server("sink", 9)?;
    let target = format!("{KERNEL}:9");
    let more = [
        "--app=discard",
        "--bytes",
        &bytes,
        "--profile=lan",
        "--timeout=60s",
    ];
    let summary = connect(Way::PacketWhole, &target, &more, 0)?;
    ensure!(summary["bytes_sent"] == size, "{summary}");
    let said = ended(sink)?;
    ensure!(
        said["counts"]["bytes_received"] == size && said["counts"]["corrupt"] == 0,
        "{said}"
    );
    impaired(bridge)
}

fn into(impairments: &[&str], size: u64) -> Result<()> {
    let bridge = cable(impairments)?;
    let messages = (size / 131_072).to_string();
    let serving = Serving::start(Way::PacketWhole, &["--app=discard", "--port=9", "--seed=1"])?;
    let target = format!("{STACK}:9");
    let words = [
        "load",
        "tcp",
        "stream",
        &target,
        "-c",
        &messages,
        "--timeout=60s",
        "--json",
    ];
    let sent = hopscope(&words)?.expect_code(0)?;
    let last: Value = serde_json::from_str(sent.stdout.lines().last().context("no line")?)?;
    ensure!(last["failed"] == 0, "{last}");
    let summary = serving.stop()?;
    ensure!(summary["app"]["bytes_received"] == size, "{summary}");
    ensure!(summary["app"]["corrupt"] == 0, "{summary}");
    let damaged = impairments.iter().any(|word| word.starts_with("--corrupt"));
    // What is damaged is seen by its checksum, and by nothing else.
    let seen = counter(&summary, "/counters/Tcp/InCsumErrors");
    ensure!(damaged || seen == 0, "{summary}");
    impaired(bridge)
}

/// It did something, in one direction or the other.
fn impaired(bridge: Target) -> Result<()> {
    let said = ended(bridge)?;
    let lanes = [&said["there"], &said["back"]];
    let of = |what: &str| {
        lanes
            .iter()
            .filter_map(|lane| lane[what].as_u64())
            .sum::<u64>()
    };
    let done = ["dropped", "reordered", "duplicated", "corrupted"].map(of);
    ensure!(done.iter().sum::<u64>() > 0, "{said}");
    Ok(())
}
