//! What the servers of this workspace share, whatever they serve: a control socket and its client, the file that a socket
//! is, privileges given up, a clock, and a recording of what happens.
#![deny(unsafe_code)]

pub mod clock;
pub mod control;
pub mod control_client;
pub mod endpoint;
mod error;
pub mod events;
#[allow(unsafe_code)]
pub mod privileges;

pub use error::ServingError;
