//! What servers have in common: saying that they are ready, and ending when they are told to.
use crate::json::tagged;
use anyhow::{Context, bail};
use clap::Args;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Serialize;
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(Args)]
pub struct Serving {
    /// Create this file, with the address, when listening
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Exit when stdin closes, such as with the parent process
    #[arg(long)]
    until_stdin_ends: bool,
    /// Print one JSON object per line: the listen address, then a summary
    #[arg(long)]
    pub(super) json: bool,
}

impl Serving {
    /// Set by Ctrl-C and SIGTERM.
    pub(super) fn stop_flag(&self) -> anyhow::Result<Arc<AtomicBool>> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, stop.clone()).context("taking over signals")?;
        }
        Ok(stop)
    }

    pub(super) fn say_ready(&self, listen: SocketAddr, descriptors: u64) -> anyhow::Result<()> {
        if self.json {
            let line = serde_json::json!({
                "type": "ready", "schema": 1, "listen": listen.to_string(), "descriptors": descriptors,
            });
            writeln!(std::io::stdout(), "{line}")?;
        } else {
            crate::status::say!("listening on {listen}, up to {descriptors} descriptors");
        }
        if let Some(path) = &self.ready_file {
            // Complete when it appears: whoever waits for the file reads it at once.
            let partial = path.with_extension("partial");
            std::fs::write(&partial, format!("{listen}\n"))
                .and_then(|()| std::fs::rename(&partial, path))
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    pub(super) fn say_summary(&self, report: &(impl Serialize + Display)) -> anyhow::Result<()> {
        let mut out = std::io::stdout();
        if self.json {
            writeln!(out, "{}", tagged("summary", report)?)?
        } else {
            write!(out, "{report}")?
        }
        Ok(())
    }

    /// Until a signal, or what is asked is so: stdin has ended already where that matters.
    pub(super) fn wait_for_signal(
        &self,
        stop: &AtomicBool,
        is_over: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        while !stop.load(Ordering::Relaxed) && !is_over() {
            match poll(&mut [], PollTimeout::from(20u8)) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => bail!("cannot wait: {}", errno.desc()),
            }
        }
        Ok(())
    }

    /// Until a signal, the end of stdin where that matters, or a failure.
    pub(super) fn wait(
        &self,
        stop: &AtomicBool,
        has_failed: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let stdin = std::io::stdin();
        while !stop.load(Ordering::Relaxed) && !has_failed() {
            let mut fds = Vec::new();
            if self.until_stdin_ends {
                fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
            }
            // A signal that comes just before the wait is seen after a tenth of a second.
            match poll(&mut fds, PollTimeout::from(100u8)) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(errno) => bail!("cannot wait: {}", errno.desc()),
            }
            let is_ready = fds.first().and_then(PollFd::any) == Some(true);
            drop(fds);
            if is_ready && stdin.lock().read(&mut [0; 64])? == 0 {
                break;
            }
        }
        Ok(())
    }
}
