//! Every function of all modules of a program measured, and what must hold of the file.
use crate::recording::{self, Report};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, hopscope_bin};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `hopscope record` of all that is in the processes.
pub(super) struct Everything {
    recorder: Target,
    trace: PathBuf,
}

impl Everything {
    /// Returns when all of `pids` are being recorded.
    pub(super) fn start(pids: &[i32], trace: &Path) -> Result<Everything> {
        let ready = trace.with_extension("ready");
        let mut command = record(trace);
        for pid in pids {
            command.args(["-p", &pid.to_string()]);
        }
        command
            .arg("--ready-file")
            .arg(&ready)
            .stdout(Stdio::piped());
        Ok(Everything {
            recorder: Target::spawn_with_ready_file(&mut command, &ready)?,
            trace: trace.into(),
        })
    }

    /// As Ctrl-C does.
    pub(super) fn stop(self) -> Result<Measured> {
        self.recorder.signal(Signal::SIGINT)?;
        self.finished()
    }

    /// When the targets have ended.
    pub(super) fn finished(self) -> Result<Measured> {
        let out = self.recorder.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        ensure!(out.status.success(), "the recorder: {}\n{said}", out.status);
        Ok(Measured {
            summary: recording::summary(&said)?,
            report: Report::read(&self.trace)?,
        })
    }
}

/// Without calibration: these tests are about counts, not times. With room for all that is
/// recorded at reduced counts: a recorder that gets no processor for a second loses nothing.
fn record(trace: &Path) -> Command {
    let mut command = Command::new(hopscope_bin());
    command
        .args(["record", "--json", "--no-calibration", "-f", "*"])
        .args(["--max-overhead", "1e9", "--buffer", "1G", "-o"])
        .arg(trace);
    command
}

/// What the recorder said, and what its file says.
pub(super) struct Measured {
    summary: Value,
    report: Report,
}

impl Measured {
    /// Enough was measured, every entry has its end, and of all of them at most one in a thousand
    /// is only declared, lies in a gap of the records, or was left by longjmp. An end that is never
    /// recorded would show as unwound, an entry that is not as an end without one.
    pub(super) fn expect_sound(&self, functions: u64, entries: u64) -> Result<()> {
        let measured = number(&self.summary["functions"])?;
        ensure!(measured >= functions, "only {measured} functions measured");
        self.report.expect_balanced()?;
        let entered = self.balance("entries")?;
        ensure!(entered >= entries, "only {entered} entries");
        for field in [
            "declared_lost",
            "unwound",
            "moved",
            "ends_moved",
            "ends_open_at_start",
            "cut_by_loss",
            "ends_cut_by_loss",
        ] {
            let count = self.balance(field)?;
            ensure!(
                count * 1000 < entered,
                "{count} {field}: {}",
                self.report.summary
            );
        }
        for field in ["torn", "missing", "unknown_records"] {
            let count = number(&self.report.summary[field])?;
            ensure!(count == 0, "{count} {field}: {}", self.report.summary);
        }
        Ok(())
    }

    /// For what leaves no function by longjmp, and overwrites no record: each end was recorded.
    pub(super) fn expect_whole(&self, functions: u64, entries: u64) -> Result<()> {
        self.expect_sound(functions, entries)?;
        self.report.expect_whole()?;
        for field in [
            "declared_lost",
            "unwound",
            "ends_open_at_start",
            "cut_by_loss",
        ] {
            let count = self.balance(field)?;
            ensure!(count == 0, "{count} {field}: {}", self.report.summary);
        }
        Ok(())
    }

    fn balance(&self, field: &str) -> Result<u64> {
        number(&self.report.summary["balance"][field])
    }
}

fn number(value: &Value) -> Result<u64> {
    value
        .as_u64()
        .with_context(|| format!("{value} is no whole number"))
}

/// What a command wrote to its standard output, bare, and measured from its first instruction.
pub(super) fn bare_and_measured(
    command: &[&str],
    trace: &Path,
) -> Result<(String, String, Measured)> {
    let bare = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&bare.stderr);
    ensure!(bare.status.success(), "{}: {said}", bare.status);
    let mut record = record(trace);
    record.arg("--").args(command).stdin(Stdio::null());
    let measured = record.output()?;
    let said = String::from_utf8_lossy(&measured.stderr);
    ensure!(measured.status.success(), "{}: {said}", measured.status);
    // The command's output is on stdout, the recorder's summary is the last line on stderr.
    let summary = said.lines().last().context("a summary")?;
    let result = Measured {
        summary: recording::summary(summary)?,
        report: Report::read(trace)?,
    };
    let measured = String::from_utf8(measured.stdout)?;
    Ok((String::from_utf8(bare.stdout)?, measured, result))
}
