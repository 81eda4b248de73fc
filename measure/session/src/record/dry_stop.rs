//! The baseline of an attach: its batch stop with nothing done in it.
use super::RecordRequest;
use crate::attach::write_ready;
use crate::error::Result;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub(super) fn run(request: &RecordRequest, pids: &[i32], stop: &AtomicBool) -> Result<()> {
    let mut pauses = Vec::new();
    for pid in pids {
        hopscope_process::preflight(*pid)?;
        let timing = hopscope_process::stop_all(*pid)?.resume()?;
        pauses.push(timing.pause().as_nanos() as u64);
    }
    write_ready(&request.attach, pids)?;
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(5));
    }
    let line = serde_json::json!({"type": "summary", "schema": 1, "dry_stop": true, "attach_pause_ns": pauses});
    println!("{line}");
    Ok(())
}
