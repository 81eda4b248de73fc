//! Ethernet's header (IEEE 802.3, RFC 894).
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub const HEADER_BYTES: usize = 14;

pub const IPV4: u16 = 0x0800;
pub const ARP: u16 = 0x0806;
pub const IPV6: u16 = 0x86dd;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// The group bit: multicast, or broadcast.
    #[must_use]
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// What one host can have: no group, and not all zeros.
    #[must_use]
    pub fn is_unicast(self) -> bool {
        !self.is_group() && self.0 != [0; 6]
    }

    /// RFC 1112, 6.4 and RFC 2464, 7; `None` for unicast.
    #[must_use]
    pub fn of_multicast(address: IpAddr) -> Option<Mac> {
        match address {
            IpAddr::V4(Ipv4Addr::BROADCAST) => Some(Mac::BROADCAST),
            IpAddr::V4(v4) if v4.is_multicast() => {
                let [_, b, c, d] = v4.octets();
                Some(Mac([0x01, 0x00, 0x5e, b & 0x7f, c, d]))
            }
            IpAddr::V6(v6) if v6.is_multicast() => {
                let [.., a, b, c, d] = v6.octets();
                Some(Mac([0x33, 0x33, a, b, c, d]))
            }
            _ => None,
        }
    }
}

/// ff02::1:ffXX:XXXX, with the address' last three bytes (RFC 4291, 2.7.1).
#[must_use]
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let prefix = 0xff02_0000_0000_0000_0000_0001_ff00_0000u128;
    Ipv6Addr::from_bits(prefix | address.to_bits() & 0x00ff_ffff)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub destination: Mac,
    pub source: Mac,
    pub ethertype: u16,
}

impl Header {
    /// The header and what follows; `None` where `frame` is shorter.
    #[must_use]
    pub fn parse(frame: &[u8]) -> Option<(Header, &[u8])> {
        let (header, payload) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let [a, b, c, d, e, f, g, h, i, j, k, l, high, low] = *header;
        let header = Header {
            destination: Mac([a, b, c, d, e, f]),
            source: Mac([g, h, i, j, k, l]),
            ethertype: u16::from_be_bytes([high, low]),
        };
        Some((header, payload))
    }

    pub fn emit(&self, into: &mut [u8; HEADER_BYTES]) {
        into[..6].copy_from_slice(&self.destination.0);
        into[6..12].copy_from_slice(&self.source.0);
        into[12..].copy_from_slice(&self.ethertype.to_be_bytes());
    }
}
