//! Linux' numbers and layouts for the engine's sockets: what everything needs that takes C's socket calls. Values and bytes, no
//! pointers.
#![forbid(unsafe_code)]

pub mod address;
pub mod mark;
pub mod options;
pub mod readiness;
pub mod tcp_info;

/// Failures are errno.
pub type Result<T> = std::result::Result<T, i32>;
