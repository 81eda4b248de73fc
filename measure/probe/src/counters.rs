//! The machine's clocks and whether they can be trusted, and the kernel's own events.
#[allow(unsafe_code)]
mod perf_event;
mod switches;

pub use perf_event::{Said, Switch, TaskClock};
pub use switches::{Switches, SwitchesError};

pub use hopscope_event::clock::read::{clock_sync, measure_frequency, raw_sync, read_tsc};
use std::fs;

/// Whether the kernel reports an invariant TSC (constant rate in all power states).
pub fn tsc_is_invariant() -> bool {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info
        .lines()
        .find(|l| l.starts_with("flags"))
        .unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|f| flags.split(' ').any(|g| g == *f))
}
