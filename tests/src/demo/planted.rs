//! The firewall with something wrong with it.
use super::number;
use super::scene::{Cables, Recorded, Scene};
use anyhow::{Context, Result};
use hopscope_tests::compile_c;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is wrong, and with which packets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plant {
    pub name: &'static str,
    /// Options of `hopscope-demo`.
    pub fault: &'static [&'static str],
    /// Options of `hopscope load packets`.
    pub load: &'static [&'static str],
    /// Flows, a rule and a destination port (from 1,000 on) each.
    pub flows: u16,
    /// The port of the flow that is not let through.
    pub denied: Option<u16>,
    /// Which packets are late.
    pub above: &'static str,
    /// Another process on the firewall's processor.
    pub interrupted: bool,
    /// Commands now and then, each of which walks a table in the packets' thread.
    pub commanded: bool,
}

/// Some milliseconds in a cache.
const TABLE_ENTRIES: &str = "262144";

fn rules(directory: &Path, plant: &Plant) -> Result<PathBuf> {
    let mut text = String::new();
    for port in 1000..1000 + plant.flows {
        let what = match plant.denied == Some(port) {
            true => "deny",
            false => "permit",
        };
        let net = "198.18.0.0/15";
        writeln!(text, "{what} 17 {net} any {net} {port}-{port}")?;
    }
    let path = directory.join("rules");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Longer than anything planted keeps the generator from sending.
const STALLED_NS: u64 = 20_000_000;
const TRIES: u32 = 4;

/// As [`record`], again where the machine kept the generator from sending for so long, as the
/// generator itself says, that its lateness outweighs everything else: then that is what to name.
/// Not for ever: the last one is given whatever it is.
pub(super) fn record_undisturbed(
    cables: &Cables,
    plant: &Plant,
    seed: u64,
    functions: &[&str],
) -> Result<Recorded> {
    let mut tries = 1;
    loop {
        let recorded = record(cables, plant, seed, functions)?;
        let stalled_ns = number(&recorded.sent, "/worst_late_ns")?;
        if stalled_ns < STALLED_NS {
            return Ok(recorded);
        }
        println!(
            "{}, seed {seed}, {tries} of {TRIES}: the generator was kept from sending for {stalled_ns} ns",
            plant.name
        );
        if tries == TRIES {
            return Ok(recorded);
        }
        tries += 1;
    }
}

/// `seed` of the packets and of what interrupts; `functions`: what is recorded.
pub(super) fn record(
    cables: &Cables,
    plant: &Plant,
    seed: u64,
    functions: &[&str],
) -> Result<Recorded> {
    let seed = seed.to_string();
    let functions = functions.iter().flat_map(|f| ["-f", f]);
    let mut meanwhile = None;
    if plant.interrupted {
        let mut command = cables.first_on(1, "20");
        let program = compile_c(&["interrupter.c"], &["-O2"])?;
        command.arg(program).arg(&seed);
        meanwhile = Some(command);
    }
    let mut options = plant.fault.to_vec();
    let socket = cables.directory.join("control");
    if plant.commanded {
        let program = compile_c(&["commander.c"], &["-O2"])?;
        let mut command = Command::new(program);
        command.arg(&socket).arg(&seed);
        meanwhile = Some(command);
        let path = socket.to_str().context("a path in UTF-8")?;
        options.extend(["--control", path, "--control-entries", TABLE_ENTRIES]);
    }
    let scene = Scene {
        rules: &rules(&cables.directory, plant)?,
        firewall: match plant.fault.contains(&"--poll") {
            true => cables.soon_on(1),
            false => cables.first_on(1, "10"),
        },
        options: &options,
        record: &functions
            .chain(["--no-calibration", "--buffer", "32M"])
            .collect::<Vec<_>>(),
        meanwhile,
        load: cables.first_on(0, "10"),
        traffic: &[&["--seed", &seed], plant.load].concat(),
    };
    scene.play(cables)
}
