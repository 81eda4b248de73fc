//! The guest of a test: with the binary under test, in the case's own folder, ended with the case.
use anyhow::{Context, Result, ensure};
use hopscope_guest::Step;
use hopscope_tests::{Output, Target, hopscope_bin, paths, scratch};
use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::time::Duration;

/// Far above what was ever seen (a whole run: 4 to 75 s): against hanging only.
const WATCHDOG: Duration = Duration::from_secs(840);

pub(super) struct Guest(hopscope_guest::Guest);

impl Guest {
    /// # Errors
    /// When a program of this machine cannot be read.
    pub(super) fn new() -> Result<Guest> {
        let guest = hopscope_guest::Guest::new(&paths::vm_kernel()?, &hopscope_bin(), &scratch())?;
        Ok(Guest(guest))
    }

    /// # Errors
    /// When the guest does not come to its end with all steps, with the last lines it said.
    pub(super) fn run(self) -> Result<Run> {
        let wait = |mut qemu: Command| {
            let mut machine = Target::spawn_now(&mut qemu)?;
            machine.wait_at_most(WATCHDOG)
        };
        let run = self
            .0
            .run(|qemu| wait(qemu).map_err(|error| format!("{error:#}")));
        Ok(Run(run?))
    }
}

impl Deref for Guest {
    type Target = hopscope_guest::Guest;

    fn deref(&self) -> &hopscope_guest::Guest {
        &self.0
    }
}

impl DerefMut for Guest {
    fn deref_mut(&mut self) -> &mut hopscope_guest::Guest {
        &mut self.0
    }
}

#[derive(Debug)]
pub(super) struct Run(hopscope_guest::Run);

impl Run {
    pub(super) fn release(&self) -> &str {
        &self.0.release
    }

    /// # Errors
    /// When no step has the name.
    pub(super) fn step(&self, name: &str) -> Result<Output> {
        let step = self.0.step(name)?;
        Ok(Output {
            code: Some(step.code),
            stdout: String::from_utf8_lossy(&step.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&step.stderr).into_owned(),
        })
    }

    /// What a step wrote to stdout, byte for byte: files come out of the guest so.
    ///
    /// # Errors
    /// When no step has the name, or it failed.
    pub(super) fn bytes(&self, name: &str) -> Result<&[u8]> {
        let Step {
            code,
            stdout,
            stderr,
            ..
        } = self.0.step(name).context("bytes of a step")?;
        let said = String::from_utf8_lossy(stderr);
        ensure!(*code == 0, "{name} ended with {code}: {said}");
        Ok(stdout)
    }
}
