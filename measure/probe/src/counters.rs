//! The machine's clocks and whether they can be trusted, and the kernel's own events.
pub mod counting;
pub(crate) mod events;
#[allow(unsafe_code)]
mod perf_event;
mod switches;

pub use perf_event::{Said, Switch, TaskClock};
pub use switches::{Switches, SwitchesError};

pub use hopscope_event::clock::read::{clock_sync, measure_frequency, raw_sync, read_tsc};
