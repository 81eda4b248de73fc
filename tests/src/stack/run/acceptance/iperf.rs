//! iperf3 over TCP, as server and as client: either way, four connections, both ways at once.
use super::super::running::kernel_has_none;
use super::side::{Mode, Side};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use serde_json::Value;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    for mode in Mode::BOTH {
        for (end, is_server) in [("serves_with", true), ("connects_with", false)] {
            let name = format!("{}_{end}_iperf3", mode.prefix());
            let needs = &[Requirement::Netns, Requirement::Iperf];
            suite
                .case(name, needs, move || carries(mode, is_server))
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

fn carries(mode: Mode, is_server: bool) -> Result<()> {
    let side = Side::new(mode)?;
    let address = if is_server { STACK } else { KERNEL };
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
        let command = |words: &[&str], is_there: bool| match is_there {
            true => side.command(words),
            false => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]).stdin(Stdio::null());
                command
            }
        };
        let mut start = command(&server, is_server);
        start.stdout(Stdio::null());
        let server = side.spawns(&mut start, |command| {
            Target::spawn_with_ready_file(command, &pid)
        })?;
        // It has its file before it listens.
        let out = loop {
            let out = run(&mut command(&client, !is_server))?;
            if !out.stdout.contains("Connection refused") {
                break out.expect_code(0)?;
            }
        };
        match is_server {
            true => side.ended(server, None)?,
            false => {
                ensure!(server.target.wait()?.success(), "the server failed");
                side.nothing_is_left(&out.stderr)?;
            }
        }
        let said: Value = serde_json::from_str(&out.stdout)?;
        for sum in sums {
            let received = said["end"][sum]["bytes"].as_u64().context("no bytes")?;
            ensure!(received > 0, "{options:?}: {said}");
        }
    }
    if is_server {
        kernel_has_none(5201)?;
    }
    side.ends(1_000)
}
