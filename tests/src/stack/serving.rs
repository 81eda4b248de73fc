//! `hopscope stack serve --json` whose lines go to a file: nobody has to read them while it runs.
use super::cable::{Way, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, hopscope_bin};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(super) struct Serving {
    target: Target,
    out: PathBuf,
    control: PathBuf,
}

impl Serving {
    pub(super) fn start(way: Way, arguments: &[&str]) -> Result<Serving> {
        Serving::of_engines(way, way.engines(), arguments)
    }

    /// `--engines=N`, whatever the device has.
    pub(super) fn of_engines(way: Way, engines: &str, arguments: &[&str]) -> Result<Serving> {
        let all = [&way.arguments()[..], &[engines], arguments].concat();
        Serving::with(&all)
    }

    pub(super) fn with(arguments: &[&str]) -> Result<Serving> {
        let dir = files();
        let (out, ready) = (dir.join("said"), dir.join("ready"));
        // Names of sockets have 107 bytes at most (unix(7)), and a scratch directory may be deep.
        let name = format!("hopscope-{}.stack-control", std::process::id());
        let control = std::env::temp_dir().join(name);
        let mut command = Command::new(hopscope_bin());
        command
            .args(["stack", "serve", "--json", "--ready-file"])
            .arg(&ready)
            .arg("--control")
            .arg(&control)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&out)?);
        let target = Target::spawn_with_ready_file(&mut command, &ready)?;
        Ok(Serving {
            target,
            out,
            control,
        })
    }

    pub(super) fn control(&self) -> &str {
        self.control.to_str().unwrap_or_default()
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    /// Of /proc/PID/status.
    pub(super) fn status(&self, field: &str) -> Result<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.target.pid()))?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| *name == field).context("no field")?;
        Ok(value.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Of its first thread.
    pub(super) fn cpu_ns(&self) -> Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.target.pid()))?;
        let first = text.split_whitespace().next().context("no number")?;
        Ok(first.parse()?)
    }

    /// Its summary, after SIGTERM.
    pub(super) fn stop(self) -> Result<Value> {
        self.target.signal(Signal::SIGTERM)?;
        let status = self.target.wait()?;
        let all = std::fs::read_to_string(&self.out)?;
        ensure!(status.success(), "{status}: {all}");
        let last = all.lines().last().context("no line")?;
        let summary: Value = serde_json::from_str(last)?;
        ensure!(summary["type"] == "summary", "{all}");
        ensure!(!self.control.exists(), "the control socket is left behind");
        Ok(summary)
    }
}

/// A counter, of all engines together.
pub(super) fn counter(summary: &Value, path: &str) -> u64 {
    let engines = summary["engines"].as_array().into_iter().flatten();
    let counts = engines.filter_map(|engine| engine.pointer(path)?.as_u64());
    counts.sum()
}
