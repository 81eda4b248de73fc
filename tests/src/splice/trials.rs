//! `hopscope check splice` tells what is broken, and what that means.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{hopscope, hopscope_bin};
use serde_json::Value;
use std::process::Command;

pub(super) fn run() -> Result<()> {
    let out = hopscope(&["check", "splice", "--json"])?.expect_code(0)?;
    let lines: Result<Vec<Value>, _> = out.stdout.lines().map(serde_json::from_str).collect();
    let lines = lines.with_context(|| out.stdout.clone())?;
    for name in [
        "joins",
        "early-data",
        "eof-overtakes",
        "half-close",
        "memory-bound",
        "fionread",
        "peek",
        "splice",
        "waitall",
        "interrupted",
        "unread-reset",
        "shared",
        "fionread-tcp",
        "peek-tcp",
        "splice-tcp",
    ] {
        let line = lines.iter().find(|line| line["name"] == name);
        let line = line.with_context(|| format!("nothing of {name}: {}", out.stdout))?;
        let state = line["state"].as_str().unwrap_or("");
        ensure!(
            line["type"] == "trial"
                && ["ok", "broken"].contains(&state)
                && line["means"]
                    .as_str()
                    .is_some_and(|means| !means.is_empty()),
            "{line}"
        );
    }
    // No kernel honours it: sk_msg_recvmsg (net/core/skmsg.c) gives what there is.
    let waitall = lines.iter().find(|line| line["name"] == "waitall");
    ensure!(
        waitall.is_some_and(|line| line["state"] == "broken"),
        "{lines:?}"
    );
    let text = hopscope(&["check", "splice"])?.expect_code(0)?;
    ensure!(
        text.stdout
            .contains("means: programs that read with MSG_WAITALL"),
        "{}",
        text.stdout
    );
    Ok(())
}

/// The third and three more packets that only acknowledge are lost: the handshake's last among them, as where softirqs
/// wait for a processor.
const LOSSES: &str = "table inet lossy {
    chain input {
        type filter hook input priority 0
        tcp flags & (fin|syn|rst|psh|ack) == ack meta length < 80 numgen inc mod 3 == 2 quota until 220 bytes drop
    }
}
";

/// A first message that takes TCP for that shows nothing of the kernel: the next one is asked.
pub(super) fn late_handshakes() -> Result<()> {
    let script = "ip link set lo up && nft \"$LOSSES\" && exec \"$BIN\" check splice --json";
    let mut inside = Command::new("unshare");
    inside.args(["-n", "sh", "-c", script]);
    inside.env("BIN", hopscope_bin()).env("LOSSES", LOSSES);
    let out = command(&mut inside)?.expect_code(0)?;
    let lines: Result<Vec<Value>, _> = out.stdout.lines().map(serde_json::from_str).collect();
    let lines = lines.with_context(|| out.stdout.clone())?;
    let early = lines.iter().find(|line| line["name"] == "early-data");
    let early = early.with_context(|| out.stdout.clone())?;
    let found = early["found"].as_str().unwrap_or("");
    ensure!(
        early["state"] == "ok" && found.contains("the first message took TCP"),
        "{early}"
    );
    Ok(())
}
