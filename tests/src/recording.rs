//! A running `hopscope record`, and what its file says.
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::{Target, hopscope, hopscope_bin};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) struct Recording {
    recorder: Target,
}

impl Recording {
    /// `hopscope record` on `pid`, returning when the target is being recorded.
    pub(crate) fn start(pid: i32, patterns: &[&str], output: &Path) -> Result<Recording> {
        Recording::start_command(command(pid, patterns, output), output)
    }

    /// With rings that hold everything, whether the recorder gets a processor in time or not.
    pub(crate) fn start_keeping(
        pid: i32,
        patterns: &[&str],
        output: &Path,
        buffer: &str,
    ) -> Result<Recording> {
        Recording::start_command(command_with_buffer(pid, patterns, output, buffer), output)
    }

    pub(crate) fn start_command(mut command: Command, output: &Path) -> Result<Recording> {
        let ready = output.with_extension("ready");
        command
            .arg("--ready-file")
            .arg(&ready)
            .stdout(Stdio::piped());
        let recorder = Target::spawn_with_ready_file(&mut command, &ready)?;
        Ok(Recording { recorder })
    }

    /// As Ctrl-C does. Gives the summary.
    pub(crate) fn stop(self) -> Result<Value> {
        self.recorder.signal(Signal::SIGINT)?;
        self.finished()
    }

    pub(crate) fn pid(&self) -> i32 {
        self.recorder.pid()
    }

    /// Below its guardian, which this is.
    pub(crate) fn recorder(&self) -> Result<Pid> {
        let guardian = self.pid();
        let children = format!("/proc/{guardian}/task/{guardian}/children");
        let children = std::fs::read_to_string(children)?;
        let first = children.split_whitespace().next().context("a recorder")?;
        Ok(Pid::from_raw(first.parse()?))
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        self.recorder.signal(signal)
    }

    /// Waits for its own end, whatever it is; what it said on a piped stderr.
    pub(crate) fn ended(self) -> Result<(Option<i32>, String)> {
        let out = self.recorder.output()?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        Ok((out.status.code(), said))
    }

    /// Waits for its own end.
    pub(crate) fn finished(self) -> Result<Value> {
        let out = self.recorder.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        ensure!(out.status.success(), "the recorder: {}\n{said}", out.status);
        summary(&said)
    }
}

pub(crate) fn summary(said: &str) -> Result<Value> {
    let last = said.lines().last().context("the recorder said nothing")?;
    serde_json::from_str(last).with_context(|| format!("its summary: {last}"))
}

/// Without calibration: these tests are about counts, not times.
pub(crate) fn command(pid: i32, patterns: &[&str], output: &Path) -> Command {
    command_with_buffer(pid, patterns, output, "16M")
}

pub(crate) fn command_with_buffer(
    pid: i32,
    patterns: &[&str],
    output: &Path,
    buffer: &str,
) -> Command {
    let mut command = Command::new(hopscope_bin());
    command.args([
        "record",
        "-p",
        &pid.to_string(),
        "--json",
        "--no-calibration",
    ]);
    command
        .args(["--max-overhead", "1e9", "--buffer", buffer, "-o"])
        .arg(output);
    for pattern in patterns {
        command.args(["-f", pattern]);
    }
    command
}

/// A short recording, and then probes that go on and off in turn; for this they are calibrated.
pub(crate) fn command_checking(pid: i32, patterns: &[&str], output: &Path, time: &str) -> Command {
    let mut command = Command::new(hopscope_bin());
    command
        .args(["record", "--json", "--max-overhead", "1e9"])
        .args(["-d", "20ms", &format!("--check-cost={time}")])
        .args(["-p", &pid.to_string(), "-o"])
        .arg(output);
    for pattern in patterns {
        command.args(["-f", pattern]);
    }
    command
}

/// That they did, whatever came of it.
pub(crate) fn expect_checked(summary: &Value) -> Result<()> {
    let check = &summary["cost_check"];
    let why_not = check["why_not"].as_str().unwrap_or_default();
    ensure!(
        check.is_object() && !why_not.contains("ended first"),
        "not checked: {summary}"
    );
    let functions = |value: &Value| value.as_u64().context("a number of functions");
    ensure!(
        functions(&check["functions_not_switched"])? < functions(&summary["functions"])?,
        "nothing was switched: {summary}"
    );
    Ok(())
}

/// `hopscope report FILE --json`.
pub(crate) struct Report {
    pub(crate) functions: HashMap<String, BTreeMap<String, u64>>,
    pub(crate) refused: HashMap<String, String>,
    pub(crate) summary: Value,
}

impl Report {
    pub(crate) fn read(file: &Path) -> Result<Report> {
        let path: PathBuf = file.into();
        let words = ["report", path.to_str().context("path")?, "--json"];
        let out = hopscope(&words)?.expect_code(0)?;
        let mut report = Report {
            functions: HashMap::new(),
            refused: HashMap::new(),
            summary: Value::Null,
        };
        for line in out.stdout.lines() {
            let value: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
            match value["type"].as_str() {
                Some("function") => {
                    let mut function = balance(&value)?;
                    function.insert(
                        "fused".to_owned(),
                        value["fused_calls"].as_u64().unwrap_or(0),
                    );
                    report.functions.insert(text("function"), function);
                }
                Some("refusal") => {
                    report.refused.insert(text("name"), text("reason"));
                }
                Some("summary") => report.summary = value,
                _ => {}
            }
        }
        ensure!(
            !report.summary.is_null(),
            "the report has no summary: {}",
            out.stdout
        );
        Ok(report)
    }

    pub(crate) fn entries(&self, function: &str) -> u64 {
        self.functions.get(function).map_or(0, |b| b["entries"])
    }

    /// Nothing lost, every entry accounted for in each function, and over all of them.
    pub(crate) fn expect_whole(&self) -> Result<()> {
        let number = |field: &str| self.summary[field].as_u64();
        for field in ["lost", "torn", "missing", "unknown_records"] {
            ensure!(number(field) == Some(0), "{field}: {}", self.summary);
        }
        self.expect_balanced()
    }

    pub(crate) fn expect_balanced(&self) -> Result<()> {
        for (name, b) in &self.functions {
            expect_balance(name, b)?;
        }
        expect_balance("all functions", &balance(&self.summary)?)
    }
}

fn expect_balance(name: &str, b: &BTreeMap<String, u64>) -> Result<()> {
    let ended: u64 = [
        "exits",
        "tail_exits",
        "open_at_end",
        "declared_lost",
        "cut_by_loss",
        "unwound",
        "moved",
    ]
    .iter()
    .map(|field| b[*field])
    .sum();
    ensure!(
        b["entries"] == ended,
        "{name}: entries without an end: {b:?}"
    );
    Ok(())
}

fn balance(value: &Value) -> Result<BTreeMap<String, u64>> {
    let Some(fields) = value["balance"].as_object() else {
        bail!("no balance in {value}");
    };
    let number = |v: &Value| v.as_u64().context("a balance is a whole number");
    fields
        .iter()
        .map(|(name, v)| Ok((name.clone(), number(v)?)))
        .collect()
}
