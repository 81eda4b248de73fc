//! Signals that end a measurement, and what processes above and below this one did about them.
use crate::error::{Context, Result};
use hopscope_process::signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The variable that says whose child a recorder is: of the guardian its pid, then the signals that were ignored there.
pub const GUARDED_BY: &str = "HOPSCOPE_GUARDED_BY";

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
    match std::env::var(GUARDED_BY) {
        Ok(mark) => mark
            .split(',')
            .skip(1)
            .filter_map(|n| n.parse().ok())
            .collect(),
        Err(_) => signals::ignored(),
    }
}
