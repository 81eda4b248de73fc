//! The processes beside an accelerator, one of which outlives it.
use super::session::helper;
use anyhow::Context;
use clap::Args;
use hopscope_splice::session::{keep, tell};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Process ID of the accelerator
    of: u32,
    /// Remove this cgroup at the end
    group: Option<PathBuf>,
    /// Move its processes to this cgroup
    home: Option<PathBuf>,
}

pub(super) fn run(args: &KeepArgs) -> anyhow::Result<ExitCode> {
    ignore_signals()?;
    let group = args.group.as_deref().zip(args.home.as_deref());
    keep(args.of, group, helper, crate::status::on_stderr)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, Args)]
pub struct TellArgs {
    /// Number of the map of ends
    ends: u32,
    /// Number of the map of readers that peek
    gathered: u32,
}

pub(super) fn run_tell(args: &TellArgs) -> anyhow::Result<ExitCode> {
    ignore_signals()?;
    tell(args.ends, args.gathered)?;
    Ok(ExitCode::SUCCESS)
}

/// `killall`, a service manager and the kernel, where it was stopped and its accelerator ends, signal it too: it ends with
/// its accelerator only, and has work to do then.
fn ignore_signals() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::default()).context("taking over signals")?;
    }
    Ok(())
}
