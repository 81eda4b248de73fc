//! `hopscope check splice` tells what is broken, and what that means.
use anyhow::{Context, Result, ensure};
use hopscope_tests::hopscope;
use serde_json::Value;

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
