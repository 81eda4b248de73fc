//! Two networks joined by one queue pair: a TAP device, our front end, our back end, a TAP device. What netperf
//! calls TCP_STREAM, TCP_RR and TCP_CRR, and ping and small datagrams, goes over it under each policy.
use super::Bench;
use super::compared::{Networks, Run};
use super::cpu_usage::{Reading, Thread};
use super::load::{self, Load, Servers, microseconds};
use super::policy::{OF_ENDS, Policy};
use super::process::{End, number};
use crate::Settings;
use crate::error::{Error, Result};
use crate::load::network::{Namespace, processors};
use crate::program::run_as;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const CLIENT: &str = "10.0.0.1";
const SERVER: &str = "10.0.0.2";

fn loads(settings: &Settings) -> &'static [Load] {
    match (settings.least, settings.quick) {
        (true, _) => &[Load::Stream(32768), Load::Crr, Load::Udp],
        (false, true) => &[
            Load::Stream(64),
            Load::Stream(32768),
            Load::Maerts(32768),
            Load::Rr,
            Load::Crr,
            Load::Ping(56),
            Load::Udp,
        ],
        (false, false) => &[
            Load::Stream(64),
            Load::Stream(1024),
            Load::Stream(8192),
            Load::Stream(32768),
            Load::Maerts(32768),
            Load::Rr,
            Load::Crr,
            Load::Ping(56),
            Load::Ping(1400),
            Load::Udp,
        ],
    }
}

/// The namespaces, and who answers in the server's.
pub(super) struct Ends {
    client: Namespace,
    server: Namespace,
    servers: Servers,
}

impl Ends {
    pub(super) fn make(hopscope: &Path) -> Result<Ends> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        // TCP_CRR leaves more connections in TIME_WAIT than there are ports.
        let reuse = "echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse";
        run_as("sh", client.in_its_network("sh").args(["-c", reuse]))?;
        let servers = Servers::start(hopscope, &server)?;
        Ok(Ends {
            client,
            server,
            servers,
        })
    }

    /// Both ends of the queues at work, for one load.
    pub(super) fn run(
        &self,
        bench: &Bench<'_, '_>,
        policy: &Policy,
        offload: bool,
        load: Load,
    ) -> Result<Run> {
        let (back, front) = self.join(bench, policy, offload)?;
        let (front_before, back_before) = (Thread::of(front.pid())?, Thread::of(back.pid())?);
        let (began, before) = (Instant::now(), Reading::now()?);
        let said = self.load(bench, load)?;
        let seconds = began.elapsed().as_secs_f64();
        let vmstat = Reading::now()?.since(&before, seconds);
        let front_used = Thread::of(front.pid())?.since(front_before);
        let back_used = Thread::of(back.pid())?.since(back_before);
        front.finish()?;
        let counts = back.finish()?;
        let both = |name: &str| {
            let of = |queue: &str| number(&counts, &format!("pairs.0.{queue}.{name}"));
            Ok::<_, Error>(of("tx")? + of("rx")?)
        };
        let packets = both("packets")?;
        let sent = number(&counts, "pairs.0.tx.packets")?;
        let value = load.value(&said, sent)?;
        Ok(Run {
            value,
            p50_us: microseconds(&said, "p50_ns"),
            packets,
            failed: load::failed(&said, value)?,
            kicks_per_packet: both("kicks")? / packets.max(1.0),
            calls_per_packet: both("calls")? / packets.max(1.0),
            front: front_used,
            back: back_used,
            vmstat,
        })
    }

    fn join(&self, bench: &Bench<'_, '_>, policy: &Policy, offload: bool) -> Result<(End, End)> {
        let (first, last) = processors();
        let socket = bench.files.join("network");
        let hopscope = |processor: &str, what: &str| {
            let mut command = Command::new("taskset");
            command.args(["-c", processor]);
            command.arg(&bench.settings.hopscope).args(["vnet", what]);
            command.arg("--socket").arg(&socket);
            if !offload {
                command.arg("--no-offload");
            }
            command
        };
        let mut back = hopscope(&first, "serve");
        back.args(["--tap", "s0", "--netns", &self.server.path()]);
        back.args(["--tx-call-policy", policy.calls]);
        back.args(["--rx-call-policy", policy.calls]);
        if !policy.event_idx {
            back.args(["--kick-policy", "flags"]);
        }
        let back = End::start("serve", &bench.files, back)?;
        let mut front = hopscope(&last, "drive");
        front.args(["--tap", "c0", "--netns", &self.client.path()]);
        front.args(["--kick-policy", policy.kicks]);
        if !policy.event_idx {
            front.arg("--no-event-idx");
        }
        let front = End::start("drive", &bench.files, front)?;
        self.client.address("c0", CLIENT)?;
        self.server.address("s0", SERVER)?;
        Ok((back, front))
    }

    fn load(&self, bench: &Bench<'_, '_>, load: Load) -> Result<Value> {
        let (_, last) = processors();
        let mut command = self.client.in_its_network("taskset");
        command.args(["-c", &last]).arg(&bench.settings.hopscope);
        let words = load.client(&self.servers, SERVER, bench.milliseconds);
        command.arg("load").args(words);
        load::run(command)
    }
}

/// Every policy under every load in each round, in an order that changes.
pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<Networks> {
    let ends = Ends::make(&bench.settings.hopscope)?;
    let mut networks = Networks::default();
    for round in 0..bench.rounds {
        bench.say("networks", round);
        for offload in [false, true] {
            for load in loads(bench.settings) {
                for at in 0..OF_ENDS.len() {
                    let n = (at + round) % OF_ENDS.len();
                    let policy = &OF_ENDS[n];
                    let run = ends.run(bench, policy, offload, *load)?;
                    bench.sample(json!({
                        "what": "network", "round": round, "load": load.name(), "unit": load.unit(),
                        "offload": offload, "policy": policy.name, "run": run,
                    }))?;
                    networks.add(*load, offload, n, run);
                }
            }
        }
    }
    Ok(networks)
}
