//! What servers have in common: saying that they are ready, and ending when they are told to.
use crate::json::tagged;
use crate::serving;
use anyhow::bail;
use clap::Args;
use nix::poll::{PollTimeout, poll};
use serde::Serialize;
use serde_json::json;
use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
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
    pub(super) fn say_ready(&self, listen: SocketAddr, descriptors: u64) -> anyhow::Result<()> {
        let facts = json!({ "listen": listen, "descriptors": descriptors });
        let file = self.ready_file.as_deref();
        serving::ready(self.json, &facts, file, &format!("{listen}\n"))
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
        while !stop.load(Ordering::Relaxed)
            && !has_failed()
            && serving::wait(None, self.until_stdin_ends)?
        {}
        Ok(())
    }
}
