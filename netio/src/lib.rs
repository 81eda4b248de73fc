//! Packet I/O behind one small trait. Whoever sends or receives frames here does it through
//! [`PacketIo`]; there is no second packet I/O in this workspace.
#![deny(unsafe_code)]

pub mod clock;
mod error;
mod memory;
mod name;
mod packet;
mod port;
mod sys;

pub use error::PortError;
pub use memory::{MemoryOptions, MemoryPort, WhenFull, memory_loop, memory_pair};
pub use name::{NotAPort, OpenOptions, PortName};
pub use packet::{Direction, PacketOptions, PacketPort};
pub use port::{Capabilities, Counters, Frame, Offload, Outgoing, PacketIo};
