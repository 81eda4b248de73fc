//! Packets and connections as open-loop load (`hopscope_openloop`), each with its latency.
#![forbid(unsafe_code)]

pub mod connections;
pub mod interval;
pub mod kernel_counters;
pub mod packets;
