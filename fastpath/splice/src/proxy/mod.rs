//! A proxy for TCP connections that has two engines: a loop in user space that copies, and programs in
//! the kernel that send what arrives at one socket out of the other.
mod auto;
mod connection;
mod counts;
mod dial;
mod error;
mod kernel;
mod pipe;
mod server;
mod share;
mod shared;
#[cfg(test)]
mod tests;
mod text;
mod worker;

pub use auto::{EngineVerdict, Measured};
pub use counts::ProxyCounts;
pub use error::ProxyError;
pub use kernel::KernelCounts;
pub use server::{ProxyReport, ProxyServer};

use serde::Serialize;
use std::net::SocketAddr;
use std::time::Duration;

/// Which engine new connections get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineChoice {
    /// What measures better, again and again.
    Auto,
    Kernel,
    User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    User,
    Kernel,
}

#[derive(Debug, Clone)]
pub struct ProxyPlan {
    pub engine: EngineChoice,
    pub listen: SocketAddr,
    pub to: SocketAddr,
    /// An IPv6 wildcard takes no IPv4 connections.
    pub v6_only: bool,
    /// Of the accept queue; the kernel cuts it to net.core.somaxconn.
    pub backlog: i32,
    pub connect_timeout: Duration,
    /// After so long without a segment each end is probed (TCP keep-alive), and after six probes its connection
    /// is over: an end that vanished otherwise costs two descriptors for ever.
    pub keep_alive: Option<Duration>,
    /// Connections that move no byte for so long are reset.
    pub idle_timeout: Option<Duration>,
    /// Bytes of a direction that the kernel may hold without charging anybody. An eighth of it may wait
    /// for TCP before user space takes over; all of it, where user space is held back as well, resets.
    pub limit: u32,
    /// Connections in the kernel at once; further ones are copied.
    pub kernel_connections: u32,
    /// `Auto`: for how long connections are compared, and when that is done again.
    pub window: Duration,
    pub again: Duration,
    #[cfg(test)]
    pub without: Without,
    /// Who holds it keeps the proxy from accepting.
    #[cfg(test)]
    pub gate: Option<std::sync::Arc<std::sync::Mutex<()>>>,
}

impl ProxyPlan {
    pub fn new(listen: SocketAddr, to: SocketAddr) -> ProxyPlan {
        ProxyPlan {
            engine: EngineChoice::Auto,
            listen,
            to,
            v6_only: false,
            backlog: 4096,
            connect_timeout: Duration::from_secs(10),
            keep_alive: Some(Duration::from_secs(60)),
            idle_timeout: None,
            limit: 4 << 20,
            kernel_connections: 32_768,
            window: Duration::from_secs(2),
            again: Duration::from_secs(60),
            #[cfg(test)]
            without: Without::default(),
            #[cfg(test)]
            gate: None,
        }
    }
}

/// Mechanisms that a test takes out, to see that it fails without them.
#[cfg(test)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Without {
    pub kick: bool,
    pub drain: bool,
    pub records_deleted: bool,
    pub brake: bool,
    /// User space that is told to close a window, and comes too late.
    pub hold_back: bool,
}
