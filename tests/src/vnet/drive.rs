//! `vnet drive` with our own back end: every byte, and every count of one end is the other's.
use super::dpdk::{BackEnd, echo};
use super::network;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{PacketOptions, PacketPort};
use hopscope_tests::{Suite, Target, counts, hopscope_bin};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

mod bridge;
mod fake;
mod refused;
mod vhost;

pub(super) const POLICIES: [&str; 9] = [
    "plain",
    "suppress",
    "event-idx",
    "tam",
    "tam:8",
    "batch",
    "ahc:50:64",
    "coal:8:100",
    "adaptive",
];

/// Rings and suppression: what both ends can agree on.
const AGREED: [(&str, &[&str]); 4] = [
    ("split", &[]),
    ("split_by_flags", &["--no-event-idx"]),
    ("packed", &["--packed"]),
    ("packed_by_flags", &["--packed", "--no-event-idx"]),
];

pub(super) fn register(suite: &mut Suite) {
    use hopscope_tests::Requirement::{Dpdk, Netns};
    for (name, agreed) in AGREED {
        let case = format!("vnet::drive_and_serve_count_the_same_{name}");
        suite.case(case, &[Netns], move || same_counts(agreed));
        let case = format!("vnet::drive_is_never_stuck_with_a_full_ring_{name}");
        suite.case(case, &[Netns], move || full_rings(agreed));
    }
    suite.case("vnet::serve_looks_on", &[], looks_on);
    suite.case(
        "vnet::drive_that_is_stopped_leaves_nothing_unannounced",
        &[],
        stopped,
    );
    for (name, arguments) in vhost::CASES {
        let case = format!("vnet::drive_gets_every_byte_back_from_dpdk_{name}");
        suite.case(case, &[Netns, Dpdk], move || vhost::every_byte(arguments));
    }
    suite.case(
        "vnet::drive_carries_tcp_between_namespaces",
        &[Netns],
        bridge::run,
    );
    suite.case(
        "vnet::drive_wakes_for_every_packet",
        &[Netns],
        bridge::every_packet,
    );
    suite.case(
        "vnet::drive_says_that_its_back_end_died",
        &[Netns],
        refused::killed,
    );
    suite.case("vnet::drive_waits_for_a_back_end", &[], refused::waits);
    suite.case("vnet::drive_refuses_what_cannot_be", &[], refused::run);
}

