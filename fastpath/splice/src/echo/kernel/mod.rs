//! The kernel's part of the echo: programs at the sockets of the server and of its local clients.
mod addresses;
mod contract;
mod engine;
mod programs;

pub use contract::KernelCounts;
pub(super) use contract::Notice;
pub(super) use engine::{Engine, Reader};

/// A connection that the kernel echoes, as user space knows it.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) cookie: u64,
    /// Bytes that user space read and sent.
    pub(super) received: u64,
    pub(super) sent: u64,
    /// User space is to echo from now on.
    pub(super) is_user: bool,
    /// And all that the kernel turned round before comes first.
    pub(super) is_clear: bool,
}

/// Mechanisms that a proof takes out, to see that it fails without them.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Without {
    pub kick: bool,
    pub drain: bool,
}
