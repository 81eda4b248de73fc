//! The TCP/IP engine on real wires: one thread, one loop, one port, and what is served or requested over it.
//!
//! ```text
//! port ── offload ── Engine::receive ── events ── app ── recv, send
//! port ── offload ── Engine::transmit
//! control socket ── command ── connections, counters
//! ```
//!
//! [`Instance`] owns an engine and a port. [`App`] is who uses the engine's sockets: [`app::Server`] with one of the small
//! services, or [`client::Client`]. Several instances on one device, each on its own thread, pass each other what the
//! device gave to the wrong one ([`share`]).
#![forbid(unsafe_code)]

pub mod app;
mod claim;
pub mod client;
pub mod command;
pub mod device;
mod error;
pub mod events;
pub mod handed;
mod link_mtu;
pub mod offload;
pub mod pair;
pub mod programs;
pub mod run;
pub mod share;
mod show;
pub mod sockets;
mod steering;
pub mod unseen;

pub use app::App;
pub use device::Device;
pub use error::InstanceError;
pub use hopscope_event::Ns;
pub use link_mtu::LinkMtu;
pub use run::{Instance, InstancePlan, LinkChange};
