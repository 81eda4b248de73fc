//! Local TCP that bypasses the network stack: sockets redirected to each other (sockmap) by BPF
//! programs, with plain TCP behind them for every case in doubt.
#![deny(unsafe_code)]

mod alone;
pub mod cgroup;
pub mod echo;
mod edges;
pub mod interpreters;
pub mod joining;
mod kernel_counts;
pub mod pairing;
mod peeking;
pub mod programs;
pub mod proxy;
pub mod readers;
pub mod session;
#[allow(unsafe_code)]
pub mod socket_options;
pub mod trial;
mod unseen;
