//! `hopscope slice`: the kernel's own path of every packet.
mod args;
mod control;
mod list;
mod live;
mod progress;
mod read;
mod target;

pub use args::SliceArgs;
pub(crate) use hopscope_session::slice::{PacketChoice, Pass, To};

use crate::logger::Verbosity;
use std::process::ExitCode;

/// The name under which it understands tcpdump's command lines as they are.
pub const NSDUMP: &str = "nsdump";

pub fn run(args: SliceArgs, verbosity: &Verbosity) -> anyhow::Result<ExitCode> {
    if let Some(control) = &args.control {
        return control::run(control);
    }
    if args.live.list_interfaces {
        return list::interfaces(&args);
    }
    if args.live.list {
        return list::run(&args);
    }
    if let Some(path) = &args.files.read {
        return read::run(&args, path, verbosity);
    }
    if args.command.is_empty() {
        live::run(&args, verbosity)
    } else {
        // With a command its exit code is ours, and 125 says that hopscope itself failed.
        live::run(&args, verbosity).or_else(|e| Ok(crate::status::failed(&e, 125)))
    }
}
