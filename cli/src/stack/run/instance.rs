//! A program of a stack that is in a `stack serve`.
use super::{Attached, RunArgs, inherited};
use crate::stack::which;
use anyhow::{Context, bail};
use hopscope_stack_instance::handed::{Again, HandedInstance, HandedStack};
use hopscope_stack_instance::programs::joining::{JoinError, Joined, join};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::PathBuf;

/// What the program inherits of it, and where the stack leads to.
pub(super) fn attach(args: &RunArgs, name: &OsStr) -> anyhow::Result<Attached> {
    if let Some(option) = args.link.of_the_stack() {
        bail!("{option} is the stack's: with --mode pipeline it is given to `stack serve`");
    }
    let path = path(args);
    let at = || path.display().to_string();
    let joined = join(&path, &called(name)).map_err(|error| match error {
        JoinError::Nobody(_) => anyhow::Error::new(error).context(format!(
            "no stack at {}: start `hopscope stack serve --if {} --addr IP/LEN`",
            path.display(),
            args.link.interface
        )),
        error => unanswered(error, &at()),
    })?;
    handed(args, name, joined)
}

/// The same; Err within: no `stack serve` has the port.
pub(super) fn attach_if_there(
    args: &RunArgs,
    name: &OsStr,
) -> anyhow::Result<Result<Attached, String>> {
    let path = path(args);
    let at = path.display();
    let joined = match join(&path, &called(name)) {
        Err(JoinError::Nobody(why)) => {
            return Ok(Err(format!(
                "no `stack serve` that takes programs at {at} ({why})"
            )));
        }
        joined => joined.map_err(|error| unanswered(error, &at.to_string()))?,
    };
    if let Some(option) = args.link.beside_reach() {
        bail!("{option} is the stack's, and there is one at {at}: --mode inline, or without it");
    }
    // Or the program would be on another one than was asked for.
    if args.link.of_the_stack().is_some() && args.link.reach() != joined.reach {
        bail!("the stack at {at} has other addresses: --mode inline, or without --addr");
    }
    log::warn!("pipeline: in the `stack serve` at {at}");
    handed(args, name, joined).map(Ok)
}

fn path(args: &RunArgs) -> PathBuf {
    let default = || which::programs_of(&args.link.interface);
    args.socket.clone().unwrap_or_else(default)
}

fn called(name: &OsStr) -> String {
    name.to_string_lossy().chars().take(64).collect()
}

fn unanswered(error: JoinError, at: &str) -> anyhow::Error {
    match error {
        JoinError::NoAnswer(errno) => anyhow::Error::new(errno)
            .context(format!("no answer at {at}: is it where programs attach?")),
        error => anyhow::Error::new(error).context(at.to_owned()),
    }
}

fn handed(args: &RunArgs, name: &OsStr, joined: Joined) -> anyhow::Result<Attached> {
    let path = path(args);
    let at = || path.display().to_string();
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
            program: called(name),
        },
    };
    // 0: it is in another PID namespace.
    let process = getsockopt(&joined.door, PeerCredentials)
        .context("SO_PEERCRED")?
        .pid();
    let process = u32::try_from(process).ok().filter(|&process| process > 0);
    Ok((HandedStack::Instance(instance), joined.reach, process))
}
