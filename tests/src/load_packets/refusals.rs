//! What cannot be done: one line that says why and what to do, code 2.
use super::{Cable, packets};
use anyhow::{Context, Result};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, scratch};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    suite.case("load_packets::wrong_traffic_is_refused", &[], traffic);
    suite.case("load_packets::wrong_files_are_refused", &[], files);
    suite.case(
        "load_packets::wrong_ports_are_refused",
        &[Requirement::Netns],
        ports,
    );
}

fn traffic() -> Result<()> {
    let memory = ["--tx", "mem:", "--rx", "mem:", "-c", "1"];
    let cases: [(&[&str], &[&str]); 8] = [
        (&["--protocol", "tcp"], &["76", "--size"]),
        (&["--ipv6"], &["84", "--size"]),
        (&["--size", "9000"], &["9000", "does not fit"]),
        (
            &["--rate", "1000000000000"],
            &["rate", "exceeds the clock resolution"],
        ),
        (
            &["--src", "10.0.0.1", "--dst", "2001:2::1"],
            &["--src", "--dst"],
        ),
        (&["--rules", "100000"], &["65536"]),
        (&["--rules", "/nonexistent"], &["/nonexistent"]),
        (&["--replay", "/nonexistent"], &["/nonexistent"]),
    ];
    for (arguments, words) in cases {
        packets(None, &[&memory[..], arguments].concat())?
            .expect_refusal(words)
            .with_context(|| format!("{arguments:?}"))?;
    }
    packets(None, &["--rate", "10"])?.expect_refusal(&["--tx"])
}

fn files() -> Result<()> {
    let file = scratch().join(format!("packets-wrong-{}", std::process::id()));
    let path = file.to_str().context("a path in UTF-8")?;
    let memory = ["--tx", "mem:", "--rx", "mem:", "-c", "1"];
    let replay = [&memory[..], &["--replay", path]].concat();
    std::fs::write(&file, "neither pcap nor pcapng")?;
    packets(None, &replay)?.expect_refusal(&[path, "pcap"])?;

    // A header, and a record that claims more than there is.
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0; 8]);
    capture.extend([0, 0, 4, 0, 1, 0, 0, 0]);
    capture.extend([0; 8]);
    capture.extend([60, 0, 0, 0, 60, 0, 0, 0, 1, 2, 3]);
    std::fs::write(&file, &capture)?;
    packets(None, &replay)?.expect_refusal(&[path])?;
    std::fs::write(&file, &capture[..24])?;
    packets(None, &replay)?.expect_refusal(&[path, "no frames"])?;

    std::fs::write(
        &file,
        "permit 6 10.0.0.0/8 any 10.0.0.0/8 any\npermit six\n",
    )?;
    packets(None, &[&memory[..], &["--rules", path]].concat())?
        .expect_refusal(&[&format!("{path}:2")])?;
    std::fs::remove_file(&file)?;
    let missing = ["-w", "/nonexistent/rows.hop"];
    packets(None, &[&memory[..], &missing].concat())?.expect_refusal(&["/nonexistent/rows.hop"])
}

fn ports() -> Result<()> {
    let cable = Cable::lay("bad")?;
    let inside = |arguments: &[&str]| packets(Some(&cable.0), arguments);
    inside(&["--tx", "packet:nowhere", "--rx", "packet:p1"])?
        .expect_refusal(&["nowhere", "ip link"])?;
    inside(&["--tx", "packet:lo", "--dst-mac", "2:0:0:0:0:1"])?.expect_refusal(&["lo", "down"])?;
    let too_long = [
        "--tx",
        "packet:p0",
        "--rx",
        "packet:p1",
        "--size",
        "1519",
        "-c",
        "1",
    ];
    inside(&too_long)?.expect_refusal(&["1519", "1518"])?;

    let mut unprivileged = Command::new("ip");
    unprivileged.args([
        "netns",
        "exec",
        &cable.0,
        "setpriv",
        "--bounding-set=-net_raw,-net_admin",
    ]);
    unprivileged.arg(hopscope_tests::hopscope_bin());
    unprivileged.args(["load", "packets", "--tx", "packet:p0", "--rx", "packet:p1"]);
    run(&mut unprivileged)?.expect_refusal(&["CAP_NET_RAW"])
}
