//! Headers: views of received bytes that were checked, and what is written. Nothing here has state.
pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod flow_hash;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod ndisc;
pub mod siphash;
pub mod tcp;
pub mod tcp_options;
pub mod udp;

pub use flow_hash::flow_hash;

/// IP protocol numbers (IANA).
pub mod protocol {
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const ICMPV6: u8 = 58;
}

/// Why bytes are no packet of the kind that they were parsed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("shorter than its header")]
    Truncated,
    #[error("another version")]
    Version,
    #[error("a length that cannot be")]
    Length,
    #[error("wrong checksum")]
    Checksum,
    /// IPv6, RFC 8200: the offset in the packet that an ICMPv6 Parameter Problem points to, and its code.
    #[error("parameter problem, code {code}, at {pointer}")]
    Parameter { code: u8, pointer: u32 },
}

/// Big-endian, at `at`; the caller checked that they are there, else 0.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(b) => u16::from_be_bytes([b[0], b[1]]),
        None => 0,
    }
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4) {
        Some(b) => u32::from_be_bytes([b[0], b[1], b[2], b[3]]),
        None => 0,
    }
}

#[cfg(test)]
mod tests;
