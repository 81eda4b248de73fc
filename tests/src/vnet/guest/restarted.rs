//! Back ends that end under traffic, and the next ones that go on there: ended in order, and killed.
use super::far::Far;
use super::{Guest, said, unharmed};
use crate::vnet::dpdk::BackEnd;
use crate::vnet::network::{Place, ip, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_guest::Nic;
use hopscope_tests::{Target, counts, hopscope, hopscope_bin};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Instant;

/// By this one the guest is told; nobody touches its back end.
const CONTROL: usize = 0;
const ORDERED: usize = 1;
const KILLED: usize = 2;
/// The same with packed rings, whose place QEMU 7.2 does not know.
const ORDERED_PACKED: usize = 3;
const KILLED_PACKED: usize = 4;
const ENDING: [usize; 4] = [ORDERED, KILLED, ORDERED_PACKED, KILLED_PACKED];
/// Packets that a back end takes before others get a turn (`TURN` in serve/transmit.rs).
const BATCH: u64 = 256;
/// Datagrams seen before a back end ends, and after the next one has begun.
const BETWEEN: u64 = 150;
/// Packets of others, as questions for neighbours, once the driver has said its counts.
const AFTER: u64 = 16;
/// Of one connection for each device, in both directions, that lasts; and of datagrams with numbers.
const TRAFFIC: &str = "
  for n in 1 2 3 4; do
    hopscope load tcp rr --rate 50 --size 8192 --timeout 100s -d 1h --json 10.9.$n.1:7010 > /tmp/tcp$n &
    all=\"$all $!\"
    hopscope load udp rr --rate 200 --size 200 --timeout 12s -d 1h --json 10.9.$n.1:7003 > /tmp/udp$n &
    all=\"$all $!\"
  done
  nc 10.9.0.1 7005 < /dev/null > /dev/null
  kill -INT $all
  wait
  for n in 1 2 3 4; do
    tail -n 1 /tmp/tcp$n
    tail -n 1 /tmp/udp$n
    cat /sys/class/net/eth$n/statistics/rx_packets /sys/class/net/eth$n/statistics/tx_packets
  done";

pub(super) fn run() -> Result<()> {
    namespace()?;
    let far = Far::start(1)?;
    let _server = echoing()?;
    let place = Place::new()?;
    let mut guest = Guest::new()?;
    let mut back_ends = Vec::new();
    for n in [&[CONTROL], &ENDING[..]].concat() {
        // It stays when its back end goes, with its address.
        ip(&format!("tuntap add near{n} mode tap"))?;
        ip(&format!("addr add 10.9.{n}.1/24 dev near{n}"))?;
        back_ends.push(start(n, &place)?);
        let mut nic = Nic::new(place.join(&format!("s{n}")));
        if is_packed(n) {
            nic.properties.push("packed=on".to_owned());
        }
        guest.nic(nic)?;
    }
    // Two at a time would each get a part of the packets.
    let socket = format!("--socket={}", place.join("other").display());
    let other = hopscope(&["vnet", "serve", "--tap=near0", &socket])?;
    let refused = other.expect_code(2)?.stderr;
    ensure!(refused.contains("serves it already"), "{refused}");
    guest.step("up", "up 5");
    guest.step("traffic", TRAFFIC);
    let rounds = counts().pick(2, 6);
    let (run, ended) = std::thread::scope(|scope| {
        let machine = scope.spawn(|| guest.run());
        let ended = restart(&far, &place, back_ends, rounds);
        // Also after a failure: else the guest would wait for its watchdog.
        far.open_gate();
        (machine.join().expect("no panic"), ended)
    });
    let (last, mut summaries) = ended?;
    for (n, back_end) in last.into_iter().enumerate() {
        let summary = back_end.stop()?;
        unharmed(&summary)?;
        summaries[n].push(summary);
    }
    let text = said(&run?, "traffic")?;
    let mut lines = text.lines();
    for device in ENDING {
        let mut next = || lines.next().with_context(|| format!("too little: {text}"));
        let tcp: Value = serde_json::from_str(next()?)?;
        let udp: Value = serde_json::from_str(next()?)?;
        let (received, sent): (u64, u64) = (next()?.parse()?, next()?.parse()?);
        println!("device {device}: {tcp}\n{udp}");
        ensure!(tcp["failed"] == 0 && tcp["corrupt"] == 0, "{tcp}");
        ensure!(
            tcp["done"].as_u64() > Some(0) && udp["done"].as_u64() > Some(0),
            "{tcp}{udp}"
        );
        ensure!(udp["corrupt"] == 0 && udp["surplus_bytes"] == 0, "{udp}");
        let doubled = udp["duplicate"].as_u64().context("duplicate")?;
        let summaries = &summaries[device];
        match is_ordered(device) {
            true => {
                ensure!(doubled == 0, "{doubled} came twice: {udp}");
                carried(summaries, received, sent)?;
            }
            // By each kill one batch, each way.
            false => ensure!(doubled <= rounds * 2 * BATCH, "{doubled} came twice: {udp}"),
        }
        let last = summaries.last().context("a summary")?;
        let found = |queue: &str| last["pairs"][0][queue]["found"].as_u64();
        let found = found("rx").zip(found("tx")).context("found")?;
        println!("device {device}: read from the ring: {found:?}");
        // The front end knows the place of one that it seldom is: that of the driver's begin.
        ensure!((found != (0, 0)) == is_packed(device), "{last}");
    }
    Ok(())
}

/// Sends back what comes by TCP.
pub(super) fn echoing() -> Result<Target> {
    let mut server = Command::new(hopscope_bin());
    server.args(["load", "tcp", "serve", "--listen", "0.0.0.0:7010"]);
    Target::spawn_now(server.stdin(Stdio::null()).stderr(Stdio::null()))
}

fn is_packed(device: usize) -> bool {
    matches!(device, ORDERED_PACKED | KILLED_PACKED)
}

fn is_ordered(device: usize) -> bool {
    matches!(device, ORDERED | ORDERED_PACKED)
}

/// `received` and `sent` are the driver's. While no back end is there QEMU takes what the driver sends, and drops it.
fn carried(summaries: &[Value], received: u64, sent: u64) -> Result<()> {
    let sum = |queue: &str| -> Result<u64> {
        let counts = summaries.iter().map(|summary| {
            unharmed(summary)?;
            let count = &summary["pairs"][0][queue]["packets"];
            count.as_u64().context("packets")
        });
        counts.sum()
    };
    let (given, taken) = (sum("rx")?, sum("tx")?);
    println!("given {given}, received {received}; sent {sent}, taken {taken}");
    // Beside what came after it was asked, and what it had not looked at yet.
    ensure!(
        (received..received + AFTER).contains(&given),
        "{given} were given to the driver, which got {received}"
    );
    ensure!(taken <= sent + AFTER, "{taken} were taken of {sent}");
    Ok(())
}

fn start(n: usize, place: &Place) -> Result<BackEnd> {
    let tap = format!("--tap=near{n}");
    BackEnd::start(&place.join(&format!("s{n}")), &[&tap])
}

/// What is left running, and what those of each device said that ended in order.
fn restart(
    far: &Far,
    place: &Place,
    mut back_ends: Vec<BackEnd>,
    rounds: u64,
) -> Result<(Vec<BackEnd>, Vec<Vec<Value>>)> {
    let mut summaries = vec![Vec::new(); back_ends.len()];
    for _ in 0..rounds {
        for n in ENDING {
            far.echoes(n, BETWEEN)?;
            let ends = Instant::now();
            // The last one, so that the place is free.
            let back_end = back_ends.remove(n);
            match is_ordered(n) {
                false => drop(back_end),
                true => summaries[n].push(back_end.stop()?),
            }
            back_ends.insert(n, start(n, place)?);
            far.echoes(n, 1)?;
            println!(
                "device {n}: carries packets again after {:?}",
                ends.elapsed()
            );
        }
    }
    for n in ENDING {
        far.echoes(n, BETWEEN)?;
    }
    Ok((back_ends, summaries))
}
