//! Loading, attaching and reading the kernel programs. The only module of this crate with unsafe code.
mod accel;
mod control;
mod counts;
mod ends;
mod error;
mod incompatible;
pub(crate) mod object;
#[allow(unsafe_code)]
pub(crate) mod option;
mod placed;
mod policies;
mod running;
mod sharing;
mod socket;
mod verify;

pub use accel::{Accelerator, Options, Spoil};
pub use counts::{Count, Counts};
pub use ends::{End, Ends, Order};
pub use error::LoadError;
pub use incompatible::{IncompatibleUse, What};
pub use placed::{Placed, PlacedState, PlacedThreads, Placing};
pub use policies::{Policy, policies};
pub use running::{Running, running};
pub use sharing::{Listener, Sharing};
pub use socket::bytes_to_read;
pub use verify::{Kind, Wrong};
