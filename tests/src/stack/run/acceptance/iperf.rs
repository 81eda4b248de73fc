//! iperf3 over TCP, as server and as client: either way, four connections, both ways at once.
use super::super::running::kernel_has_none;
use super::side::{End, Mode, Side};
use crate::stack::cable::files;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts};
use serde_json::Value;

pub(crate) fn register(suite: &mut Suite) {
    for mode in Mode::BOTH {
        for (does, end) in [("serves_with", End::Stack), ("connects_with", End::Kernel)] {
            let name = format!("{}_{does}_iperf3", mode.prefix());
            let needs = &[Requirement::Netns, Requirement::Iperf];
            suite
                .case(name, needs, move || carries(mode, end))
                .in_turn();
        }
    }
}

/// Options, and the sums in which as many bytes are received as were asked for.
const WAYS: [(&[&str], &[&str]); 5] = [
    (&[], &["sum_received"]),
    (&["-R"], &["sum_received"]),
    (&["-P", "4"], &["sum_received"]),
    (&["-P", "4", "-R"], &["sum_received"]),
    (
        &["--bidir"],
        &["sum_received", "sum_received_bidir_reverse"],
    ),
];

/// The server at this end, the client at the other.
fn carries(mode: Mode, end: End) -> Result<()> {
    let side = Side::new(mode)?;
    let address = end.address();
    let pid = files().join("iperf-pid");
    let file = pid.to_str().context("path")?;
    let size = counts().pick("24M", "2G");
    let server = ["/usr/bin/iperf3", "-s", "-1", "-B", address, "-I", file];
    for (options, sums) in WAYS {
        let client = [
            &["/usr/bin/iperf3", "-c", address, "--json", "-n", size][..],
            options,
        ]
        .concat();
        let server = side.starts_at(end, &server, &pid)?;
        // It has its file before it listens.
        let out = loop {
            let out = run(&mut side.command_at(end.other(), &client))?;
            if !out.stdout.contains("Connection refused") {
                break out.expect_code(0)?;
            }
        };
        side.ended(server, None)?;
        if end == End::Kernel {
            side.nothing_is_left(&out.stderr)?;
        }
        let said: Value = serde_json::from_str(&out.stdout)?;
        for sum in sums {
            let received = said["end"][sum]["bytes"].as_u64().context("no bytes")?;
            ensure!(received > 0, "{options:?}: {said}");
        }
    }
    if end == End::Stack {
        kernel_has_none(5201)?;
    }
    side.ends(1_000)
}
