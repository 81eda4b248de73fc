//! The process that is aimed at.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::Output;
use hopscope_tests::{Target, compile_c, hopscope, scratch};
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::{Command, Stdio};

/// A process that checks its own arithmetic, and the ways to aim at it.
pub(super) struct Steady {
    pub(super) target: Target,
}

impl Steady {
    pub(super) fn start(arguments: &[&str]) -> Result<Steady> {
        let program = compile_c(&["steady.c"], &["-O2"])?;
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::piped());
        Ok(Steady {
            target: Target::spawn(&mut command)?,
        })
    }

    pub(super) fn pid(&self) -> String {
        self.target.pid().to_string()
    }

    pub(super) fn record(&self, patterns: &[&str]) -> Result<Output> {
        self.record_to(&scratch().join("out.hop"), patterns)
    }

    pub(super) fn record_to(&self, output: &Path, patterns: &[&str]) -> Result<Output> {
        let pid = self.pid();
        let mut words = vec![
            "record",
            "-p",
            &pid,
            "-d",
            "300ms",
            "--no-calibration",
            "-o",
        ];
        words.push(output.to_str().context("path")?);
        for pattern in patterns {
            words.extend(["-f", pattern]);
        }
        hopscope(&words)
    }

    /// It still runs, ends when it is asked to, and found every sum right.
    pub(super) fn unharmed(self) -> Result<()> {
        self.target.signal(Signal::SIGTERM)?;
        let out = self.target.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        ensure!(out.status.success(), "the target: {} {said}", out.status);
        ensure!(said.contains("steady: 0 wrong"), "the target said: {said}");
        Ok(())
    }
}
