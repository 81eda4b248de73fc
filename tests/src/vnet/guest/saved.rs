//! What policies save with an unmodified driver: counts of calls and kicks, each device with one kind of traffic.
use super::far::Far;
use super::{Guest, said, unharmed};
use crate::vnet::dpdk::BackEnd;
use crate::vnet::network::{Place, ip, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_guest::{Nic, find_program};
use hopscope_tests::{Target, counts};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Notified for each packet, unless the flag of the ring says not to.
const EACH: &[&str] = &[
    "--kick-policy=flags",
    "--tx-call-policy=suppress",
    "--rx-call-policy=suppress",
];
const BATCH: &[&str] = &[];
const DEFER: &[&str] = &["--kick-policy=defer:8:4000"];
/// Sent, sent, received, received, datagrams, datagrams.
const DEVICES: [&[&str]; 6] = [BATCH, EACH, BATCH, EACH, BATCH, DEFER];
/// A fifth of what it was, at least; some 20 and 25 times less on a busy machine.
const FEWER: f64 = 5.0;
/// What [`DEFER`] asks for a kick after: a driver that comes with more at once, as on a machine whose processors are
/// taken, has nothing to save.
const DEFERRED: f64 = 8.0;

pub(super) fn run() -> Result<()> {
    namespace()?;
    let _far = Far::start(1)?;
    let iperf = find_program("iperf3").context("no iperf3 (package iperf3)")?;
    let _server = listening(Command::new(&iperf).args(["-s", "--forceflush"]))?;
    let place = Place::new()?;
    let mut guest = Guest::new()?;
    guest.0.program(&iperf, "/bin/iperf3")?;
    let mut back_ends = Vec::new();
    for (n, options) in DEVICES.iter().enumerate() {
        let (tap, socket) = (format!("--tap=near{n}"), place.join(&format!("s{n}")));
        let options = [&[&tap, "--no-offload"], *options].concat();
        back_ends.push(BackEnd::start(&socket, &options)?);
        ip(&format!("addr add 10.9.{n}.1/24 dev near{n}"))?;
        guest.nic(Nic::new(socket))?;
    }
    guest.step("up", "up 6");
    let rounds = counts().pick(2, 10);
    guest.step("stream", &format!("stream {rounds}"));
    guest.step("datagrams", &format!("datagrams {rounds}"));
    let run = guest.run()?;
    for step in ["up", "stream", "datagrams"] {
        print!("{}", said(&run, step)?);
    }
    let mut summaries = Vec::new();
    for back_end in back_ends {
        let summary = back_end.stop()?;
        unharmed(&summary)?;
        summaries.push(summary);
    }
    let [sent, sent_each, received, received_each, kicked, deferred] = summaries.as_slice() else {
        anyhow::bail!("{} back ends", summaries.len());
    };
    for (queue, batch, each) in [("tx", sent, sent_each), ("rx", received, received_each)] {
        let (batch, each) = (
            a_packet(batch, queue, "calls")?,
            a_packet(each, queue, "calls")?,
        );
        println!(
            "{queue}: calls a packet {each:.4}, {batch:.4}: {:.1} times fewer",
            each / batch
        );
        ensure!(
            each >= FEWER * batch,
            "{queue}: {each} and {batch} calls a packet"
        );
    }
    let kicks = a_packet(kicked, "tx", "kicks")?;
    let fewer = a_packet(deferred, "tx", "kicks")?;
    println!("kicks a packet {kicks:.4}, {fewer:.4}");
    ensure!(
        deferred["pairs"][0]["tx"]["alarms"].as_u64() > Some(0),
        "{deferred}"
    );
    ensure!(
        fewer < kicks || kicks < 1.0 / DEFERRED,
        "deferred, {fewer} kicks a packet instead of {kicks}"
    );
    Ok(())
}

fn a_packet(summary: &Value, queue: &str, what: &str) -> Result<f64> {
    let queue = &summary["pairs"][0][queue];
    let count = |name: &str| queue[name].as_f64().with_context(|| name.to_owned());
    let packets = count("packets")?;
    ensure!(packets >= 1_000.0, "{packets} packets: {summary}");
    Ok(count(what)? / packets)
}

/// Until it says that it listens.
fn listening(command: &mut Command) -> Result<Target> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut server = Target::spawn_now(command)?;
    let said = server.child().stdout.take().context("a pipe")?;
    let mut lines = BufReader::new(said).lines();
    while !lines.next().context("it ended")??.contains("listening") {}
    // It goes on talking, and must not end by that.
    std::thread::spawn(move || lines.for_each(drop));
    Ok(server)
}
