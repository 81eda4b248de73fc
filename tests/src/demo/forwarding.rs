//! Between network namespaces, checked packet by packet at every port.
use super::build::Build;
use super::network::Network;
use super::{number, parse};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts, scratch};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) const NEEDS: &[Requirement] = &[Requirement::Root, Requirement::Netns, Requirement::Gcc];

pub(super) fn register(suite: &mut Suite) {
    for workers in [1, 2] {
        suite
            .case(
                format!("demo::network_is_forwarded_as_ruled_by_{workers}_workers"),
                NEEDS,
                move || forwards(Build::Plain, workers, counts().pick(30_000, 3_000_000)),
            )
            .in_turn();
    }
    suite
        .case("demo::network_under_sanitizers", NEEDS, || {
            forwards(Build::Sanitized, 2, 20_000)
        })
        .in_turn();
    suite
        .case(
            "demo::traffic_notices_a_firewall_with_other_rules",
            NEEDS,
            traffic_notices,
        )
        .in_turn();
}

/// The network function in a network of its own; fields in the order in which they must go.
pub(super) struct Running {
    target: Target,
    network: Network,
    build: Build,
    directory: PathBuf,
}

impl Running {
    /// Ready for packets when this returns.
    pub(super) fn start(build: Build, workers: u32) -> Result<Running> {
        let directory = scratch();
        let network = Network::up()?;
        let ready = directory.join("ready");
        let mut command = network.inside();
        command
            .arg(build.network_function()?)
            .args(["--port", "port0", "--port", "port1", "--port", "port2"])
            .args(["--workers", &workers.to_string(), "--ready-file"])
            .arg(&ready)
            .stdout(Stdio::piped());
        let target = Target::spawn_with_ready_file(&mut command, &ready)?;
        Ok(Running {
            target,
            network,
            build,
            directory,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    /// The case's scratch directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sends and checks, and returns the traffic's JSON.
    pub(super) fn traffic(&self, code: i32, arguments: &[&str]) -> Result<Value> {
        let mut command = Command::new(self.build.traffic()?);
        for (option, side) in [
            ("--left", "left"),
            ("--right", "right"),
            ("--bystander", "third"),
        ] {
            command.arg(option).arg(self.network.place(side));
        }
        parse(&run(command.args(arguments))?.expect_code(code)?.stdout)
    }

    /// The window, not the rate, paces it: nothing here depends on the machine's speed.
    pub(super) fn paced_traffic(&self, packets: u64) -> Result<Value> {
        let packets = packets.to_string();
        self.traffic(
            0,
            &[
                "--packets",
                &packets,
                "--window",
                "256",
                "--rate",
                "1000000",
            ],
        )
    }

    /// Ends it and returns its counters.
    pub(super) fn stop(self) -> Result<Value> {
        self.target.signal(Signal::SIGTERM)?;
        let out = self.target.output()?;
        ensure!(out.status.success(), "hopscope-demo: {}", out.status);
        parse(&String::from_utf8(out.stdout)?)
    }
}

/// Every permitted packet came out once, unchanged, at its port; no other; and the network
/// function's own counters agree with what was sent, reason by reason.
pub(super) fn check(sent: &Value, counted: &Value, packets: u64) -> Result<()> {
    ensure!(sent["right"] == true, "{sent}");
    ensure!(number(sent, "/sent")? == packets, "{sent}");
    ensure!(number(sent, "/permitted")? > packets / 2, "{sent}");
    ensure!(number(counted, "/total/packets")? == packets, "{counted}");
    ensure!(
        counted["total"]["drops"] == sent["expected_drops"],
        "counted {} for {}",
        counted["total"]["drops"],
        sent["expected_drops"]
    );
    ensure!(
        counted["total"]["forwarded"] == sent["permitted"],
        "{counted} for {sent}"
    );
    for worker in counted["by_worker"].as_array().context("workers")? {
        ensure!(number(worker, "/packets")? > 0, "an idle worker: {counted}");
    }
    Ok(())
}

fn forwards(build: Build, workers: u32, packets: u64) -> Result<()> {
    let running = Running::start(build, workers)?;
    let sent = running.paced_traffic(packets)?;
    check(&sent, &running.stop()?, packets)
}

/// The test can fail: here the firewall decides by other rules than the traffic expects.
fn traffic_notices() -> Result<()> {
    let running = Running::start(Build::Plain, 1)?;
    // No window: packets that rightly never come out must not hold up the rest.
    let other_rules = ["--packets", "5000", "--rate", "20000", "--rules-seed", "2"];
    let sent = running.traffic(1, &other_rules)?;
    running.stop()?;
    ensure!(sent["right"] == false, "{sent}");
    ensure!(number(&sent, "/missing")? > 0, "{sent}");
    Ok(())
}
