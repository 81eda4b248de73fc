//! Virtqueues over memory that the other end can write at any time (virtio 1.3, 2.7 and 2.8).
//!
//! Nothing that is read there is trusted: indices, lengths and addresses are checked against what they
//! may be, each is read once, and what is wrong ends the queue with a [`RingError`], never the process.
//! Memory is reached only through `vm-memory`, which checks each access against the mapped regions.
use vm_memory::GuestAddress;

mod chain;
mod ends;
mod error;
mod in_flight;
pub mod packed;
pub mod split;

pub use chain::{Chain, Segment};
pub use ends::{DeviceRing, DriverRing};
pub use error::RingError;

/// The guest's memory, as the back end has it mapped.
pub type Memory = vm_memory::GuestMemoryMmap<()>;

/// Most entries of a queue (virtio 1.3, 2.7).
pub const SIZE_MAX: u16 = 32_768;

/// Most descriptors of an indirect table, as QEMU has it: a queue of any size needs no more for a packet.
const INDIRECT_MAX: u64 = 1024;

/// Where a queue lies: guest physical addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub size: u16,
    /// Split: descriptor table; packed: descriptor ring.
    pub descriptors: GuestAddress,
    /// Split: available ring; packed: driver event suppression.
    pub driver: GuestAddress,
    /// Split: used ring; packed: device event suppression.
    pub device: GuestAddress,
}

/// What was negotiated of a queue's features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// `VIRTIO_F_EVENT_IDX`
    pub event_idx: bool,
    /// `VIRTIO_F_INDIRECT_DESC`
    pub indirect: bool,
}

/// Whether the step from `old` to `new` passed `event`: `vring_need_event` of virtio 1.3, 2.7.7.1.
fn passed(event: u16, old: u16, new: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

#[cfg(test)]
mod tests;
