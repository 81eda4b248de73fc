//! The firewall between two cables, recorded while packets come.
use super::build::Build;
use super::parse;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Target, hopscope_bin, scratch};
use nix::sched::{CloneFlags, CpuSet, sched_getaffinity, unshare};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A network namespace with two cables, which goes with this case's process.
pub(super) struct Cables {
    /// Of the generator, and of the firewall: the same where there is only one.
    processors: [String; 2],
    pub(super) directory: PathBuf,
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
    pub(super) fn first_on(&self, processor: usize, priority: &str) -> Command {
        let mut command = Command::new("taskset");
        command.args(["-c", &self.processors[processor], "chrt", "-f", priority]);
        command
    }

    /// The same for a process that may never sleep: it would be stopped for 50 ms of each second if
    /// it had such a priority (sched(7), sched_rt_runtime_us).
    pub(super) fn soon_on(&self, processor: usize) -> Command {
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
    /// The firewall's own.
    pub counted: Value,
}

/// Command lines: `firewall` and `load` begin with what they run under, if anything.
pub(super) struct Scene<'a> {
    pub rules: &'a Path,
    pub firewall: Command,
    /// Options of `hopscope-demo`.
    pub options: &'a [&'a str],
    /// What is recorded, and how.
    pub record: &'a [&'a str],
    /// Runs beside it.
    pub meanwhile: Option<Command>,
    pub load: Command,
    /// Options of `hopscope load packets`.
    pub traffic: &'a [&'a str],
}

impl Scene<'_> {
    pub(super) fn play(self, cables: &Cables) -> Result<Recorded> {
        let at = |name: &str| cables.directory.join(name);
        let mut firewall = self.firewall;
        firewall
            .arg(Build::Plain.network_function()?)
            .args(["--port", "nf0", "--port", "nf1", "--burst", "32", "--rules"])
            .arg(self.rules)
            .args(self.options)
            .arg("--ready-file")
            .arg(at("ready"))
            .stdout(Stdio::piped());
        let firewall = Target::spawn_with_ready_file(&mut firewall, &at("ready"))?;
        let mut recorder = Command::new(hopscope_bin());
        recorder
            .args(["record", "-p", &firewall.pid().to_string()])
            .args(self.record)
            .args(["--max-overhead", "1000000", "--ready-file"])
            .arg(at("recording"))
            .arg("-o")
            .arg(at("demo.hop"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let recorder = Target::spawn_with_ready_file(&mut recorder, &at("recording"))?;
        let meanwhile = match self.meanwhile {
            Some(mut command) => Some(Target::spawn_now(&mut command)?),
            None => None,
        };
        let mut load = self.load;
        load.arg(hopscope_bin())
            .args(["load", "packets", "--tx", "packet:g0", "--rx", "packet:g1"])
            .args(["-d", "600", "--json", "--rules"])
            .arg(self.rules)
            .args(self.traffic)
            .arg("-w")
            .arg(at("packets.hop"));
        let load = run(&mut load)?.expect_code(0)?;
        drop(meanwhile);
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
            counted: parse(&String::from_utf8(out.stdout)?)?,
        })
    }
}
