//! The kernel's engine: programs at both sockets of a connection.
mod contract;
mod engine;
mod join;

pub use contract::KernelCounts;
pub(super) use contract::Notice;
pub(super) use engine::{Engine, Reader};
pub(super) use join::NotJoined;

/// A direction that the kernel moves, as user space knows it.
#[derive(Debug)]
pub(super) struct Share {
    /// Of the socket where its bytes arrive.
    pub(super) cookie: u64,
    /// Bytes that user space read and sent.
    pub(super) received: u64,
    pub(super) sent: u64,
    /// What the kernel was told of them.
    pub(super) said: u64,
    /// User space is to copy for now.
    pub(super) is_user: bool,
    /// At how many take-overs what the kernel had redirected before was found to be with TCP.
    pub(super) cleared: u32,
}
