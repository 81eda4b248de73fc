//! The user side of a measurement: locate functions in a running process, relocate them with
//! probes, patch their entries, drain the rings, and leave the process as it was.
#![deny(unsafe_code)]

pub mod codegen;
pub mod relocate;
