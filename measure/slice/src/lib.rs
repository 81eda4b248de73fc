//! The kernel's own path of every packet, on an unpatched kernel: programs at the kernel's hooks
//! stamp each packet on its way, one record a packet.
#![deny(unsafe_code)]

pub mod calibrate;
pub mod filter;
pub mod interfaces;
pub mod kinds;
pub mod programs;
pub mod regions;
