//! The firewall between two cables, with something wrong with it, recorded while packets come.
use super::build::Build;
use super::{number, parse};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Target, compile_c, hopscope_bin, scratch};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, unshare};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
}

/// A network namespace with two cables, which goes with this case's process.
pub(super) struct Cables {
    /// Of the generator, and of the firewall: the same where there is only one.
    processors: [String; 2],
    directory: PathBuf,
}

impl Cables {
    pub(super) fn lay() -> Result<Cables> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")?;
        for (near, far) in [("g0", "nf0"), ("g1", "nf1")] {
            let link = ["link", "add", near, "type", "veth", "peer", "name", far];
            run(Command::new("ip").args(link))?.expect_code(0)?;
            for end in [near, far] {
                run(Command::new("ip").args(["link", "set", end, "up"]))?.expect_code(0)?;
            }
        }
        let ours = sched_getaffinity(Pid::from_raw(0))?;
        let ours = (0..CpuSet::count()).filter(|cpu| ours.is_set(*cpu).unwrap_or(false));
        let ours: Vec<_> = ours.collect();
        let (first, last) = (ours.first(), ours.last());
        let ends = first.zip(last).context("a processor to run on")?;
        Ok(Cables {
            processors: [ends.0.to_string(), ends.1.to_string()],
            directory: scratch(),
        })
    }

    /// Runs its arguments on one processor, before everything else that wants it: what else this
    /// machine does is not to be the cause of the tail.
    fn first_on(&self, processor: usize, priority: &str) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.processors[processor], "chrt", "-f", priority]);
        command
    }

    /// The same for a process that may never sleep: it would be stopped for 50 ms of each second if
    /// it had such a priority (sched(7), sched_rt_runtime_us).
    fn soon_on(&self, processor: usize) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.processors[processor], "nice", "-n", "-20"]);
        command
    }
}

pub(super) struct Recorded {
    pub process: PathBuf,
    pub packets: PathBuf,
    /// Of `hopscope load packets`.
    pub sent: Value,
}

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
    for _ in 1..TRIES {
        let recorded = record(cables, plant, seed, functions)?;
        let stalled_ns = number(&recorded.sent, "/worst_late_ns")?;
        if stalled_ns < STALLED_NS {
            return Ok(recorded);
        }
        println!(
            "{}, seed {seed}: again, the generator was kept from sending for {stalled_ns} ns",
            plant.name
        );
    }
    record(cables, plant, seed, functions)
}

/// `seed` of the packets and of what interrupts; `functions`: what is recorded.
pub(super) fn record(
    cables: &Cables,
    plant: &Plant,
    seed: u64,
    functions: &[&str],
) -> Result<Recorded> {
    let rules = rules(&cables.directory, plant)?;
    let at = |name: &str| cables.directory.join(name);
    let seed = seed.to_string();
    let mut firewall = match plant.fault.contains(&"--poll") {
        true => cables.soon_on(1),
        false => cables.first_on(1, "10"),
    };
    firewall
        .arg(Build::Plain.network_function()?)
        .args(["--port", "nf0", "--port", "nf1", "--burst", "32", "--rules"])
        .arg(&rules)
        .args(plant.fault)
        .arg("--ready-file")
        .arg(at("ready"))
        .stdout(Stdio::piped());
    let firewall = Target::spawn_with_ready_file(&mut firewall, &at("ready"))?;
    let mut recorder = Command::new(hopscope_bin());
    recorder
        .args(["record", "-p", &firewall.pid().to_string()])
        .args(functions.iter().flat_map(|f| ["-f", f]))
        .args(["--no-calibration", "--max-overhead", "1000000"])
        .args(["--buffer", "32M", "--ready-file"])
        .arg(at("recording"))
        .arg("-o")
        .arg(at("demo.hop"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let recorder = Target::spawn_with_ready_file(&mut recorder, &at("recording"))?;
    let interrupter = match plant.interrupted {
        true => {
            let program = compile_c(&["interrupter.c"], &["-O2"])?;
            let mut command = cables.first_on(1, "20");
            Some(Target::spawn_now(command.arg(program).arg(&seed))?)
        }
        false => None,
    };
    let mut load = cables.first_on(0, "10");
    load.arg(hopscope_bin())
        .args(["load", "packets", "--tx", "packet:g0", "--rx", "packet:g1"])
        .args(["-d", "600", "--json", "--seed", &seed, "--rules"])
        .arg(&rules)
        .args(plant.load)
        .arg("-w")
        .arg(at("packets.hop"));
    let load = run(&mut load)?.expect_code(0)?;
    drop(interrupter);
    recorder.signal(Signal::SIGINT)?;
    let recorded = recorder.output()?;
    ensure!(recorded.status.success(), "{recorded:?}");
    firewall.signal(Signal::SIGTERM)?;
    let out = firewall.output()?;
    ensure!(out.status.success(), "hopscope-demo: {}", out.status);
    Ok(Recorded {
        process: at("demo.hop"),
        packets: at("packets.hop"),
        sent: parse(load.stdout.lines().last().context("no summary")?)?,
    })
}
