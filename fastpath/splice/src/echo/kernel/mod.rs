//! The kernel's part of the echo: programs at the sockets of the server and of its local clients.
mod addresses;
mod contract;
mod engine;
mod programs;

pub use contract::KernelCounts;
pub(super) use contract::Notice;
pub(super) use engine::{Engine, Reader};

/// Mechanisms that a test takes out, to see that it fails without them.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Without {
    pub kick: bool,
    pub drain: bool,
}
