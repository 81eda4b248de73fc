//! Options of a UDP socket.
use crate::{MtuDiscovery, SocketError, SocketOption};
use std::net::IpAddr;

/// net.core.rmem_default and wmem_default of Linux.
const DEFAULT_BUFFER: u32 = 212_992;
/// 2 × net.core.rmem_max and wmem_max; SOCK_MIN_RCVBUF, SOCK_MIN_SNDBUF.
const MAX_BUFFER: u32 = 425_984;
const MIN_BUFFER: u32 = 4_608;

#[derive(Debug, Clone, Copy)]
pub(super) struct UdpOptions {
    pub reuse_address: bool,
    pub reuse_port: bool,
    pub v6_only: bool,
    /// In bytes, as getsockopt tells them.
    pub send_buffer: u32,
    pub receive_buffer: u32,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub mtu_discovery: MtuDiscovery,
    pub mtu_discovery_v6: MtuDiscovery,
}

impl Default for UdpOptions {
    fn default() -> UdpOptions {
        UdpOptions {
            reuse_address: false,
            reuse_port: false,
            v6_only: false,
            send_buffer: DEFAULT_BUFFER,
            receive_buffer: DEFAULT_BUFFER,
            hop_limit: 64,
            traffic_class: 0,
            mtu_discovery: MtuDiscovery::default(),
            mtu_discovery_v6: MtuDiscovery::default(),
        }
    }
}

impl UdpOptions {
    /// What becomes of datagrams to there; of IPv6's sockets, too, the one of the peer's family (`ip_sk_use_pmtu`, `ip6_sk_ignore_df`).
    pub(super) fn mtu_discovery(&self, peer: IpAddr) -> MtuDiscovery {
        match peer.to_canonical() {
            IpAddr::V4(_) => self.mtu_discovery,
            IpAddr::V6(_) => self.mtu_discovery_v6,
        }
    }

    /// # Errors
    /// Invalid, NoOption (TCP's).
    pub(super) fn set(&mut self, option: SocketOption, is_bound: bool) -> Result<(), SocketError> {
        match option {
            SocketOption::ReuseAddress(on) => self.reuse_address = on,
            SocketOption::ReusePort(on) => self.reuse_port = on,
            SocketOption::V6Only(_) if is_bound => return Err(SocketError::Invalid),
            SocketOption::V6Only(on) => self.v6_only = on,
            SocketOption::SendBuffer(bytes) => self.send_buffer = doubled(bytes),
            SocketOption::ReceiveBuffer(bytes) => self.receive_buffer = doubled(bytes),
            SocketOption::HopLimit(0) => return Err(SocketError::Invalid),
            SocketOption::HopLimit(hops) => self.hop_limit = hops,
            SocketOption::TrafficClass(class) => self.traffic_class = class,
            SocketOption::MtuDiscovery(how) => self.mtu_discovery = how,
            SocketOption::MtuDiscoveryV6(how) => self.mtu_discovery_v6 = how,
            _ => return Err(SocketError::NoOption),
        }
        Ok(())
    }

    /// # Errors
    /// NoOption.
    pub(super) fn get(&self, like: SocketOption) -> Result<SocketOption, SocketError> {
        Ok(match like {
            SocketOption::ReuseAddress(_) => SocketOption::ReuseAddress(self.reuse_address),
            SocketOption::ReusePort(_) => SocketOption::ReusePort(self.reuse_port),
            SocketOption::V6Only(_) => SocketOption::V6Only(self.v6_only),
            SocketOption::SendBuffer(_) => SocketOption::SendBuffer(self.send_buffer),
            SocketOption::ReceiveBuffer(_) => SocketOption::ReceiveBuffer(self.receive_buffer),
            SocketOption::HopLimit(_) => SocketOption::HopLimit(self.hop_limit),
            SocketOption::TrafficClass(_) => SocketOption::TrafficClass(self.traffic_class),
            SocketOption::MtuDiscovery(_) => SocketOption::MtuDiscovery(self.mtu_discovery),
            SocketOption::MtuDiscoveryV6(_) => SocketOption::MtuDiscoveryV6(self.mtu_discovery_v6),
            _ => return Err(SocketError::NoOption),
        })
    }
}

fn doubled(bytes: u32) -> u32 {
    bytes.saturating_mul(2).clamp(MIN_BUFFER, MAX_BUFFER)
}
