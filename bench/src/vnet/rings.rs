//! One transmit queue of 64-byte packets from our front end to our back end, which drops them: what a policy
//! of kicks does where nothing else costs anything.
use super::Bench;
use super::cpu_usage::Thread;
use super::policy::{ADAPTIVE, OF_KICKS, PLAIN, Policy};
use super::process::{End, number};
use crate::error::Result;
use crate::load::network::processors;
use crate::ratio::ratio;
use hopscope_compare::median::Interval;
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::process::Command;

/// Packets offered a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Offered {
    Rate(u32),
    Saturating,
}

impl Offered {
    fn name(self) -> String {
        match self {
            Offered::Rate(rate) => rate.to_string(),
            Offered::Saturating => "saturate".into(),
        }
    }
}

const LOW: Offered = Offered::Rate(1_000);

fn loads(quick: bool) -> &'static [Offered] {
    if quick {
        &[LOW, Offered::Rate(200_000), Offered::Saturating]
    } else {
        &[
            LOW,
            Offered::Rate(20_000),
            Offered::Rate(200_000),
            Offered::Rate(1_000_000),
            Offered::Saturating,
        ]
    }
}

/// One run.
#[derive(Debug, Clone, Copy, Serialize)]
struct Run {
    packets_per_s: f64,
    kicks_per_packet: f64,
    calls_per_packet: f64,
    /// From the time at which a packet was due until the front end took its entry back.
    p50_ns: f64,
    p99_ns: f64,
    front_cpu_ns_per_packet: f64,
    back_cpu_ns_per_packet: f64,
    front_switches_per_packet: f64,
    back_switches_per_packet: f64,
    /// Kicks, calls and packets are the same at both ends.
    ends_agree: bool,
}

/// Medians of the runs of one policy at one load.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    pub(super) offered: String,
    pub(super) policy: Policy,
    pub(super) packets_per_s: Spread,
    pub(super) kicks_per_packet: Spread,
    pub(super) calls_per_packet: Spread,
    pub(super) p50_us: Spread,
    pub(super) p99_us: Spread,
    pub(super) front_cpu_ns_per_packet: f64,
    pub(super) back_cpu_ns_per_packet: f64,
    pub(super) front_switches_per_packet: f64,
    pub(super) back_switches_per_packet: f64,
}

#[derive(Debug, Default)]
pub(super) struct Rings {
    runs: BTreeMap<(Offered, usize), Vec<Run>>,
}

/// Every policy in each round, in an order that changes.
pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<Rings> {
    let mut rings = Rings::default();
    for round in 0..bench.rounds {
        bench.say("rings", round);
        for offered in loads(bench.settings.quick) {
            for at in 0..OF_KICKS.len() {
                let n = (at + round) % OF_KICKS.len();
                let policy = &OF_KICKS[n];
                let run = run(bench, policy, *offered)?;
                bench.sample(json!({
                    "what": "rings", "round": round, "offered": offered.name(),
                    "policy": policy.name, "run": run,
                }))?;
                rings.runs.entry((*offered, n)).or_default().push(run);
            }
        }
    }
    Ok(rings)
}

fn run(bench: &Bench<'_, '_>, policy: &Policy, offered: Offered) -> Result<Run> {
    let (first, last) = processors();
    let socket = bench.files.join("rings");
    let binary = &bench.settings.hopscope;
    let hopscope = |processor: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", processor]).arg(binary).arg("vnet");
        command
    };
    let mut back = hopscope(&first);
    back.arg("serve").arg("--socket").arg(&socket);
    back.args(["--discard", "--tx-call-policy", policy.calls]);
    if !policy.event_idx {
        back.args(["--kick-policy", "flags"]);
    }
    let back = End::start("serve", &bench.files, back)?;
    let before = Thread::of(back.pid())?;
    let mut front = hopscope(&last);
    front.arg("drive").arg("--socket").arg(&socket);
    let seconds = (bench.milliseconds as f64 / 1e3).to_string();
    front.args(["--size", "64", "--kick-policy", policy.kicks]);
    front.args(["--duration", &seconds, "--rate", &offered.name()]);
    front.args(["--arrivals", "poisson"]);
    if !policy.event_idx {
        front.arg("--no-event-idx");
    }
    let front = End::start("drive", &bench.files, front)?.wait()?;
    let used = Thread::of(back.pid())?.since(before);
    let back = back.finish()?;
    let of_front = |name: &str| number(&front, name);
    let of_back = |name: &str| number(&back, &format!("pairs.0.tx.{name}"));
    let packets = of_back("packets")?;
    let per_packet = |n: f64| n / packets.max(1.0);
    Ok(Run {
        packets_per_s: of_front("packets_per_s")?,
        kicks_per_packet: per_packet(of_back("kicks")?),
        calls_per_packet: per_packet(of_back("calls")?),
        p50_ns: of_front("latency_p50_ns")?,
        p99_ns: of_front("latency_p99_ns")?,
        front_cpu_ns_per_packet: per_packet(of_front("cpu_ns")?),
        back_cpu_ns_per_packet: per_packet(used.cpu_ns),
        front_switches_per_packet: per_packet(
            of_front("voluntary_switches")? + of_front("involuntary_switches")?,
        ),
        back_switches_per_packet: per_packet(used.switches),
        ends_agree: of_front("sent")? == packets
            && of_front("kicks")? == of_back("kicks")?
            && of_front("calls")? == of_back("calls")?,
    })
}

