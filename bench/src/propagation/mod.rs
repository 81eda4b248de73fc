//! `bench case-propagation`: the demo firewall with 1,000 rules at low load, all ten modules measured.
//! First as it is: runs, and what each module takes (Table 6 of the source paper). Then with a packet
//! now and then that makes one module slow: what the packets behind it lose, though their own
//! processing is not the cause (Fig. 13).
mod read;
mod report;

use crate::Settings;
use crate::error::Result;
use crate::function::{Cabled, MODULES, Processors};
use crate::hopscope::{Hopscope, Recorded};
use hopscope_compare::host::Host;
use hopscope_compare::output::Output;
use read::{Cause, Packet, Run};
use report::{Figures, Module, Planted, Unplanted};
use serde_json::json;
use std::path::PathBuf;

/// Packets a second: several arrive while a packet is handled only when that one is slow.
const RATE: &str = "20k";
/// Each so many-th packet that is passed on makes `l2_forward` spin for so long.
const SPIN_EVERY: &str = "997";
const SPIN_US: &str = "1000";
const SPIN_NS: f64 = 1e6;
const SLOW_MODULE: &str = "l2_forward";
/// Of which packets the causes are asked.
const TAIL: &str = "p99";

pub fn run(settings: &Settings, demo: Option<&PathBuf>, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    let hopscope = Hopscope::of(settings);
    let processors = Processors::divide()?;
    let packets = if settings.quick { "20000" } else { "100000" };
    let pass = |options: &[&str]| {
        let nf = Cabled::start(settings, &processors, demo, "propagation", options)?;
        Measured::of(&hopscope, &nf, packets)
    };
    settings.say(&format!("{packets} packets through the firewall"));
    let unplanted = pass(&[])?.unplanted(&hopscope)?;
    output.sample(json!({"unplanted": unplanted}))?;
    settings.say(&format!("{packets} more, each {SPIN_EVERY}th of them slow"));
    let planted = pass(&["--spin-every", SPIN_EVERY, "--spin-us", SPIN_US])?.planted(&hopscope)?;
    output.sample(json!({"planted": planted}))?;
    Ok(output.summary(&host, Figures { unplanted, planted }.summary())?)
}

/// Both recordings of one pass: of the firewall and of the packets.
struct Measured {
    recorded: Recorded,
    packets: PathBuf,
}

impl Measured {
    fn of(hopscope: &Hopscope, nf: &Cabled, count: &str) -> Result<Measured> {
        let patterns: Vec<String> = ["pipeline_run"]
            .iter()
            .chain(&MODULES)
            .map(|name| format!("*!{name}"))
            .collect();
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let packets = nf.dir.join("packets.hop");
        let recording = hopscope.record(nf.pid(), &patterns, &["--buffer", "64M"])?;
        nf.load(&[
            "--rate",
            RATE,
            "--arrivals",
            "poisson",
            "--count",
            count,
            "--packets",
            &packets.display().to_string(),
        ])?;
        let recorded = recording.stop()?;
        recorded.expect_functions(1 + MODULES.len())?;
        Ok(Measured { recorded, packets })
    }

    fn ask(&self, hopscope: &Hopscope, view: &[&str]) -> Result<String> {
        let file = self.recorded.file.display().to_string();
        let packets = self.packets.display().to_string();
        let common = ["report", &file, "--json", "--root", "pipeline_run"];
        let all = ["--packets", &packets];
        let packets = if view.contains(&"run") { &[][..] } else { &all };
        hopscope.ask(&[&common, packets, view].concat())
    }

    fn unplanted(self, hopscope: &Hopscope) -> Result<Unplanted> {
        let said = self.ask(hopscope, &["--by", "run", "-n", "0"])?;
        let runs = read::number(&said, "runs", "complete")?;
        let modules = MODULES
            .iter()
            .map(|name| {
                let of = |field| read::of_function(&said, name, field);
                Ok(Module {
                    module: name,
                    mean_ns: of("own_mean_ns")?,
                    p50_ns: of("own_p50_ns")?,
                    p99_ns: of("own_p99_ns")?,
                })
            })
            .collect::<Result<_>>()?;
        let said = self.ask(hopscope, &["--by", "packet", "-n", "0"])?;
        let of = |field| read::number(&said, "matched", field);
        let unplanted = Unplanted {
            packets: of("packets")?,
            came_back: of("latency_n")?,
            ambiguous: of("ambiguous")?,
            latency_p50_ns: of("latency_p50_ns")?,
            latency_p99_ns: of("latency_p99_ns")?,
            runs,
            modules,
        };
        self.recorded.discard()?;
        Ok(unplanted)
    }

    fn planted(self, hopscope: &Hopscope) -> Result<Planted> {
        let all = ["-n", "10000000"];
        let runs: Vec<Run> =
            read::rows(&self.ask(hopscope, &[&["--by", "run"], &all[..]].concat())?);
        let packets: Vec<Packet> =
            read::rows(&self.ask(hopscope, &[&["--by", "packet"], &all[..]].concat())?);
        let causes: Vec<Cause> = read::rows(&self.ask(hopscope, &["--tail", TAIL])?);
        self.recorded.discard()?;
        Ok(Planted::of(runs, &packets, causes.into_iter().next()))
    }
}
