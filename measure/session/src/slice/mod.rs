//! Packets sliced while they go through the kernel: hooks attached, packets chosen, shown or written as they end.
mod choice;
mod constants;
mod device;
mod drop_privileges;
mod ended;
mod file;
mod headers;
mod kernel;
mod loaded;
mod namespace;
mod pass;
mod rotation;
mod session;
mod stat;

pub use choice::Choice;
pub use constants::measured as measured_constants;
pub use device::Device;
pub use drop_privileges::become_user;
pub use ended::Ended;
pub use file::{FilePlan, create};
pub use kernel::{Kernel, Taken, say_what_is_missing};
pub use loaded::{Calibration, Loaded};
pub use namespace::{interfaces_of, netns};
pub use pass::{Pass, To};
pub use session::{Finished, Limits, Session};
pub use stat::SlicerStat;
