//! Functions that come while `top` shows others: of what is loaded, and called through pointers.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, hopscope_bin, scratch};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// A `top --raw --json` that measures.
pub(crate) struct Top(Target);

impl Top {
    pub(crate) fn start(pid: i32, options: &[&str]) -> Result<Top> {
        let ready = scratch().join("top.ready");
        let mut top = Command::new(hopscope_bin());
        top.args(["top", "--raw", "--json", "--no-calibration", "-i", "100ms"])
            .args(["--max-overhead", "1e9", "-p", &pid.to_string()])
            .args(options)
            .arg("--ready-file")
            .arg(&ready)
            .stdout(Stdio::piped());
        Ok(Top(Target::spawn_with_ready_file(&mut top, &ready)?))
    }

    /// All calls of each function.
    pub(crate) fn stop(self) -> Result<BTreeMap<String, u64>> {
        self.0.signal(Signal::SIGINT)?;
        let out = self.0.output()?;
        ensure!(out.status.success(), "{}", out.status);
        let mut calls: BTreeMap<String, u64> = BTreeMap::new();
        for line in String::from_utf8(out.stdout)?.lines() {
            let row: Value = serde_json::from_str(line)?;
            if row["type"] == "function" {
                let function = row["function"].as_str().context("a name")?;
                let n = row["calls"].as_u64().context("calls")?;
                *calls.entry(function.to_owned()).or_default() += n;
            }
        }
        Ok(calls)
    }
}
