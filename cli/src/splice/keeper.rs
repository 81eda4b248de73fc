//! The keeper: a small process beside an accelerator that outlives it.
use anyhow::Context;
use clap::Args;
use hopscope_splice::session::keep;
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
    keep(args.of, group, crate::status::on_stderr)?;
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
