//! The kernel's engine: programs at both sockets of a connection.
mod contract;
mod engine;
mod join;

pub use contract::KernelCounts;
pub(super) use contract::Notice;
pub(super) use engine::{Engine, Reader};
pub(super) use join::NotJoined;
