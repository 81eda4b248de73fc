//! The accelerator's programs: loaded, attached, configured and read.
mod accel;
mod control;
mod counts;
#[allow(unsafe_code)]
mod devices;
mod edges;
mod ends;
mod error;
mod incompatible;
mod placed;
mod policies;
mod rings;
mod running;
mod sharing;
mod verify;

pub use accel::{Accelerator, Options, Spoil};
pub use counts::{Count, Counts};
pub use edges::tell;
pub use ends::{End, Ends, Order};
pub use error::SpliceError;
pub use incompatible::{Incompatibility, IncompatibleUse};
pub use placed::{Placed, PlacedState, PlacedThreads, Placing};
pub use policies::{Policy, policies};
pub use rings::{RingUser, RingUsers};
pub use running::{Running, running};
pub use sharing::{Listener, Sharing};
pub use verify::{Mismatch, MismatchKind};
