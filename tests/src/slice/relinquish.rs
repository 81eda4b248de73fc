//! `-Z`: nothing is left to the process, and it still sees packets, reads its counters and ends well.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, hopscope, hopscope_bin, scratch};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Stdio};

const PACKETS: usize = 20;

pub(super) fn run() -> Result<()> {
    let here = UdpSocket::bind("127.0.0.1:0")?;
    here.connect(here.local_addr()?)?;
    let filter = format!("udp port {}", here.local_addr()?.port());
    let ready = scratch().join("ready");
    let mut command = Command::new(hopscope_bin());
    command.args(["-q", "slice", "--no-calibration", "--json", "-Z", "nobody"]);
    command.arg("--ready-file").arg(&ready).arg(filter);
    let mut slicer = Target::spawn_with_ready_file(command.stdout(Stdio::piped()), &ready)?;
    let mut room = [0; 8];
    for _ in 0..PACKETS {
        here.send(b"a packet")?;
        here.recv(&mut room)?;
    }
    let out = slicer.child().stdout.take().context("a pipe")?;
    let mut lines = BufReader::new(out).lines();
    // The first packet's line comes after privileges were given up.
    let first = lines.next().context("it said nothing")??;
    ensure!(first.contains("\"slice\""), "{first}");
    given_up(slicer.pid())?;
    slicer.signal(Signal::SIGINT)?;
    let rest: Vec<String> = lines.collect::<Result<_, _>>()?;
    ensure!(slicer.wait()?.success(), "it did not end well");
    let summary: Value = serde_json::from_str(rest.last().context("no summary")?)?;
    let written = &summary["summary"]["counters"]["written"];
    ensure!(
        rest.len() == PACKETS && *written == PACKETS,
        "{} lines: {summary}",
        rest.len()
    );
    for (words, says) in [
        (&["slice", "-Z", "no-such-user", "-d", "0.1"][..], "no user"),
        (&["slice", "-Z", "nobody", "--duty", "1/16"][..], "--duty"),
    ] {
        let out = hopscope(words)?.expect_code(2)?;
        ensure!(out.stderr.contains(says), "{}", out.stderr);
    }
    Ok(())
}

fn given_up(pid: i32) -> Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let words = |field: &str| -> Result<Vec<String>> {
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let line = line.with_context(|| format!("no {field} in {status}"))?;
        Ok(line.split_whitespace().map(str::to_owned).collect())
    };
    let nobody = nix::unistd::User::from_name("nobody")?.context("nobody")?;
    let uid = nobody.uid.to_string();
    ensure!(words("Uid:")?.iter().all(|id| *id == uid), "{status}");
    for field in ["CapEff:", "CapPrm:"] {
        let left = words(field)?;
        ensure!(left == ["0000000000000000"], "{field} {left:?}");
    }
    ensure!(words("Groups:")? == [nobody.gid.to_string()], "{status}");
    Ok(())
}
