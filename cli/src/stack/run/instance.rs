//! A program of a stack that is in a `stack serve`.
use super::{RunArgs, inherited};
use crate::stack::which;
use anyhow::{Context, bail};
use hopscope_stack_instance::handed::{Again, HandedInstance, Reach};
use hopscope_stack_instance::programs::joining::{JoinError, join};
use nix::net::if_::if_nametoindex;
use std::ffi::OsStr;
use std::os::fd::AsFd;

/// What the program inherits of it, and where the stack leads to.
pub(super) fn attach(args: &RunArgs, name: &OsStr) -> anyhow::Result<(HandedInstance, Reach)> {
    if let Some(option) = args.link.of_the_stack() {
        bail!("{option} is the stack's: with --mode pipeline it is given to `stack serve`");
    }
    let default = || which::programs_of(&args.link.interface);
    let path = args.socket.clone().unwrap_or_else(default);
    let at = || path.display().to_string();
    let called: String = name.to_string_lossy().chars().take(64).collect();
    let joined = join(&path, &called).map_err(|error| match error {
        JoinError::Nobody(_) => anyhow::Error::new(error).context(format!(
            "no stack at {}: start `hopscope stack serve --if {} --addr IP/LEN`",
            path.display(),
            args.link.interface
        )),
        JoinError::NoAnswer(errno) => anyhow::Error::new(errno).context(format!(
            "no answer at {}: is it where programs attach?",
            path.display()
        )),
        error => anyhow::Error::new(error).context(at()),
    })?;
    if joined.device != args.link.interface.to_string() {
        bail!(
            "the stack at {} is on {}, not on {}",
            path.display(),
            joined.device,
            args.link.interface
        );
    }
    let device = joined.device.split(':').nth(1).unwrap_or_default();
    let instance = HandedInstance {
        // Of an instance in another network namespace it has none here.
        index: if_nametoindex(device).unwrap_or(0),
        device: joined.device.clone(),
        door: inherited(joined.door.as_fd())?,
        table: inherited(joined.table.as_fd())?,
        again: Again {
            path: std::path::absolute(&path).with_context(at)?,
            user: joined.user,
            program: called,
        },
    };
    Ok((instance, joined.reach))
}