/// `hopscope vnet drive --json`.
pub(super) fn drive(socket: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(hopscope_bin());
    command
        .args(["vnet", "drive", "--json", "--socket"])
        .arg(socket)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(super) fn summary(mut driver: Target) -> Result<Value> {
    driver.wait_at_most(Duration::from_secs(60))?;
    let out = driver.output()?;
    let said = String::from_utf8(out.stdout)?;
    let status = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{}: {status}{said}", out.status);
    let line = said.lines().last().context("no line")?;
    let summary: Value = serde_json::from_str(line)?;
    ensure!(
        summary["type"] == "summary" && summary["schema"] == 1,
        "{said}"
    );
    Ok(summary)
}

/// Sums over several front ends, to be compared with those of the one back end.
#[derive(Default)]
pub(super) struct Sums(Vec<(String, u64)>);

/// A front end's count, and the back end's.
const SAME: [(&str, &str); 8] = [
    ("/tx/packets", "/tx/packets"),
    ("/tx/bytes", "/tx/bytes"),
    ("/tx/kicks", "/tx/kicks"),
    ("/tx/calls", "/tx/calls"),
    ("/rx/packets", "/rx/packets"),
    ("/rx/bytes", "/rx/bytes"),
    ("/rx/kicks", "/rx/kicks"),
    ("/rx/calls", "/rx/calls"),
];

impl Sums {
    pub(super) fn add(&mut self, front: &Value) -> Result<()> {
        self.0.resize(SAME.len(), Default::default());
        for ((name, sum), (path, _)) in self.0.iter_mut().zip(SAME) {
            let count = front.pointer(path).and_then(Value::as_u64);
            *sum += count.with_context(|| format!("{path}: {front}"))?;
            *name = path.to_owned();
        }
        Ok(())
    }

    pub(super) fn are_those_of(&self, back: &Value) -> Result<()> {
        let pair = &back["pairs"][0];
        for ((_, sum), (front, path)) in self.0.iter().zip(SAME) {
            let count = pair.pointer(path).and_then(Value::as_u64);
            ensure!(count == Some(*sum), "{front} is {sum}: {back}");
        }
        ensure!(back["broken_off"] == 0, "{back}");
        Ok(())
    }
}

/// Frames of all lengths go out to a cable and come back, for each policy.
fn same_counts(agreed: &[&str]) -> Result<()> {
    network::namespace()?;
    network::cable("near", "far")?;
    let place = network::Place::new()?;
    let socket = place.join("vnet.sock");
    let back_end = BackEnd::start(&socket, &["--veth=near"])?;
    let mut far = PacketPort::open("far", PacketOptions::default())?;
    let count = counts().pick(1_000, 50_000);
    let (packets, mut sums) = (count.to_string(), Sums::default());
    for policy in POLICIES {
        let arguments = [
            "--size=60-1514",
            "--ring=128",
            "--echo=64",
            "--count",
            &packets,
        ];
        let kicks = ["--kick-policy", policy, "--rx-kick-policy", policy];
        let mut command = drive(&socket, &[&arguments[..], &kicks, agreed].concat());
        let mut driver = Target::spawn_now(&mut command)?;
        while driver.child().try_wait()?.is_none() {
            echo(&mut far)?;
        }
        let summary = summary(driver)?;
        for (path, expected) in [
            ("/sent", count),
            ("/received", count),
            ("/came/own", count),
            ("/came/wrong", 0),
            ("/came/disordered", 0),
            ("/came/others", 0),
            ("/came/dropped", 0),
            ("/tx/entries", count),
            ("/tx/kick_policy/published", count),
        ] {
            let found = summary.pointer(path).and_then(Value::as_u64);
            ensure!(found == Some(expected), "{policy}: {path}: {summary}");
        }
        notified(&summary).with_context(|| format!("{policy}: {summary}"))?;
        let kicks = summary["kicks"].as_u64().context("kicks")?;
        ensure!(policy != "plain" || kicks == count, "{summary}");
        sums.add(&summary)?;
    }
    let back = back_end.stop()?;
    ensure!(back["connections"] == POLICIES.len(), "{back}");
    sums.are_those_of(&back)
}

/// `--kick-policy adaptive`: where packets come fast the back end looks on before it asks for a kick, and it takes
/// all of them; where they come one by one it asks at once (but for those that a late sender makes up for).
fn looks_on() -> Result<()> {
    let place = network::Place::new()?;
    let many = counts().pick(50_000, 1_000_000);
    // A source that saturates may never let it find nothing, and so may one with too little processor time, for a while.
    let fast = ["saturate", "500000", "500000", "500000"];
    for (rates, packets, right) in [(&fast[..], many, 1..=u64::MAX), (&["500"], 200, 0..=49)] {
        let socket = place.join(&format!("{packets}.sock"));
        let back_end = BackEnd::start(&socket, &["--discard", "--kick-policy=adaptive"])?;
        let packets = packets.to_string();
        let mut sums = Sums::default();
        for rate in rates {
            let front = [
                "--count",
                &packets,
                "--kick-policy=event-idx",
                "--rate",
                rate,
            ];
            sums.add(&summary(Target::spawn_now(&mut drive(&socket, &front))?)?)?;
        }
        let back = back_end.stop()?;
        sums.are_those_of(&back)?;
        let looked_on = back.pointer("/pairs/0/tx/looks").and_then(Value::as_u64);
        let looked_on = looked_on.context("looks")?;
        ensure!(
            right.contains(&looked_on),
            "{rates:?} a second: looked on {looked_on} times: {back}"
        );
    }
    Ok(())
}

/// A policy that waits for the rest of a batch, and a source whose time is over amid one.
fn stopped() -> Result<()> {
    let place = network::Place::new()?;
    let socket = place.join("vnet.sock");
    let back_end = BackEnd::start(&socket, &["--discard"])?;
    let mut sums = Sums::default();
    for n in 0..counts().pick(40, 400) {
        let policy = ["tam", "batch:32", "adaptive"][n % 3];
        let arguments = ["--duration=0.005", "--kick-policy", policy];
        let summary = summary(Target::spawn_now(&mut drive(&socket, &arguments))?)?;
        ensure!(
            summary["tx"]["entries"] == summary["sent"],
            "{policy}: {summary}"
        );
        sums.add(&summary)?;
    }
    sums.are_those_of(&back_end.stop()?)
}

/// Each kick was one of the policy's, and its batches add up.
fn notified(summary: &Value) -> Result<()> {
    for queue in ["tx", "rx"] {
        let queue = &summary[queue];
        let policy = &queue["kick_policy"];
        ensure!(policy["notified"] == queue["kicks"], "kicks of others");
        let batches = policy["batches"].as_array().context("batches")?;
        let batches: u64 = batches.iter().filter_map(Value::as_u64).sum();
        ensure!(policy["notified"] == batches, "batches");
    }
    Ok(())
}

/// Whatever the policies of both ends are, and however this end waits: a source that saturates comes to its end.
fn full_rings(agreed: &[&str]) -> Result<()> {
    let place = network::Place::new()?;
    for calls in ["batch", "plain", "coal:8:100", "adaptive"] {
        let socket = place.join(&format!("{}.sock", calls.len()));
        let back_end = BackEnd::start(&socket, &["--discard", "--tx-call-policy", calls])?;
        let count = counts().pick(2_000, 100_000);
        let (packets, mut sums) = (count.to_string(), Sums::default());
        let mut full = 0;
        for (n, policy) in POLICIES.iter().enumerate() {
            let waits = [
                ["--ring=2", "--arm=first", "--spin=0"],
                ["--ring=8", "--arm=three-quarters", "--spin=0"],
                ["--ring=16", "--arm=three-quarters", "--spin=60"],
                ["--ring=4", "--arm=first", "--spin=always"],
            ];
            let waits = &waits[(n + calls.len()) % waits.len()];
            let arguments = ["--kick-policy", policy, "--count", &packets];
            let mut command = drive(&socket, &[&arguments[..], waits, agreed].concat());
            let summary = summary(Target::spawn_now(&mut command)?)?;
            ensure!(
                summary["sent"] == count && summary["tx"]["entries"] == count,
                "{policy}: {summary}"
            );
            notified(&summary).with_context(|| format!("{policy}: {summary}"))?;
            full += summary["ring_full"].as_u64().context("ring_full")?;
            sums.add(&summary)?;
        }
        ensure!(full > 0, "no ring was ever full");
        sums.are_those_of(&back_end.stop()?)?;
    }
    Ok(())
}