impl Rings {
    fn of(&self, offered: Offered, name: &str) -> Option<&[Run]> {
        let n = OF_KICKS.iter().position(|policy| policy.name == name)?;
        self.runs.get(&(offered, n)).map(Vec::as_slice)
    }

    fn ratio(
        &self,
        offered: Offered,
        over: (&str, &str),
        what: fn(&Run) -> f64,
    ) -> Option<Interval> {
        let (of, to) = (self.of(offered, over.0)?, self.of(offered, over.1)?);
        ratio(of.iter().zip(to).map(|(of, to)| (what(of), what(to))))
    }

    fn median(&self, offered: Offered, name: &str, what: fn(&Run) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.of(offered, name)?.iter().map(what).collect();
        Some(Spread::of(&values)?.median)
    }

    /// The fixed policy that is fastest when as much is offered as goes.
    pub(super) fn best_fixed(&self) -> Option<&'static str> {
        let fixed = OF_KICKS.iter().map(|policy| policy.name);
        let rate = |name: &str| self.median(Offered::Saturating, name, |run| run.packets_per_s);
        fixed
            .filter(|name| *name != ADAPTIVE)
            .filter_map(|name| Some((name, rate(name)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(name, _)| name)
    }

    /// Packets a second of one policy to those of another, as much offered as goes.
    pub(super) fn rates(&self, of: &str, to: &str) -> Option<Interval> {
        self.ratio(Offered::Saturating, (of, to), |run| run.packets_per_s)
    }

    pub(super) fn latency_at_1kpps(&self, of: &str) -> Option<Interval> {
        self.ratio(LOW, (of, PLAIN), |run| run.p50_ns)
    }

    /// The worst of all loads: of medians, at most so many times as much.
    pub(super) fn worst(&self, of: &str, to: &str, what: Measured) -> Option<f64> {
        let what: fn(&Run) -> f64 = match what {
            Measured::P50 => |run| run.p50_ns,
            Measured::Kicks => |run| run.kicks_per_packet,
        };
        let mut loads: Vec<Offered> = self.runs.keys().map(|(offered, _)| *offered).collect();
        loads.dedup();
        let ratio = |offered: &Offered| {
            let (of, to) = (
                self.median(*offered, of, what)?,
                self.median(*offered, to, what)?,
            );
            Some(of / to)
        };
        loads.iter().filter_map(ratio).max_by(f64::total_cmp)
    }

    pub(super) fn disagreements(&self) -> usize {
        let runs = self.runs.values().flatten();
        runs.filter(|run| !run.ends_agree).count()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        let row = |((offered, n), runs): (&(Offered, usize), &Vec<Run>)| {
            let spread = |what: fn(&Run) -> f64| {
                let values: Vec<f64> = runs.iter().map(what).collect();
                Spread::of(&values)
            };
            let median = |what: fn(&Run) -> f64| Some(spread(what)?.median);
            Some(Row {
                offered: offered.name(),
                policy: OF_KICKS[*n],
                packets_per_s: spread(|run| run.packets_per_s)?,
                kicks_per_packet: spread(|run| run.kicks_per_packet)?,
                calls_per_packet: spread(|run| run.calls_per_packet)?,
                p50_us: spread(|run| run.p50_ns / 1e3)?,
                p99_us: spread(|run| run.p99_ns / 1e3)?,
                front_cpu_ns_per_packet: median(|run| run.front_cpu_ns_per_packet)?,
                back_cpu_ns_per_packet: median(|run| run.back_cpu_ns_per_packet)?,
                front_switches_per_packet: median(|run| run.front_switches_per_packet)?,
                back_switches_per_packet: median(|run| run.back_switches_per_packet)?,
            })
        };
        self.runs.iter().filter_map(row).collect()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Measured {
    P50,
    Kicks,
}
