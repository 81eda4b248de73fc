//! Is a known delay measured right? A forwarder that waits so long, and the same one that does not,
//! in turn; what the generator finds between the two is set against what was asked for. Both spin:
//! one that sleeps finds its processor asleep after a delay and awake without, which makes some 15 us
//! on a virtual machine.
use super::Bench;
use super::commands::Ports;
use super::network::{Namespace, Server};
use crate::error::{Error, Result};
use hopscope_compare::comparison::Added;
use hopscope_compare::interleave::{Side, interleave};
use serde::Serialize;
use serde_json::{Value, json};

const ASKED_NS: u64 = 200_000;
/// Slow enough that no packet waits for another.
const PACKETS_PER_S: f64 = 2_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Delay {
    pub(crate) asked_ns: u64,
    /// Median latency with the delay minus without it.
    #[serde(flatten)]
    pub(crate) added: Added,
    /// Found minus asked.
    pub(crate) error_ns: f64,
    /// What the generator finds between two runs without any delay.
    pub(crate) band_ns: f64,
    /// What the forwarder itself was late by, median of rounds: not the generator's error.
    pub(crate) forwarder_late_ns: f64,
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>) -> Result<Delay> {
    let (ends, middle) = (Namespace::new()?, Namespace::new()?);
    ends.cable("p0", &middle, "f0")?;
    ends.cable("p1", &middle, "f1")?;
    let rounds = bench.rounds;
    let mut late = [Vec::new(), Vec::new()];
    let runs = interleave(rounds, |round, side| {
        if side == Side::A {
            bench.say("known delay", round, rounds);
        }
        let asked_ns = if side == Side::B { ASKED_NS } else { 0 };
        let mut command = middle.urgent(&bench.programs.forward);
        command.args(["f0", "f1", &asked_ns.to_string()]);
        let forwarder = Server::start("the forwarder", command)?;
        let ports = Ports::Packet { receives: true };
        let ran = bench
            .load
            .paced(&ends, ports, PACKETS_PER_S, bench.milliseconds)?;
        let said = forwarder.finish()?;
        let late_ns = late_p50(&said)?;
        late[usize::from(side == Side::B)].push(late_ns);
        bench.sample(json!({
            "what": "delay", "round": round, "side": side, "asked_ns": asked_ns,
            "latency_p50_ns": ran.latency_p50_ns, "sent": ran.sent, "matched": ran.matched,
            "forwarder_late_p50_ns": late_ns,
        }))?;
        ran.latency_p50_ns.ok_or(Error::Nothing {
            what: "latency of packets through the forwarder",
        })
    })?;
    let added = Added::of(&runs)?;
    let median =
        |values: &[f64]| hopscope_compare::stats::Spread::of(values).map_or(0.0, |s| s.median);
    Ok(Delay {
        asked_ns: ASKED_NS,
        added,
        error_ns: added.added.estimate - ASKED_NS as f64,
        band_ns: added.band(),
        forwarder_late_ns: median(&late[1]) - median(&late[0]),
    })
}

fn late_p50(line: &str) -> Result<f64> {
    let said: Option<Value> = serde_json::from_str(line).ok();
    said.and_then(|said| said["late_p50_ns"].as_f64())
        .ok_or_else(|| Error::no_field("the forwarder", "late_p50_ns", line))
}
