//! What servers have in common: saying that they are ready, and waiting for those who want something of them.
use crate::json::tagged;
use anyhow::{Context, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::Path;

/// `facts`: where it listens, and what else programs are told. `addresses`: of the file, lines.
pub(crate) fn ready(
    json: bool,
    facts: &Value,
    file: Option<&Path>,
    addresses: &str,
) -> anyhow::Result<()> {
    if json {
        writeln!(std::io::stdout(), "{}", tagged("ready", facts)?)?;
    } else {
        let listen = facts["listen"].as_str().unwrap_or_default();
        let descriptors = &facts["descriptors"];
        crate::status::note!("listening on {listen}, up to {descriptors} descriptors");
    }
    if let Some(path) = file {
        // Complete when it appears: whoever waits for the file reads it at once.
        let partial = path.with_extension("partial");
        std::fs::write(&partial, addresses)
            .and_then(|()| std::fs::rename(&partial, path))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Waits for somebody who connects, at most a tenth of a second so that a signal is seen; false when stdin has
/// ended and that matters.
pub(crate) fn wait(listener: Option<&TcpListener>, until_stdin_ends: bool) -> anyhow::Result<bool> {
    let stdin = std::io::stdin();
    let mut fds = Vec::new();
    if until_stdin_ends {
        fds.push(PollFd::new(stdin.as_fd(), PollFlags::POLLIN));
    }
    if let Some(listener) = listener {
        fds.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
    }
    match poll(&mut fds, PollTimeout::from(100u8)) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => bail!("cannot wait: {}", errno.desc()),
    }
    let stdin_ready = until_stdin_ends && fds.first().and_then(PollFd::any) == Some(true);
    drop(fds);
    Ok(!stdin_ready || stdin.lock().read(&mut [0; 64])? > 0)
}
