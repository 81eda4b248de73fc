//! Rules in the style of ClassBench's access lists (Taylor and Turner, 2007): prefix lengths, port
//! classes and protocols with their usual shares, and addresses from few networks, so that rules
//! overlap as an operator's do.
use super::{PortRange, Prefix, Rule, RuleSet};
use crate::packets::sampling::{Weighted, below};
use hopscope_openloop::random::{SplitMix64, seeded};
use std::collections::HashSet;

/// Lengths of source and destination prefix, and their share in percent: mostly pairs of hosts and
/// small networks, some from anywhere to a host.
const LENGTHS: [(u8, u8, u32); 10] = [
    (32, 32, 22),
    (24, 32, 16),
    (32, 24, 9),
    (24, 24, 14),
    (28, 32, 8),
    (16, 32, 10),
    (16, 24, 8),
    (21, 28, 5),
    (8, 32, 3),
    (0, 32, 5),
];

/// Protocol number (0: any) and its share in percent.
const PROTOCOLS: [(u8, u32); 4] = [(6, 62), (17, 24), (1, 4), (0, 10)];

#[derive(Debug, Clone, Copy)]
enum Ports {
    Any,
    /// 1024–65535
    High,
    /// 0–1023
    Low,
    Range,
    Exact,
}

/// ClassBench's five port classes; a client's port is hardly ever told apart.
const SOURCE_PORTS: [(Ports, u32); 5] = [
    (Ports::Any, 88),
    (Ports::High, 6),
    (Ports::Low, 1),
    (Ports::Range, 2),
    (Ports::Exact, 3),
];
const DESTINATION_PORTS: [(Ports, u32); 5] = [
    (Ports::Any, 18),
    (Ports::High, 4),
    (Ports::Low, 2),
    (Ports::Range, 14),
    (Ports::Exact, 62),
];
/// Services that exact ports are drawn from, the first ones more often.
const SERVICES: [u16; 16] = [
    80, 443, 53, 22, 25, 123, 161, 389, 1433, 1521, 3306, 5060, 5432, 8080, 8443, 110,
];

/// Distinct rules, the more specific before the less specific, so that few are hidden. The same
/// count and seed give the same rules.
pub fn generate(count: usize, seed: u64) -> RuleSet {
    let mut random = seeded(seed, "rules");
    let weights = |shares: Vec<u32>| -> Weighted {
        Weighted::new(&shares.into_iter().map(f64::from).collect::<Vec<_>>())
    };
    let lengths = weights(LENGTHS.iter().map(|row| row.2).collect());
    let protocols = weights(PROTOCOLS.iter().map(|row| row.1).collect());
    let source_ports = weights(SOURCE_PORTS.iter().map(|row| row.1).collect());
    let destination_ports = weights(DESTINATION_PORTS.iter().map(|row| row.1).collect());
    let networks = Networks::new(count, &mut random);

    let (mut rules, mut seen) = (Vec::with_capacity(count), HashSet::new());
    while rules.len() < count {
        let (source, destination, _) = LENGTHS[lengths.draw(&mut random) as usize];
        let protocol = match PROTOCOLS[protocols.draw(&mut random) as usize].0 {
            0 => None,
            number => Some(number),
        };
        let mut rule = Rule {
            permit: below(&mut random, 10) < 7,
            protocol,
            source: networks.prefix(10, source, &mut random),
            source_ports: PortRange::ANY,
            destination: networks.prefix(172, destination, &mut random),
            destination_ports: PortRange::ANY,
        };
        // Ports mean nothing without a protocol that has them.
        if matches!(protocol, Some(6 | 17)) {
            let class = SOURCE_PORTS[source_ports.draw(&mut random) as usize].0;
            rule.source_ports = ports(class, &mut random);
            let class = DESTINATION_PORTS[destination_ports.draw(&mut random) as usize].0;
            rule.destination_ports = ports(class, &mut random);
        }
        let matched = Rule {
            permit: true,
            ..rule
        };
        if seen.insert(matched) {
            rules.push(rule);
        }
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(specificity(rule)));
    RuleSet(rules)
}

/// Bits that a rule fixes: a rule that lies inside another fixes more.
fn specificity(rule: &Rule) -> u32 {
    let ports = |range: PortRange| 16 - (u32::from(range.last - range.first) + 1).ilog2();
    let protocol = if rule.protocol.is_some() { 8 } else { 0 };
    u32::from(rule.source.length)
        + u32::from(rule.destination.length)
        + protocol
        + ports(rule.source_ports)
        + ports(rule.destination_ports)
}

fn ports(class: Ports, random: &mut SplitMix64) -> PortRange {
    let range = |first, last| PortRange { first, last };
    match class {
        Ports::Any => PortRange::ANY,
        Ports::High => range(1024, u16::MAX),
        Ports::Low => range(0, 1023),
        Ports::Range => {
            let first = 1024 + below(random, 60_000) as u16;
            range(first, first + 1 + below(random, 4000) as u16)
        }
        Ports::Exact => {
            // The product of two even draws leans to the front.
            let n = SERVICES.len() as u64;
            let at = below(random, n) * (1 + below(random, n)) / n;
            let port = SERVICES[at as usize];
            range(port, port)
        }
    }
}

/// Few networks that many rules share: one for eight rules.
struct Networks(Vec<u32>);

impl Networks {
    fn new(count: usize, random: &mut SplitMix64) -> Networks {
        let networks = (count / 8).max(4);
        Networks(
            (0..networks)
                .map(|_| random.next_u64() as u32 & 0x00ff_ff00)
                .collect(),
        )
    }

    fn prefix(&self, first_byte: u32, length: u8, random: &mut SplitMix64) -> Prefix {
        let network = self.0[below(random, self.0.len() as u64) as usize];
        let host = below(random, 256) as u32;
        Prefix::new(first_byte << 24 | network | host, length)
    }
}
