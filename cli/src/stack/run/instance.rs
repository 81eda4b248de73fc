//! A program of a stack that is in a `stack serve`.
use super::{RunArgs, inherited};
use crate::stack::which;
use anyhow::{Context, bail};
use hopscope_stack_instance::handed::{HandedInstance, Reach};
use hopscope_stack_instance::programs::passing;
use hopscope_stack_instance::programs::passing::{RecvFlags, SendFlags};
use hopscope_stack_instance::programs::wire::{self, Hello, MESSAGE_MAX, Welcome};
use nix::net::if_::if_nametoindex;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One that does not answer is stopped, or no `stack serve`.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the program inherits of it, and where the stack leads to.
pub(super) fn attach(args: &RunArgs, name: &OsStr) -> anyhow::Result<(HandedInstance, Reach)> {
    if let Some(option) = args.link.of_the_stack() {
        bail!("{option} is the stack's: with --mode pipeline it is given to `stack serve`");
    }
    let default = || which::programs_of(&args.link.interface);
    let path = args.socket.clone().unwrap_or_else(default);
    let door = UnixStream::connect(&path).with_context(|| {
        format!(
            "no stack at {}: start `hopscope stack serve --if {} --addr IP/LEN`",
            path.display(),
            args.link.interface
        )
    })?;
    let at = || path.display().to_string();
    door.set_read_timeout(Some(PATIENCE)).with_context(at)?;
    let hello = Hello {
        version: env!("CARGO_PKG_VERSION").into(),
        name: name.to_string_lossy().chars().take(64).collect(),
    };
    // One that refuses whoever comes may have answered, and gone, before.
    let _ = passing::send(&door, &wire::to_bytes(&hello), &[], SendFlags::empty());
    let mut bytes = vec![0; MESSAGE_MAX];
    let answer = passing::receive(&door, &mut bytes, RecvFlags::empty());
    let mut passed = answer.with_context(|| {
        format!(
            "no answer at {}: is it where programs attach?",
            path.display()
        )
    })?;
    let welcome = wire::from_bytes(&bytes[..passed.len]);
    let welcome = welcome.map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    match (welcome, passed.fds.pop()) {
        (Welcome::Here { device, .. }, _) if device != args.link.interface.to_string() => {
            bail!(
                "the stack at {} is on {device}, not on {}",
                path.display(),
                args.link.interface
            )
        }
        (Welcome::Here { reach, device }, Some(table)) => {
            door.set_read_timeout(None).with_context(at)?;
            let name = device.split(':').nth(1).unwrap_or_default();
            let instance = HandedInstance {
                // Of an instance in another network namespace it has none here.
                index: if_nametoindex(name).unwrap_or(0),
                device,
                door: inherited(door.as_fd())?,
                table: inherited(table.as_fd())?,
            };
            Ok((instance, reach))
        }
        (Welcome::Refused(why), _) => bail!("{}: {why}", path.display()),
        (Welcome::Here { .. }, None) => bail!("{}: no table came", path.display()),
    }
}
