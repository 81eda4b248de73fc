//! Builds the demo, once for all cases.
use anyhow::{Result, ensure};
use hopscope_tests::paths::target_dir;
use hopscope_tests::{command::run, repository};
use std::path::PathBuf;
use std::process::Command;

#[derive(Debug, Clone, Copy)]
pub(super) enum Build {
    Plain,
    /// With AddressSanitizer and UndefinedBehaviorSanitizer.
    Sanitized,
}

impl Build {
    /// Path of `hopscope-demo`.
    pub(super) fn network_function(self) -> Result<PathBuf> {
        Ok(self.make()?.join("hopscope-demo"))
    }

    /// Path of `hopscope-demo-traffic`.
    pub(super) fn traffic(self) -> Result<PathBuf> {
        Ok(self.make()?.join("hopscope-demo-traffic"))
    }

    fn make(self) -> Result<PathBuf> {
        let (name, option) = match self {
            Build::Plain => ("demo", None),
            Build::Sanitized => ("demo-sanitized", Some("SANITIZE=1")),
        };
        let directory = target_dir().join(name);
        std::fs::create_dir_all(&directory)?;
        // Cases run in parallel, and two makes in one directory break each other's files.
        let mut make = Command::new("flock");
        make.arg(directory.join("lock"))
            .args(["make", "-s", "-C"])
            .arg(repository().join("demo"))
            .arg(format!("BUILD={}", directory.display()))
            .args(option);
        let out = run(&mut make)?.expect_code(0)?;
        // The C is held to -Werror, so a word from make is news.
        ensure!(out.stderr.is_empty(), "make: {}", out.stderr);
        Ok(directory)
    }
}
