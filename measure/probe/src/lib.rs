//! The user side of a measurement: locate functions in a running process, relocate them with
//! probes, patch their entries, drain the rings, and leave the process as it was.
#![deny(unsafe_code)]

pub mod counters;
pub mod instrument;
pub mod listing;
pub mod live;
pub mod locate;
#[allow(unsafe_code)]
pub mod memory;
pub mod new_modules;
pub mod plan;
pub mod progress;
pub mod recorder;
