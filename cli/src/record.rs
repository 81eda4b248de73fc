//! `hopscope record`: attach, record, detach, say what happened.
mod args;
mod calibrate;
mod captures;
mod check_cost;
mod end;
mod exited_targets;
mod flight;
pub(crate) mod guard;
mod progress;
mod sampling;
pub(crate) mod session;
mod slices;
mod stops;
pub(crate) mod summary;
pub(crate) mod targets;
mod trigger;

pub(crate) use args::{RecordArgs, parse_size_log2};
pub(crate) use calibrate::run_child as calibration_child;

use std::process::ExitCode;

/// The process that the user starts is the guardian; the recorder is its child.
pub(crate) fn run(args: RecordArgs) -> anyhow::Result<ExitCode> {
    if args.dry_run || guard::is_guarded() {
        return session::run(&args);
    }
    guard::run(&args, guard::Salvage::BesideOutput)
}
