//! A TCP/IP stack without I/O: Ethernet or IP packets in, packets out, time is an argument.
//!
//! [`Engine`] holds all state of one stack, on one thread. Whoever owns it hands it received frames
//! ([`Engine::receive`]), lets it write frames into the device's own slots ([`Engine::transmit`]), and calls
//! [`Engine::advance`] when [`Engine::poll_at`] is due. Sockets are named by [`SocketId`]; calls on them never block and have the results of
//! their Linux namesakes with O_NONBLOCK. Changes of readiness are drained with [`Engine::next_event`].
//!
//! The same calls at the same times give the same packets: all randomness comes from [`Config::seed`].
#![forbid(unsafe_code)]

mod buffer;
pub mod config;
pub mod counters;
mod engine;
mod error;
pub mod frame;
pub mod info;
mod ip;
mod socket;
mod tcp;
mod timer;
mod udp;
pub mod wire;

pub use config::{Config, ConfigError, TcpConfig};
pub use counters::Counters;
pub use engine::Engine;
pub use error::SocketError;
pub use hopscope_event::Ns;
pub use info::{Connection, TcpInfo, TcpState};
pub use socket::{
    Event, HowToShut, Inbound, Linger, MtuDiscovery, Outbound, Readiness, RecvFlags, SendFlags,
    SocketId, SocketKind, SocketOption,
};
