//! Waiting for programs that are running.
use rustix::thread::{MembarrierCommand, membarrier};

/// Returns once every program that was running on any processor has returned: programs hold up a grace period of RCU, and
/// membarrier(2), MEMBARRIER_CMD_GLOBAL, waits for one (some milliseconds). Between the detaching of a program and its
/// last write there may be as long as a thread that runs it is preempted.
pub fn wait_for_programs() {
    if let Err(why) = membarrier(MembarrierCommand::Global) {
        log::warn!(
            "what was under way as counting began or ended may be counted in part: membarrier: {why}"
        );
    }
}
