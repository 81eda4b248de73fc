//! A back end looked at and changed while it carries packets of DPDK's driver.
use super::dpdk::{BackEnd, build, drive};
use super::network;
use anyhow::{Context, Result, ensure};
use hopscope_netio::{PacketOptions, PacketPort};
use hopscope_tests::Requirement::{Dpdk, Netns};
use hopscope_tests::{Suite, counts, hopscope};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

mod hostile;
mod prometheus;
mod refused;

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "vnet::stat_is_what_the_driver_did",
        &[Netns, Dpdk],
        same_numbers,
    );
    suite.case(
        "vnet::policies_change_under_traffic",
        &[Netns, Dpdk],
        changes,
    );
    suite.case(
        "vnet::hostile_clients_of_control_stop_no_packet",
        &[Netns, Dpdk],
        hostile::run,
    );
    suite.case(
        "vnet::control_refuses_what_cannot_be",
        &[Netns],
        refused::run,
    );
}

/// A back end over a cable, and DPDK's driver at its socket.
struct Scene {
    place: network::Place,
    peer: PathBuf,
    far: PacketPort,
    back_end: BackEnd,
}

impl Scene {
    fn new(serve: &[&str]) -> Result<Scene> {
        network::namespace()?;
        network::cable("near", "far")?;
        let (peer, place) = (
            build("dpdk/virtio_peer.c", &["-O2"])?,
            network::Place::new()?,
        );
        let back_end = BackEnd::start(&place.join("s"), &[&["--veth=near"], serve].concat())?;
        let far = PacketPort::open("far", PacketOptions::default())?;
        Ok(Scene {
            place,
            peer,
            far,
            back_end,
        })
    }

    fn socket(&self) -> PathBuf {
        self.place.join("s")
    }

    fn control(&self) -> PathBuf {
        self.place.join("s.control")
    }

    /// One driver's life, with every byte back.
    fn drive(&mut self, device: &str, meanwhile: &mut dyn FnMut() -> Result<()>) -> Result<u64> {
        let count = counts().pick(5_000, 200_000);
        let socket = self.socket();
        let driver = drive(&self.peer, &socket, device, count, &mut self.far, meanwhile)?;
        for (what, expected) in [
            ("sent", count),
            ("received", count),
            ("wrong", 0),
            ("disorder", 0),
        ] {
            ensure!(driver[what] == expected, "{what}: {driver}");
        }
        Ok(count)
    }
}

/// A client of the control socket, line by line.
struct Client(BufReader<UnixStream>);

impl Client {
    fn new(control: &Path) -> Result<Client> {
        let stream = UnixStream::connect(control).context("the control socket")?;
        Ok(Client(BufReader::new(stream)))
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        self.0
            .get_mut()
            .write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("{request}: {line:?}"))
    }
}

fn number(of: &Value, path: &str) -> Result<u64> {
    of.pointer(path)
        .and_then(Value::as_u64)
        .with_context(|| format!("{path} of {of}"))
}

/// The sum of `field` over all policies of a queue.
fn by_policy(queue: &Value, field: &str) -> Result<u64> {
    let all = queue["policies"].as_array().context("policies")?;
    all.iter().map(|one| number(one, field)).sum()
}

/// Equalities that hold at every queue, at any time between two batches.
fn adds_up(queue: &Value, packets: u64) -> Result<()> {
    ensure!(number(queue, "/packets")? == packets, "packets: {queue}");
    ensure!(
        by_policy(queue, "/published")? == packets,
        "published: {queue}"
    );
    let notified = by_policy(queue, "/notified")?;
    let rung = number(queue, "/calls")? + number(queue, "/calls_unheard")?;
    ensure!(
        rung == notified + number(queue, "/calls_repeated")?,
        "calls: {queue}"
    );
    let settled = notified + by_policy(queue, "/suppressed")?;
    ensure!(
        by_policy(queue, "/hold/count")? == settled,
        "holds: {queue}"
    );
    for one in queue["policies"].as_array().context("policies")? {
        let batches = one["batches"].as_array().context("batches")?;
        let batches: u64 = batches.iter().filter_map(Value::as_u64).sum();
        ensure!(batches == number(one, "/notified")?, "batches: {one}");
        let cells = one["hold"]["cells"].as_array().context("cells")?;
        let cells: u64 = cells.iter().filter_map(|cell| cell[1].as_u64()).sum();
        ensure!(cells == number(one, "/hold/count")?, "cells: {one}");
    }
    Ok(())
}

/// While it runs, at its end, at the driver's end: the same numbers. And the shadow of the policy at work did, to
/// the call, what that policy did.
fn same_numbers() -> Result<()> {
    for (serve, device) in [
        (
            &[
                "--tx-call-policy=tam:8",
                "--rx-call-policy=plain",
                "--shadows",
            ][..],
            "",
        ),
        (
            &[
                "--tx-call-policy=event-idx",
                "--rx-call-policy=batch:4",
                "--shadows",
            ],
            ",packed_vq=1",
        ),
    ] {
        one_policy_each(serve, device)?;
        network::ip("link del near")?;
    }
    Ok(())
}

