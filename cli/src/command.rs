//! What every command that runs for a while shares: the signals that end it, and `-- COMMAND`.
use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set by Ctrl-C and SIGTERM.
pub(crate) fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone()).context("taking over signals")?;
    }
    Ok(stop)
}

/// Readable from then on, for those who wait for descriptors.
pub(crate) fn stop_socket() -> anyhow::Result<UnixStream> {
    let (stop, stopped) = UnixStream::pair().context("making a socket")?;
    for signal in [SIGINT, SIGTERM] {
        let end = stopped.try_clone().context("taking over signals")?;
        signal_hook::low_level::pipe::register(signal, end).context("taking over signals")?;
    }
    Ok(stop)
}

/// Of a command that was waited for; a signal that ended it counts as 128 + its number, as in shells.
pub(crate) fn exit_code_of(ended: io::Result<ExitStatus>) -> anyhow::Result<ExitCode> {
    let status = ended.context("waiting for the command")?;
    let code = status
        .code()
        .or(status.signal().map(|signal| 128 + signal))
        .unwrap_or(125);
    Ok(ExitCode::from(code as u8))
}
