//! A running `hopscope slice`.
use anyhow::{Context, Result};
use hopscope_tests::{Target, hopscope, hopscope_bin, scratch};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

pub(super) struct Live {
    slicer: Target,
}

/// What it said: a line a packet, and the last one.
pub(super) struct Said {
    pub(super) packets: Vec<Value>,
    pub(super) summary: Value,
}

impl Live {
    /// Returns when every hook is attached.
    pub(super) fn start(arguments: &[&str]) -> Result<Live> {
        let ready = scratch().join("ready");
        let mut command = Command::new(hopscope_bin());
        command
            .args(["-q", "slice", "--no-calibration", "--json", "--ready-file"])
            .arg(&ready)
            .args(arguments)
            .stdout(Stdio::piped());
        let slicer = Target::spawn_with_ready_file(&mut command, &ready)?;
        Ok(Live { slicer })
    }

    pub(super) fn pid(&self) -> i32 {
        self.slicer.pid()
    }

    /// The kernel frees what a closed socket holds in its own time.
    pub(super) fn expect_none_in_flight(&self) -> Result<()> {
        const LOOKS: u32 = 400;
        let pid = self.pid().to_string();
        let mut said = String::new();
        for _ in 0..LOOKS {
            said = hopscope(&["slice", "stat", "--of", &pid, "--json"])?
                .expect_code(0)?
                .stdout;
            let mut lines = said.lines().map(serde_json::from_str::<Value>);
            if lines.any(|line| line.is_ok_and(|line| line["in_flight"] == 0)) {
                return Ok(());
            }
        }
        anyhow::bail!("{said}")
    }

    pub(super) fn kill(mut self) -> Result<()> {
        self.slicer.child().kill()?;
        self.slicer.child().wait()?;
        Ok(())
    }

    /// As Ctrl-C does.
    pub(super) fn stop(self) -> Result<Said> {
        self.slicer.signal(Signal::SIGINT)?;
        self.ends(0)
    }

    /// By itself, with this exit code.
    pub(super) fn ends(self, code: i32) -> Result<Said> {
        let out = self.slicer.output()?;
        anyhow::ensure!(out.status.code() == Some(code), "{}", out.status);
        let text = String::from_utf8(out.stdout)?;
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        let mut packets = lines.with_context(|| text.clone())?;
        let summary = packets.pop().context("it said nothing")?;
        Ok(Said { packets, summary })
    }
}

impl Said {
    /// Of the last line.
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        let value = &self.summary[name];
        value.as_u64().with_context(|| format!("{name}: {value}"))
    }

    pub(super) fn counter(&self, name: &str) -> Result<u64> {
        let value = &self.summary["summary"]["counters"][name];
        value.as_u64().with_context(|| format!("{name}: {value}"))
    }

    /// Every record begun is accounted for, and every one handed over has a line.
    pub(super) fn expect_adds_up(&self) -> Result<()> {
        let ended = [
            "written",
            "ring_full",
            "too_fast",
            "other_process",
            "aged",
            "stale_ended",
            "split_parents",
            "queue_full",
        ];
        let sum =
            |names: &[&str]| -> Result<u64> { names.iter().map(|name| self.counter(name)).sum() };
        let in_flight = self.summary["summary"]["in_flight"].as_u64();
        let in_flight = in_flight.with_context(|| self.summary.to_string())?;
        // A segment was seen with the packet that it was cut from.
        let begun = ["created", "unmatched", "unreadable", "no_slot"];
        anyhow::ensure!(
            self.counter("created")? == sum(&ended)? + in_flight
                && self.counter("seen")? + self.counter("placed_late")? + self.counter("split")?
                    == sum(&begun)?
                && self.counter("written")? == self.packets.len() as u64,
            "{} lines: {}",
            self.packets.len(),
            self.summary
        );
        Ok(())
    }
}
