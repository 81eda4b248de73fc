//! What a socket's options say of the IP headers that it sends. Those of IPv4 are for peers of IPv4, also of a socket of IPv6.
use crate::{MtuDiscovery, SocketError, SocketOption};
use std::net::IpAddr;

/// net.ipv4.ip_default_ttl, net.ipv6.conf.*.hop_limit.
const DEFAULT_HOP_LIMIT: u8 = 64;

#[derive(Debug, Clone, Copy)]
pub(crate) struct HeaderOptions {
    v4: OfFamily,
    v6: OfFamily,
}

#[derive(Debug, Clone, Copy)]
struct OfFamily {
    hop_limit: u8,
    traffic_class: u8,
    mtu_discovery: MtuDiscovery,
}

impl Default for HeaderOptions {
    fn default() -> HeaderOptions {
        let of_family = OfFamily {
            hop_limit: DEFAULT_HOP_LIMIT,
            traffic_class: 0,
            mtu_discovery: MtuDiscovery::default(),
        };
        HeaderOptions {
            v4: of_family,
            v6: of_family,
        }
    }
}

impl HeaderOptions {
    fn of(&self, peer: IpAddr) -> &OfFamily {
        match peer.to_canonical() {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => &self.v6,
        }
    }

    pub(crate) fn hop_limit(&self, peer: IpAddr) -> u8 {
        self.of(peer).hop_limit
    }

    pub(crate) fn traffic_class(&self, peer: IpAddr) -> u8 {
        self.of(peer).traffic_class
    }

    /// What becomes of packets that are too long (`ip_sk_use_pmtu`, `ip6_sk_ignore_df`).
    pub(crate) fn mtu_discovery(&self, peer: IpAddr) -> MtuDiscovery {
        self.of(peer).mtu_discovery
    }

    /// # Errors
    /// Invalid; NoOption: it is not of the header.
    pub(crate) fn set(&mut self, option: SocketOption) -> Result<(), SocketError> {
        match option {
            SocketOption::HopLimit(0) => return Err(SocketError::Invalid),
            SocketOption::HopLimit(hops) => self.v4.hop_limit = hops,
            // 0 is one, too (ip6_sk_dst_hoplimit).
            SocketOption::HopLimitV6(hops) => self.v6.hop_limit = hops,
            SocketOption::TrafficClass(class) => self.v4.traffic_class = class,
            SocketOption::TrafficClassV6(class) => self.v6.traffic_class = class,
            SocketOption::MtuDiscovery(how) => self.v4.mtu_discovery = how,
            SocketOption::MtuDiscoveryV6(how) => self.v6.mtu_discovery = how,
            _ => return Err(SocketError::NoOption),
        }
        Ok(())
    }

    /// # Errors
    /// NoOption: it is not of the header.
    pub(crate) fn get(&self, like: SocketOption) -> Result<SocketOption, SocketError> {
        Ok(match like {
            SocketOption::HopLimit(_) => SocketOption::HopLimit(self.v4.hop_limit),
            SocketOption::HopLimitV6(_) => SocketOption::HopLimitV6(self.v6.hop_limit),
            SocketOption::TrafficClass(_) => SocketOption::TrafficClass(self.v4.traffic_class),
            SocketOption::TrafficClassV6(_) => SocketOption::TrafficClassV6(self.v6.traffic_class),
            SocketOption::MtuDiscovery(_) => SocketOption::MtuDiscovery(self.v4.mtu_discovery),
            SocketOption::MtuDiscoveryV6(_) => SocketOption::MtuDiscoveryV6(self.v6.mtu_discovery),
            _ => return Err(SocketError::NoOption),
        })
    }
}
