//! Signals that end a measurement, and what processes above and below this one did about them.
use crate::error::{Context, Result};
use hopscope_process::signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// Those that this process's guardian found ignored.
static IGNORED_ABOVE: OnceLock<Vec<i32>> = OnceLock::new();

/// Ctrl-C, SIGTERM, and the end of the terminal set `stop`; the last unless it is ignored (nohup(1)).
///
/// # Errors
/// A signal cannot be taken over.
pub fn stop_at_signals(stop: &Arc<AtomicBool>) -> Result<()> {
    let nohup = signals::ignored().contains(&SIGHUP);
    let hangup = (!nohup).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
        signal_hook::flag::register(signal, stop.clone()).context("taking over signals")?;
    }
    Ok(())
}

/// Signals that were ignored when the guardian began, which has taken them over since.
pub(crate) fn ignored_at_start() -> Vec<i32> {
    let above = IGNORED_ABOVE.get();
    above.map_or_else(signals::ignored, Clone::clone)
}

/// The guardian says so.
pub(crate) fn were_ignored_above(ignored: Vec<i32>) {
    let _ = IGNORED_ABOVE.set(ignored);
}
