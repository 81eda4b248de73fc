//! Which addresses are ours, and where others are reached.
use crate::config::{Address, Config, ConfigError, Route};
use crate::wire::ipv6;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// RFC 1122, 3.3.2: what each host can receive.
const IPV4_MIN_MTU: u16 = 576;

#[derive(Debug)]
pub(crate) struct Addresses {
    ours: Vec<Address>,
    /// The longest prefix first.
    routes: Vec<Route>,
}

/// Whom a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recipient {
    Us,
    /// Us and others: broadcast, or a group that each host is in.
    Group,
    Others,
}

impl Addresses {
    /// # Errors
    /// An address, prefix or MTU that cannot be.
    pub(crate) fn new(config: &Config) -> Result<Addresses, ConfigError> {
        if config.addresses.is_empty() {
            return Err(ConfigError::NoAddress);
        }
        for ours in &config.addresses {
            check_prefix(ours)?;
            if !is_unicast(ours.address) || is_broadcast_of(ours, ours.address) {
                return Err(ConfigError::NotUnicast(ours.address));
            }
            let (least, family) = match ours.address {
                IpAddr::V4(_) => (IPV4_MIN_MTU, "IPv4"),
                IpAddr::V6(_) => (ipv6::MIN_MTU, "IPv6"),
            };
            if config.mtu < least {
                let mtu = config.mtu;
                return Err(ConfigError::MtuTooSmall { mtu, least, family });
            }
        }
        let mut routes = config.routes.clone();
        for route in &routes {
            check_prefix(&route.destination)?;
            if !is_unicast(route.gateway) {
                return Err(ConfigError::NotUnicast(route.gateway));
            }
        }
        routes.sort_by_key(|r| std::cmp::Reverse(r.destination.prefix_bits));
        let ours = config.addresses.clone();
        Ok(Addresses { ours, routes })
    }

    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        self.ours.iter().any(|a| a.address == address)
    }

    /// What is sent to it stays here: ours, or one of loopback, which nothing from the device may use (RFC 1122, 3.2.1.3; RFC 4291, 2.5.3).
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        self.is_ours(address) || address.is_loopback()
    }

    pub(crate) fn recipient(&self, destination: IpAddr) -> Recipient {
        if self.is_ours(destination) {
            return Recipient::Us;
        }
        let group = match destination {
            IpAddr::V4(v4) => {
                v4.is_broadcast()
                    || v4 == Ipv4Addr::new(224, 0, 0, 1)
                    || self.ours.iter().any(|a| is_broadcast_of(a, destination))
            }
            IpAddr::V6(v6) if v6.is_multicast() => v6 == ALL_NODES || self.is_solicited_node(v6),
            IpAddr::V6(_) => false,
        };
        if group {
            Recipient::Group
        } else {
            Recipient::Others
        }
    }

    fn is_solicited_node(&self, group: Ipv6Addr) -> bool {
        self.ours.iter().any(|a| match a.address {
            IpAddr::V6(v6) => crate::wire::ethernet::solicited_node(v6) == group,
            IpAddr::V4(_) => false,
        })
    }

    /// Whether one host may have sent from it: no group, not ours, not of loopback.
    pub(crate) fn is_valid_source(&self, source: IpAddr) -> bool {
        is_unicast(source)
            && !self.is_ours(source)
            && !self.ours.iter().any(|a| is_broadcast_of(a, source))
    }

    /// On the link: in the network of one of our addresses, or a gateway, which need not be (RFC 5942, 3).
    pub(crate) fn is_neighbor(&self, address: IpAddr) -> bool {
        is_link_local(address)
            || self.ours.iter().any(|ours| contains(ours, address))
            || self.routes.iter().any(|route| route.gateway == address)
    }

    /// Itself where `destination` is on the link, else a gateway.
    pub(crate) fn next_hop(&self, destination: IpAddr) -> Option<IpAddr> {
        if is_link_local(destination) {
            return Some(destination);
        }
        let ours = self.ours.iter().filter(|a| contains(a, destination));
        let on_link = ours.map(|a| a.prefix_bits).max();
        let mut routes = self.routes.iter();
        let route = routes.find(|r| contains(&r.destination, destination));
        match (on_link, route) {
            (Some(bits), Some(route)) if route.destination.prefix_bits > bits => {
                Some(route.gateway)
            }
            (Some(_), _) => Some(destination),
            (None, Some(route)) => Some(route.gateway),
            (None, None) => None,
        }
    }

    /// The address of ours to send from: the one whose network has the next hop, else the one that shares most leading
    /// bits (RFC 6724, 5, rule 8).
    pub(crate) fn source_for(&self, destination: IpAddr) -> Option<IpAddr> {
        if destination.is_loopback() {
            return Some(match destination {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let near = self.next_hop(destination).unwrap_or(destination);
        let of_family = self
            .ours
            .iter()
            .filter(|a| a.address.is_ipv4() == near.is_ipv4());
        let best =
            of_family.max_by_key(|a| (contains(a, near), shared_bits(a.address, destination)));
        best.map(|a| a.address)
    }
}

/// Whoever has one is on the link, whatever our addresses are (RFC 4291, 2.5.6): Linux probes us from it.
fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

fn check_prefix(address: &Address) -> Result<(), ConfigError> {
    let most = if address.address.is_ipv4() { 32 } else { 128 };
    if address.prefix_bits > most {
        return Err(ConfigError::Prefix {
            address: address.address,
            bits: address.prefix_bits,
            most,
        });
    }
    Ok(())
}

fn is_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let reserved = v4.octets()[0] == 0 || v4.octets()[0] >= 224;
            !reserved && !v4.is_loopback()
        }
        IpAddr::V6(v6) => {
            !v6.is_multicast()
                && !v6.is_unspecified()
                && !v6.is_loopback()
                && v6.to_ipv4_mapped().is_none()
        }
    }
}

/// All ones in the host's bits; networks of up to two addresses have none (RFC 3021).
fn is_broadcast_of(ours: &Address, address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let host_bits = u32::MAX
                .checked_shr(u32::from(ours.prefix_bits))
                .unwrap_or(0);
            host_bits > 1 && v4.to_bits() & host_bits == host_bits && contains(ours, address)
        }
        IpAddr::V6(_) => false,
    }
}

fn contains(network: &Address, address: IpAddr) -> bool {
    network.address.is_ipv4() == address.is_ipv4()
        && shared_bits(network.address, address) >= u32::from(network.prefix_bits)
}

/// Leading bits that are equal.
fn shared_bits(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}