fn one_policy_each(serve: &[&str], device: &str) -> Result<()> {
    let mut scene = Scene::new(serve)?;
    let count = scene.drive(device, &mut || Ok(()))?;
    let socket = scene.socket();
    let stat = |more: &[&str]| -> Result<String> {
        let socket = socket.to_str().context("a name")?;
        Ok(
            hopscope(&[&["vnet", "stat", "--socket", socket], more].concat())?
                .expect_code(0)?
                .stdout,
        )
    };
    // The driver has gone when its process has; this end hears of it by its socket.
    let mut live: Value = Value::Null;
    for _ in 0..1_000 {
        live = serde_json::from_str(&stat(&["--json"])?)?;
        if live["connected"] == false {
            break;
        }
    }
    ensure!(live["type"] == "vnet_stat" && live["schema"] == 1, "{live}");
    prometheus::check(&stat(&["--prometheus"])?, &live)?;
    let table = stat(&["--explain", "--wait", "100us"])?;
    for word in ["tx0", "rx0", "call/pkt", "coal:64:20", "would"] {
        ensure!(table.contains(word), "no {word}: {table}");
    }
    let rates = stat(&["-i", "10ms", "-c", "2"])?;
    ensure!(
        rates.lines().count() == 5 && rates.contains("packet/s"),
        "{rates}"
    );
    let summary = scene.back_end.stop()?;
    ensure!(
        live["pairs"] == summary["pairs"],
        "{}\n{}",
        live["pairs"],
        summary["pairs"]
    );
    for queue in ["tx", "rx"] {
        let queue = &live["pairs"][0][queue];
        adds_up(queue, count)?;
        let shadows = &queue["shadows"];
        let would = shadows["would"].as_array().context("shadows")?;
        let own = would
            .iter()
            .find(|would| would["policy"] == queue["policy"]);
        let own = own.context("its own shadow")?;
        for field in [
            "published",
            "notified",
            "suppressed",
            "batches",
            "announced",
        ] {
            ensure!(
                own[field] == queue["call_policy"][field],
                "{field}: {own} {queue}"
            );
        }
        for field in ["published", "notified", "suppressed", "waited_ns"] {
            ensure!(own[field] == shadows["did"][field], "{field}: {shadows}");
        }
        let plain = would.iter().find(|would| would["policy"] == "plain");
        ensure!(
            plain.is_some_and(|plain| plain["notified"] == count),
            "{shadows}"
        );
    }
    let tx = &live["pairs"][0]["tx"];
    ensure!(
        number(tx, "/sojourn/count")? == number(tx, "/chains")?,
        "{tx}"
    );
    ensure!(live["pairs"][0]["rx"]["sojourn"].is_null(), "{live}");
    ensure!(
        tx["ring_full"].is_null() == device.contains("packed"),
        "{tx}"
    );
    Ok(())
}

/// Another policy every few packets: every byte comes back, and each policy is answerable for its own.
fn changes() -> Result<()> {
    const POLICIES: [&str; 8] = [
        "plain",
        "ahc:200:16",
        "event-idx",
        "tam:4",
        "batch",
        "coal:8:500",
        "adaptive",
        "ahc:5000:64",
    ];
    let mut scene = Scene::new(&["--shadows"])?;
    let mut client = Client::new(&scene.control())?;
    let mut round = 0;
    let mut last = String::new();
    let count = scene.drive("", &mut || {
        round += 1;
        let policy = |n: usize| POLICIES[n % POLICIES.len()];
        let kicks = ["event-idx", "defer:4:30"][round % 2];
        last = policy(round).to_owned();
        let set = client.ask(&json!({
            "do": "set", "tx_call_policy": last, "rx_call_policy": policy(round + 3), "kick_policy": kicks,
        }))?;
        ensure!(set["type"] == "vnet_set" && set["queues"][1]["call_policy"] == last, "{set}");
        Ok(())
    })?;
    ensure!(round > 2 * POLICIES.len(), "only {round} changes");
    let summary = scene.back_end.stop()?;
    for queue in ["tx", "rx"] {
        let queue = &summary["pairs"][0][queue];
        adds_up(queue, count)?;
        let policies = queue["policies"].as_array().context("policies")?;
        ensure!(policies.len() == POLICIES.len(), "{queue}");
        // `batch` is what it was started with.
        let at_work = policies
            .iter()
            .filter(|one| one["published"].as_u64() > Some(0))
            .count();
        ensure!(at_work > 4, "{at_work} policies carried packets: {queue}");
    }
    ensure!(summary["pairs"][0]["tx"]["policy"] == last, "{summary}");
    ensure!(
        summary["control"]["requests"] == round && summary["control"]["refused"] == 0,
        "{summary}"
    );
    Ok(())
}
