//! Five-tuple rules for access lists, and packets that hit each of them.
//!
//! As text, a line a rule, `#` begins a comment, the first rule that matches decides:
//!
//! ```text
//! permit 6 10.1.0.0/16 any 172.16.3.0/24 80-80
//! deny any 10.1.2.3/32 any 172.16.0.0/12 any
//! ```
//!
//! verdict, protocol number or `any`, source prefix, source ports, destination prefix, destination
//! ports (`any`, `FIRST-LAST` or one). The demo's firewall reads the same.
mod generate;
mod text;

pub use generate::generate;
pub use text::read;

use super::flow::{Flow, Protocol};
use super::sampling::below;
use hopscope_openloop::random::{SplitMix64, seeded};
use std::net::Ipv4Addr;

/// What an access list may have here and in the demo.
pub const MOST: usize = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// Bits behind the prefix are 0.
    pub address: u32,
    pub length: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rule {
    pub permit: bool,
    /// `None`: any.
    pub protocol: Option<u8>,
    pub source: Prefix,
    pub source_ports: PortRange,
    pub destination: Prefix,
    pub destination_ports: PortRange,
}

/// In order: the first that matches decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleSet(pub Vec<Rule>);

/// Flows that hit rules, and rules that none could be found for.
#[derive(Debug, Clone, Default)]
pub struct Hits {
    /// Number of the rule, from 0, and a flow that it is the first to match.
    pub flows: Vec<(usize, Flow)>,
    /// Earlier rules took every packet that was tried.
    pub hidden: Vec<usize>,
    /// Of a protocol that is not UDP, TCP or ICMP.
    pub unsupported: Vec<usize>,
}

impl Prefix {
    pub fn new(address: u32, length: u8) -> Prefix {
        Prefix {
            address: address & mask(length),
            length,
        }
    }

    pub fn contains(self, address: u32) -> bool {
        address & mask(self.length) == self.address
    }

    fn draw(self, random: &mut SplitMix64) -> Ipv4Addr {
        Ipv4Addr::from(self.address | random.next_u64() as u32 & !mask(self.length))
    }
}

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0)
}

impl PortRange {
    pub const ANY: PortRange = PortRange {
        first: 0,
        last: u16::MAX,
    };

    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }

    fn draw(self, random: &mut SplitMix64) -> u16 {
        self.first + below(random, u64::from(self.last - self.first) + 1) as u16
    }
}

impl Rule {
    fn matches(&self, number: u8, source: u32, destination: u32, ports: (u16, u16)) -> bool {
        self.protocol.is_none_or(|protocol| protocol == number)
            && self.source.contains(source)
            && self.destination.contains(destination)
            && self.source_ports.contains(ports.0)
            && self.destination_ports.contains(ports.1)
    }
}

/// Draws inside a rule before it counts as hidden.
const TRIES: u32 = 64;

impl RuleSet {
    /// The first rule that matches a flow.
    pub fn first_match(&self, flow: &Flow) -> Option<usize> {
        let (std::net::IpAddr::V4(source), std::net::IpAddr::V4(destination)) =
            (flow.source, flow.destination)
        else {
            return None;
        };
        let number = flow.protocol.number(super::flow::Family::V4);
        // What looks at ports sees none in ICMP.
        let ports = match flow.protocol {
            Protocol::Icmp => (0, 0),
            _ => (flow.source_port, flow.destination_port),
        };
        let matches = |rule: &Rule| rule.matches(number, source.into(), destination.into(), ports);
        self.0.iter().position(matches)
    }

    /// A flow for each rule that one is found for.
    pub fn hits(&self, seed: u64) -> Hits {
        let mut random = seeded(seed, "hits");
        let mut hits = Hits::default();
        for (number, rule) in self.0.iter().enumerate() {
            let protocol = match rule.protocol {
                None | Some(17) => Protocol::Udp,
                Some(6) => Protocol::Tcp,
                Some(1) => Protocol::Icmp,
                Some(_) => {
                    hits.unsupported.push(number);
                    continue;
                }
            };
            let mut draw = |_| Flow {
                protocol,
                source: rule.source.draw(&mut random).into(),
                destination: rule.destination.draw(&mut random).into(),
                source_port: rule.source_ports.draw(&mut random),
                destination_port: rule.destination_ports.draw(&mut random),
            };
            let mut drawn = (0..TRIES).map(&mut draw);
            match drawn.find(|flow| self.first_match(flow) == Some(number)) {
                Some(flow) => hits.flows.push((number, flow)),
                None => hits.hidden.push(number),
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests;
