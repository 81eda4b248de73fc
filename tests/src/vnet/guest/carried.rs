//! Pings, a file there and back over TCP, and datagrams, by every kind of ring and port; again once the machine was
//! reset, and again once the driver was unloaded and loaded.
use super::far::Far;
use super::{Guest, said, unharmed};
use crate::vnet::dpdk::BackEnd;
use crate::vnet::network::{Place, cable, ip, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_guest::Nic;
use hopscope_tests::command::run as command;
use hopscope_tests::counts;
use hopscope_tests::requirement::find_program;
use serde_json::Value;
use std::process::Command;

struct Device {
    serve: &'static [&'static str],
    nic: &'static [&'static str],
    queues: u16,
}

const fn device(serve: &'static [&'static str], nic: &'static [&'static str]) -> Device {
    Device {
        serve,
        nic,
        queues: 1,
    }
}

/// `N` in options is the device's number.
const DEVICES: [Device; 8] = [
    device(&["--tap=nearN"], &[]),
    device(&["--tap=nearN"], &["packed=on"]),
    device(&["--tap=nearN", "--no-offload"], &["packed=on"]),
    device(
        &[
            "--tap=nearN",
            "--no-offload",
            "--kick-policy=flags",
            "--tx-call-policy=suppress",
            "--rx-call-policy=suppress",
        ],
        &[],
    ),
    device(&["--tap=nearN", "--client"], &["mrg_rxbuf=off"]),
    device(&["--veth=nearN"], &[]),
    device(&["--xdp=nearN"], &["packed=on"]),
    Device {
        serve: &["--tap=nearN", "--queues=2"],
        nic: &[],
        queues: 2,
    },
];

pub(super) fn run() -> Result<()> {
    namespace()?;
    let far = Far::start(counts().pick(150_000, 1_100_000))?;
    let place = Place::new()?;
    let mut guest = Guest::new()?;
    // So that the driver uses both pairs of queues where there are two.
    guest.0.processors(2);
    guest.0.reboots(1);
    guest.0.file("/data", &far.data);
    let mut back_ends = Vec::new();
    for (n, device) in DEVICES.iter().enumerate() {
        back_ends.push(serve(n, device, &place, &mut guest)?);
    }
    let count = DEVICES.len();
    let last = count - 1;
    let all = |what| format!("for n in $(seq 0 {last}); do {what} $n || exit 1; done");
    guest.step("up", &format!("up {count}"));
    guest.step("first", &all("carry"));
    let boots = format!("[ $(nc 10.9.0.1 7004 < /dev/null) = 2 ] || restart {count}");
    guest.step("boots", &boots);
    let reload = "rmmod virtio_net && insmod /nic/7-virtio_net.ko";
    guest.step("reload", &format!("{reload} && up {count}"));
    guest.step("reloaded", &all("carry"));
    guest.step("datagrams", &all("exchange"));
    let run = guest.run()?;
    ensure!(run.boots == 2 && far.asked() == 2, "{} boots", run.boots);
    for step in ["up", "first", "reload", "reloaded", "datagrams"] {
        let text = said(&run, step)?;
        let lines = text.lines().filter(|line| line.starts_with('{'));
        for line in lines {
            let udp: Value = serde_json::from_str(line)?;
            ensure!(udp["done"] == 100, "{step}: {udp}");
        }
    }
    for (n, back_end) in back_ends.into_iter().enumerate() {
        let summary = back_end.stop()?;
        unharmed(&summary).with_context(|| format!("device {n}"))?;
        told(&summary, &DEVICES[n]).with_context(|| format!("device {n}"))?;
    }
    Ok(())
}

/// Device `n`'s back end, and its place in the guest.
fn serve(n: usize, device: &Device, place: &Place, guest: &mut Guest) -> Result<BackEnd> {
    let (near, far) = (format!("near{n}"), format!("far{n}"));
    let serve: Vec<String> = device
        .serve
        .iter()
        .map(|word| word.replace("nearN", &near))
        .collect();
    let serve: Vec<&str> = serve.iter().map(String::as_str).collect();
    let tap = serve.iter().any(|word| word.starts_with("--tap"));
    if !tap {
        cable(&near, &far)?;
        // What this side's kernel sends has to be complete before it enters the cable.
        let ethtool = find_program("ethtool").context("no ethtool (package ethtool)")?;
        command(Command::new(ethtool).args(["-K", &far, "tx", "off"]))?.expect_code(0)?;
    }
    let socket = place.join(&format!("s{n}"));
    let back_end = BackEnd::start(&socket, &serve)?;
    let end = if tap { &near } else { &far };
    ip(&format!("addr add 10.9.{n}.1/24 dev {end}"))?;
    let mut nic = Nic::new(socket);
    nic.qemu_listens = serve.contains(&"--client");
    nic.queues = device.queues;
    nic.properties = device.nic.iter().map(|word| (*word).to_owned()).collect();
    guest.nic(nic)?;
    Ok(back_end)
}

/// Began anew with each driver, and every pair of queues carried packets.
fn told(summary: &Value, device: &Device) -> Result<()> {
    let pairs = summary["pairs"].as_array().context("pairs")?;
    ensure!(pairs.len() == usize::from(device.queues), "{summary}");
    for pair in pairs {
        for queue in ["rx", "tx"] {
            let starts = pair[queue]["starts"].as_u64().context("starts")?;
            ensure!(starts >= 3, "{queue} began {starts} times: {summary}");
        }
        ensure!(pair["tx"]["packets"].as_u64() > Some(0), "{summary}");
    }
    Ok(())
}
