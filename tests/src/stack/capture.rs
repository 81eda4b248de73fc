//! What goes over the cable, as somebody else's dissector sees it.
use super::cable::{KERNEL, STACK, Way, files, namespace};
use super::clients::{connect, ended, server};
use super::serving::Serving;
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, hopscope};
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns, Tcpdump, Tshark};
    suite.case(
        "stack::tshark_finds_no_error",
        &[Netns, Ethtool, Tcpdump, Tshark],
        errors,
    );
}

fn errors() -> Result<()> {
    namespace()?;
    Way::PacketWhole.make()?;
    let file = files().join("all.pcap");
    let mut tcpdump = Command::new("tcpdump");
    tcpdump
        .args(["-i", "far", "-Z", "root", "-U", "--immediate-mode", "-w"])
        .arg(&file)
        .stderr(Stdio::null());
    let tcpdump = Target::spawn_now(&mut tcpdump)?;
    while !file.exists() {
        std::thread::yield_now();
    }
    let serving = Serving::start(Way::PacketWhole, &["--app=echo", "--port=7"])?;
    let target = format!("{STACK}:7");
    for (kind, size) in [("crr", "100"), ("rr", "20000")] {
        let words = [
            "load", "tcp", kind, &target, "--closed", "-c", "100", "-n", "5", "--size", size,
        ];
        hopscope(&words)?.expect_code(0)?;
    }
    hopscope(&["load", "ping", STACK, "-c", "5", "-i", "1ms"])?.expect_code(0)?;
    serving.stop()?;
    let sink = server("sink", 9)?;
    let target = format!("{KERNEL}:9");
    connect(
        Way::PacketWhole,
        &target,
        &["--app=discard", "--bytes=5M"],
        0,
    )?;
    ended(sink)?;
    tcpdump.signal(Signal::SIGTERM)?;
    tcpdump.wait()?;
    ensure!(dissected(&file, "tcp")? > 500, "not much was captured");
    for what in ["_ws.expert.severity == \"Error\"", "_ws.malformed"] {
        ensure!(
            dissected(&file, what)? == 0,
            "{what}: {}",
            shown(&file, what)?
        );
    }
    Ok(())
}

/// Frames that a filter finds, with checksums verified.
fn dissected(file: &Path, filter: &str) -> Result<usize> {
    Ok(shown(file, filter)?.lines().count())
}

fn shown(file: &Path, filter: &str) -> Result<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-n", "-Y", filter]);
    for protocol in ["ip", "tcp", "udp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    let out = run(&mut command)?;
    ensure!(out.code == Some(0), "tshark {filter}: {}", out.stderr);
    Ok(out.stdout)
}
