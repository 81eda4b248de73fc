//! The programs at the kernel's hooks: chosen, loaded, attached, configured and read.
mod attach;
mod backend;
mod config;
mod control;
mod counts;
mod error;
mod hooks;
mod object;
#[allow(unsafe_code)]
mod perf_event;
#[allow(unsafe_code)]
mod ring;
mod running;

pub use attach::{Attached, Slicer};
pub(crate) use attach::{CLOCK_ONLY, EMPTY, EMPTY_FIRST};
pub use backend::Backend;
pub(crate) use config::Choose;
pub use config::{Costs, SlicerOptions};
pub use error::SliceError;
pub use hooks::{Hook, Offer, offers};
pub use object::{FILTER_INSNS, FILTER_SCRATCH};
pub use perf_event::event;
pub use ring::{Drained, ENTRIES_MAX, Entry};
pub use running::{Running, Settings, running};

#[cfg(test)]
mod tests;
