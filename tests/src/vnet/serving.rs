//! `hopscope vnet serve --json` whose lines go to a file: nobody has to read them while it runs.
use super::network::Place;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, hopscope_bin};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) struct Serving {
    target: Target,
    socket: PathBuf,
    out: PathBuf,
}

pub(super) struct Said {
    /// What it called `broken_off`, oldest first.
    pub(super) broken_off: Vec<String>,
    pub(super) all: String,
    pub(super) summary: Value,
}

impl Serving {
    pub(super) fn start(place: &Place, arguments: &[&str]) -> Result<Serving> {
        Serving::at(place, place.join("vnet.sock"), arguments)
    }

    pub(super) fn at(place: &Place, socket: PathBuf, arguments: &[&str]) -> Result<Serving> {
        let name = socket.file_name().unwrap_or_default().to_string_lossy();
        let beside = |what: &str| place.join(&format!("{name}.{what}"));
        let (out, ready) = (beside("said"), beside("ready"));
        let mut command = Command::new(hopscope_bin());
        command
            .args(["vnet", "serve", "--json", "--socket"])
            .arg(&socket)
            .arg("--ready-file")
            .arg(&ready)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(File::create(&out)?);
        let target = Target::spawn_with_ready_file(&mut command, &ready)?;
        Ok(Serving {
            target,
            socket,
            out,
        })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Of /proc/PID/status.
    pub(super) fn status(&self, field: &str) -> Result<String> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.target.pid()))?;
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| *name == field).context("no field")?;
        Ok(value.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub(super) fn descriptors(&self) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.target.pid()))?.count())
    }

    /// What is mapped and in memory, of files of others and of its own, in KiB.
    pub(super) fn resident_kib(&self) -> Result<u64> {
        self.kib("VmRSS")
    }

    /// Of it, what belongs to no file: a guest's memory is not in it.
    pub(super) fn own_kib(&self) -> Result<u64> {
        self.kib("RssAnon")
    }

    fn kib(&self, field: &str) -> Result<u64> {
        let value = self.status(field)?;
        Ok(value.split(' ').next().context("no number")?.parse()?)
    }

    /// As by the kernel when memory is short: it says and removes nothing.
    pub(super) fn kill(self) -> Result<()> {
        self.target.signal(Signal::SIGKILL)?;
        self.target.wait().map(drop)
    }

    /// It ends by itself: its exit code, and the last line.
    pub(super) fn ended(self) -> Result<(Option<i32>, Value)> {
        let status = self.target.wait()?;
        let all = std::fs::read_to_string(&self.out)?;
        let last = all.lines().last().context("no line")?;
        let summary: Value = serde_json::from_str(last)?;
        ensure!(summary["type"] == "summary", "{all}");
        Ok((status.code(), summary))
    }

    pub(super) fn stop(self) -> Result<Said> {
        self.target.signal(Signal::SIGTERM)?;
        let status = self.target.wait()?;
        let all = std::fs::read_to_string(&self.out)?;
        ensure!(status.success(), "{status}: {all}");
        let lines: Result<Vec<Value>, _> = all.lines().map(serde_json::from_str).collect();
        let mut lines = lines.context("lines of JSON")?;
        let summary = lines.pop().context("no line")?;
        ensure!(summary["type"] == "summary", "{all}");
        let text = |line: &Value| line["text"].as_str().map(str::to_owned);
        let broken_off = lines.iter().filter(|line| line["what"] == "broken_off");
        Ok(Said {
            broken_off: broken_off.filter_map(text).collect(),
            all,
            summary,
        })
    }
}
