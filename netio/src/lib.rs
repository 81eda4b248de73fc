//! Packet I/O behind one small trait. Whoever sends or receives frames here does it through
//! [`PacketIo`]; there is no second packet I/O in this workspace.
#![deny(unsafe_code)]

pub mod bridge;
pub mod capture;
pub mod clock;
mod device;
mod direction;
mod discard;
mod error;
mod kept;
mod lengths;
mod link;
mod memory;
mod name;
mod offload;
mod packet;
mod port;
mod scattered;
mod sys;
mod tap;
mod xdp;

pub use device::DeviceInfo;
pub use direction::Direction;
pub use discard::DiscardPort;
pub use error::{CaptureError, PortError};
pub use kept::Kept;
pub use memory::{MemoryOptions, MemoryPort, WhenFull, memory_loop, memory_pair};
pub use name::{NotAPort, OpenOptions, PortName};
pub use offload::{Accepts, Offload};
pub use packet::{Fanout, PacketOptions, PacketPort};
pub use port::{Capabilities, Counters, Fill, Frame, Outgoing, PacketIo, Visit};
pub use scattered::{Arrived, PARTS_MAX, Scattered, SendStatus};
pub use sys::FilterStep;
pub use tap::{TapOptions, TapPort};
pub use xdp::{XdpMode, XdpOptions, XdpPort};
