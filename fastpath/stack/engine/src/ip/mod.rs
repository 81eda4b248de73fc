//! Below TCP and UDP: addresses, routes, neighbours, fragments, ICMP.
mod addresses;
mod arp;
mod errors;
mod fragments;
mod header_options;
mod icmp;
mod icmpv6;
mod input;
mod interface;
mod looped;
mod ndisc;
mod neighbors;
mod outbox;
mod outgoing;
mod pmtu;
mod quoted;
mod rate_limit;
mod reassembly;
mod receive;
mod send;

pub(crate) use fragments::fragment_bytes;
pub(crate) use header_options::HeaderOptions;
pub(crate) use input::{IcmpError, Input, Packet};
pub(crate) use interface::Interface;
pub(crate) use neighbors::Hop;
pub(crate) use outgoing::{FragmentOut, Outgoing};

#[cfg(test)]
mod tests;
