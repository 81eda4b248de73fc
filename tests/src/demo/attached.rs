//! Attaching and detaching while packets come: none is lost for it.
use super::build::Build;
use super::forwarding::NEEDS;
use super::scene::Cables;
use super::{number, parse};
use crate::recording::summary;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Suite, Target, hopscope_bin};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

/// 25 ms at this rate.
const SLOTS: &str = "512";
const RATE: &str = "20000";
const RECORDINGS: usize = 2;
/// A round in which the machine itself lost packets tells nothing.
const ROUNDS: usize = 4;

pub(super) fn register(suite: &mut Suite) {
    suite
        .case("demo::attaching_loses_no_packet", NEEDS, loses_none)
        .alone();
}

/// Packets lost with the firewall recorded a few times meanwhile, and those that are lost anyway.
fn loses_none() -> Result<()> {
    let cables = Cables::lay()?;
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        let lost = [Some("--dry-run"), None].map(|instead| lost(&cables, instead));
        let [without, with] = lost;
        let (without, with) = (without?, with?);
        println!("lost without attaching {without}, with {with}");
        if with <= without {
            return Ok(());
        }
        seen.push((without, with));
    }
    ensure!(
        seen.is_empty(),
        "lost without attaching, and with: {seen:?}"
    );
    Ok(())
}

fn lost(cables: &Cables, instead: Option<&str>) -> Result<u64> {
    let at = |name: &str| cables.directory.join(name);
    std::fs::write(
        at("rules"),
        "permit 17 198.18.0.0/15 any 198.18.0.0/15 1000-1000\n",
    )?;
    let mut firewall = cables.first_on(1, "10");
    firewall
        .arg(Build::Plain.network_function()?)
        .args(["--port", "nf0", "--port", "nf1", "--ring-slots", SLOTS])
        .arg("--rules")
        .arg(at("rules"))
        .arg("--ready-file")
        .arg(at("ready"))
        .stdout(Stdio::piped());
    let firewall = Target::spawn_with_ready_file(&mut firewall, &at("ready"))?;
    // No real-time priority: whose packets are late never sleeps, and the recorder needs this processor
    // while it stops somebody.
    let mut load = cables.soon_on(0);
    load.arg(hopscope_bin())
        .args(["load", "packets", "--tx", "packet:g0", "--rx", "packet:g1"])
        .args(["-d", "600", "--json", "--rate", RATE, "--rules"])
        .arg(at("rules"))
        .stdout(Stdio::piped());
    let load = Target::spawn_now(&mut load)?;
    for n in 0..RECORDINGS {
        let mut record = Command::new(hopscope_bin());
        record
            .args(["record", "-p", &firewall.pid().to_string()])
            .args(["-f", "hopscope-demo!*", "-f", "feature.so!*"])
            .args(["-f", "acl.so!*", "-f", "l2.so!*"])
            .args(["--no-calibration", "--max-overhead", "1e9", "-d", "50ms"])
            .arg("--json")
            .args(instead)
            .arg("-o")
            .arg(at(&format!("{n}.hop")));
        let said = run(&mut record)?.expect_code(0)?.stdout;
        if instead.is_none() {
            println!("{}", summary(&said)?["stops"]);
        }
    }
    load.signal(Signal::SIGINT)?;
    let load = load.output()?;
    let said = String::from_utf8(load.stdout)?;
    let sent: Value = parse(said.lines().last().context("no summary")?)?;
    firewall.signal(Signal::SIGTERM)?;
    let counted = firewall.output()?;
    ensure!(
        counted.status.success(),
        "hopscope-demo: {}",
        counted.status
    );
    let counted = parse(&String::from_utf8(counted.stdout)?)?;
    ensure!(number(&counted, "/total/forwarded")? > 0, "{counted}");
    ensure!(number(&sent, "/sent")? > 0, "{sent}");
    number(&counted, "/io/kernel_dropped")
}
