//! Open-loop load: packets and connections are due at intended times, and latency counts from
//! those (Tene, "How NOT to measure latency": no coordinated omission).
#![forbid(unsafe_code)]

pub mod connections;
pub mod interval;
pub mod kernel;
pub mod latency;
pub mod pace;
pub mod packets;
pub use hopscope_netio::random;
