//! The vhost-user protocol without a socket: messages from and to bytes, and the back end's side of what they
//! mean.
//!
//! A front end (QEMU, DPDK) says over a socket where the guest's memory and its queues are, and which
//! descriptors ring. [`Request`] is one message; [`Control`] is what they add up to. Whoever owns the socket
//! reads [`HEADER_LEN`] bytes, then the header's payload, and hands over both with the number of
//! descriptors that came along. Facts: QEMU, docs/interop/vhost-user.rst.
mod control;
mod limits;
mod memory;
mod number;
mod refused;
mod request;
mod send;

pub use control::{Answer, Change, Control, Doorbell, QueueState};
pub use memory::Region;
pub use refused::Refused;
pub use request::{HEADER_LEN, Header, QueueAddress, Request};

/// `VHOST_USER_F_PROTOCOL_FEATURES`: protocol features can be negotiated.
pub const PROTOCOL_FEATURES: u64 = 1 << 30;
/// `VIRTIO_F_RING_PACKED`
pub const RING_PACKED: u64 = 1 << 34;
/// `VHOST_USER_PROTOCOL_F_MQ`
pub const PROTOCOL_MQ: u64 = 1 << 0;
/// `VHOST_USER_PROTOCOL_F_REPLY_ACK`
pub const PROTOCOL_REPLY_ACK: u64 = 1 << 3;
/// `VHOST_USER_PROTOCOL_F_STATUS`
pub const PROTOCOL_STATUS: u64 = 1 << 16;

#[cfg(test)]
mod tests;
