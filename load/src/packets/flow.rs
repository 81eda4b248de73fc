//! The flows that packets belong to, and what of a frame depends on the flow alone.
use super::checksum;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

/// What follows the IP header. TCP packets look like data of an open connection; there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    Udp,
    Tcp,
    /// Echo requests: a host that answers them reflects the stamp.
    Icmp,
}

impl Protocol {
    pub const ALL: [Protocol; 3] = [Protocol::Udp, Protocol::Tcp, Protocol::Icmp];

    /// The assigned number in the IP header.
    pub fn number(self, family: Family) -> u8 {
        match (self, family) {
            (Protocol::Udp, _) => 17,
            (Protocol::Tcp, _) => 6,
            (Protocol::Icmp, Family::V4) => 1,
            (Protocol::Icmp, Family::V6) => 58,
        }
    }

    pub fn header_bytes(self) -> usize {
        match self {
            Protocol::Udp | Protocol::Icmp => 8,
            Protocol::Tcp => 20,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Udp => "UDP",
            Protocol::Tcp => "TCP",
            Protocol::Icmp => "ICMP",
        })
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Protocol, String> {
        let all = Protocol::ALL.into_iter();
        let mut named = all.filter(|p| p.to_string().eq_ignore_ascii_case(text));
        named
            .next()
            .ok_or_else(|| format!("{text:?} is not udp, tcp or icmp"))
    }
}

/// Five-tuple. Of ICMP, `source_port` is the identifier and the other is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow {
    pub protocol: Protocol,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
}

/// First and last source port that flows without rules take: above the well-known ones.
pub const SOURCE_PORTS: (u16, u16) = (1024, 65_535);

/// `count` flows to one destination: they differ in the source port first, then in the address.
pub fn numbered(first: Flow, count: u32) -> Vec<Flow> {
    let ports = u32::from(SOURCE_PORTS.1 - first.source_port.min(SOURCE_PORTS.1)) + 1;
    let nth = |n: u32| Flow {
        source_port: first.source_port + (n % ports) as u16,
        source: plus(first.source, n / ports),
        ..first
    };
    (0..count).map(nth).collect()
}

fn plus(address: IpAddr, n: u32) -> IpAddr {
    match address {
        IpAddr::V4(a) => Ipv4Addr::from(u32::from(a).wrapping_add(n)).into(),
        IpAddr::V6(a) => Ipv6Addr::from(u128::from(a).wrapping_add(u128::from(n))).into(),
    }
}

pub fn family(flow: &Flow) -> Family {
    match flow.destination {
        IpAddr::V4(_) => Family::V4,
        IpAddr::V6(_) => Family::V6,
    }
}

/// Addresses and ports lie next to each other in UDP and TCP, so a flow is one run of bytes.
#[derive(Debug, Clone)]
pub struct FlowTable {
    pub(super) family: Family,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Source and destination address as in the header; 8 bytes of IPv4, 32 of IPv6.
    pub addresses: [u8; 32],
    pub ports: [u8; 4],
    pub protocol: Protocol,
    pub address_sum: u16,
    pub port_sum: u16,
}

impl FlowTable {
    /// `None` where a flow's addresses are not of one family, that of the first flow.
    pub fn new(flows: &[Flow]) -> Option<FlowTable> {
        let family = family(flows.first()?);
        let rows = flows.iter().map(|flow| Row::new(flow, family));
        Some(FlowTable {
            family,
            rows: rows.collect::<Option<_>>()?,
        })
    }

    pub fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn protocols(&self) -> Vec<Protocol> {
        let used = |p: &Protocol| self.rows.iter().any(|row| row.protocol == *p);
        Protocol::ALL.into_iter().filter(used).collect()
    }

    #[inline]
    pub(super) fn row(&self, flow: u32) -> &Row {
        &self.rows[flow as usize]
    }
}

impl Row {
    fn new(flow: &Flow, family: Family) -> Option<Row> {
        let mut addresses = [0; 32];
        match (family, flow.source, flow.destination) {
            (Family::V4, IpAddr::V4(source), IpAddr::V4(destination)) => {
                addresses[..4].copy_from_slice(&source.octets());
                addresses[4..8].copy_from_slice(&destination.octets());
            }
            (Family::V6, IpAddr::V6(source), IpAddr::V6(destination)) => {
                addresses[..16].copy_from_slice(&source.octets());
                addresses[16..].copy_from_slice(&destination.octets());
            }
            _ => return None,
        }
        let mut ports = [0; 4];
        ports[..2].copy_from_slice(&flow.source_port.to_be_bytes());
        if flow.protocol != Protocol::Icmp {
            ports[2..].copy_from_slice(&flow.destination_port.to_be_bytes());
        }
        Some(Row {
            addresses,
            ports,
            protocol: flow.protocol,
            address_sum: checksum::fold(checksum::sum(&addresses)),
            port_sum: checksum::fold(checksum::sum(&ports)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbered_flows_are_all_different() {
        let first = Flow {
            protocol: Protocol::Udp,
            source: Ipv4Addr::new(198, 18, 0, 1).into(),
            destination: Ipv4Addr::new(198, 19, 0, 1).into(),
            source_port: 65_000,
            destination_port: 9,
        };
        let flows = numbered(first, 2000);
        let distinct: HashSet<&Flow> = flows.iter().collect();
        assert_eq!(distinct.len(), 2000);
        let last = flows[1999];
        // 536 ports, three addresses full, and a part of the fourth.
        let expected: IpAddr = Ipv4Addr::new(198, 18, 0, 4).into();
        assert_eq!((last.source, last.source_port), (expected, 65_000 + 391));
    }

    #[test]
    fn mixed_families_are_refused() {
        let v4 = Flow {
            protocol: Protocol::Udp,
            source: Ipv4Addr::LOCALHOST.into(),
            destination: Ipv4Addr::LOCALHOST.into(),
            source_port: 1,
            destination_port: 2,
        };
        let mixed = Flow {
            source: Ipv6Addr::LOCALHOST.into(),
            ..v4
        };
        assert!(FlowTable::new(&[v4]).is_some());
        assert!(FlowTable::new(&[v4, mixed]).is_none());
        assert!(FlowTable::new(&[]).is_none());
    }
}
