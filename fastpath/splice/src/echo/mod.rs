//! Echo servers that differ only in where the bytes turn round: in user space by one thread, by several,
//! through io_uring, or in the kernel.
mod connection;
mod counts;
mod error;
pub mod kernel;
pub(crate) mod listen;
mod server;
mod share;
#[cfg(test)]
mod tests;
mod text;
mod uring;
mod worker;

pub use counts::EchoCounts;
pub use error::EchoError;
pub use server::{EchoReport, EchoServer};

use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel sends back what comes, before user space sees it; this side accepts and closes.
    Kernel,
    /// One thread, epoll.
    User,
    /// Threads with an accept queue each (SO_REUSEPORT).
    UserMt,
    /// One thread, io_uring.
    Uring,
}

#[derive(Debug, Clone)]
pub struct EchoPlan {
    pub mode: Mode,
    pub listen: SocketAddr,
    /// An IPv6 wildcard takes no IPv4 connections.
    pub v6_only: bool,
    /// Of each accept queue; the kernel cuts it to net.core.somaxconn.
    pub backlog: i32,
    /// `UserMt` only.
    pub threads: usize,
    pub kernel: KernelPlan,
}

#[derive(Debug, Clone)]
pub struct KernelPlan {
    /// Where a cgroup2 file system is mounted: sockets of everything in it are seen.
    pub cgroup: PathBuf,
    /// Clients of this machine get their bytes straight into their sockets, which are in a map of sockets then: they may
    /// notice.
    pub local_clients: bool,
    /// Bytes that a client may leave unacknowledged before its connection is reset.
    pub egress_limit: u32,
    /// Packets that may wait before a local client's socket; then user space takes over.
    pub ingress_limit: u32,
    /// What the tests take out, one at a time.
    #[cfg(test)]
    pub without: kernel::Without,
}

impl KernelPlan {
    pub fn new(cgroup: PathBuf) -> KernelPlan {
        KernelPlan {
            cgroup,
            local_clients: false,
            egress_limit: 4 << 20,
            ingress_limit: 64,
            #[cfg(test)]
            without: kernel::Without::default(),
        }
    }
}
