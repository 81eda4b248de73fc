//! TCP between local programs that does not go through the stack: sockets joined in the kernel by BPF
//! programs, with plain TCP behind them for every case in doubt.
#![deny(unsafe_code)]

pub mod cgroup;
pub mod echo;
pub mod interpreters;
pub mod joining;
pub mod pairing;
pub mod programs;
pub mod proxy;
pub mod readers;
#[allow(unsafe_code)]
pub mod socket_options;
pub mod trial;
