//! A terminal that programs can look at and type into: tmux, with a server of its own.
use anyhow::{Context, Result, bail, ensure};
use nix::poll::poll;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Only what hangs waits this long.
const WATCHDOG: Duration = Duration::from_secs(60);
const LOOK_AGAIN_MS: u8 = 20;

pub(crate) struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs a command line of the shell in it; the terminal stays when that ends.
    pub(crate) fn run(directory: &Path, line: &str) -> Result<Terminal> {
        let terminal = Terminal {
            socket: format!("hopscope-test-{}", std::process::id()),
        };
        let directory = directory.to_str().context("path")?;
        let line = format!("cd '{directory}'; {line}");
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "110",
            "-y",
            "20",
            "sh",
        ])?;
        terminal.tmux(&["send-keys", "-l", &line])?;
        terminal.key("Enter")?;
        Ok(terminal)
    }

    fn tmux(&self, words: &[&str]) -> Result<String> {
        let out = Command::new("tmux")
            .args(["-L", &self.socket])
            .args(words)
            .output()?;
        let said = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "tmux {words:?}: {said}");
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    /// A key by tmux's name: `q`, `Space`, `Enter`, `Escape`.
    pub(crate) fn key(&self, name: &str) -> Result<()> {
        self.tmux(&["send-keys", name]).map(drop)
    }

    pub(crate) fn screen(&self) -> Result<String> {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The screen when `there` says so of it.
    pub(crate) fn until(&self, what: &str, mut there: impl FnMut(&str) -> bool) -> Result<String> {
        let started = Instant::now();
        loop {
            let screen = self.screen()?;
            if there(&screen) {
                return Ok(screen);
            }
            if started.elapsed() > WATCHDOG {
                bail!("never {what}; the screen:\n{screen}");
            }
            poll(&mut [], LOOK_AGAIN_MS)?;
        }
    }

    /// The screen when two looks in a row show the same of which `there` says so: a whole one.
    pub(crate) fn until_whole(&self, what: &str, there: impl Fn(&str) -> bool) -> Result<String> {
        let mut last = self.until(what, &there)?;
        self.until(what, |now| {
            there(now) && now == std::mem::replace(&mut last, now.into())
        })
    }

    /// For so long it shows nothing else.
    pub(crate) fn stays(&self, screen: &str, time: Duration) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < time {
            let now = self.screen()?;
            ensure!(now == screen, "was\n{screen}\nand is\n{now}");
            poll(&mut [], LOOK_AGAIN_MS)?;
        }
        Ok(())
    }

    /// What runs in it gets SIGHUP.
    pub(crate) fn close(&self) -> Result<()> {
        self.tmux(&["kill-server"]).map(drop)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It is no child of ours: nothing else would end it. Closed already in some tests.
        let _ = self.close();
    }
}
