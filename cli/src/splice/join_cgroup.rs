//! The command of `splice run`, on its way: into its control group first, so that each of its sockets
//! belongs to it.
use anyhow::Context;
use clap::Args;
use hopscope_splice::cgroup;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

#[derive(Debug, Args)]
pub struct EnterArgs {
    group: PathBuf,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

pub(super) fn run(args: &EnterArgs) -> anyhow::Result<ExitCode> {
    let entered = cgroup::enter(&args.group, 0).context("cannot start the command");
    let done = entered.and_then(|()| {
        let error = Command::new(&args.command[0])
            .args(&args.command[1..])
            .exec();
        Err(error).with_context(|| format!("cannot start {}", args.command[0].display()))
    });
    // What is said is of a command that never began.
    done.or_else(|error: anyhow::Error| Ok(crate::status::failed(&error, 125)))
}
