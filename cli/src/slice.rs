//! `hopscope slice`: the kernel's own path of every packet.
mod args;
mod choice;
mod headers;
mod open;
mod pass;
mod pcapng;
mod read;
mod save;

#[cfg(test)]
mod tests;

pub use args::SliceArgs;
pub(crate) use choice::Choice;
pub(crate) use open::{Opened, open};
pub(crate) use pass::{Pass, To};
pub(crate) use save::{Format, SliceFile};

use crate::logger::Verbosity;
use std::process::ExitCode;

/// The name under which it understands tcpdump's command lines as they are.
pub const NSDUMP: &str = "nsdump";

pub fn run(args: SliceArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    match &args.files.read {
        Some(path) => read::run(&args, path, verbosity),
        None => anyhow::bail!("give a recording to read: -r FILE"),
    }
}
