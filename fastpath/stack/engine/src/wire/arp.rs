//! ARP for IPv4 on Ethernet (RFC 826).
use super::ethernet::Mac;
use super::{be16, be32};
use std::net::Ipv4Addr;

pub const BYTES: usize = 28;

const REQUEST: u16 = 1;
const REPLY: u16 = 2;
/// Hardware type 1, protocol type 0x0800, lengths 6 and 4.
const ETHERNET_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    pub is_request: bool,
    pub sender_mac: Mac,
    pub sender: Ipv4Addr,
    pub target_mac: Mac,
    pub target: Ipv4Addr,
}

impl Packet {
    /// `None`: cut, of other address families, or another operation.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Packet> {
        let bytes: &[u8; BYTES] = bytes.first_chunk()?;
        if bytes[..6] != ETHERNET_IPV4 {
            return None;
        }
        let mac = |at: usize| {
            let mut mac = [0; 6];
            mac.copy_from_slice(&bytes[at..at + 6]);
            Mac(mac)
        };
        Some(Packet {
            is_request: match be16(bytes, 6) {
                REQUEST => true,
                REPLY => false,
                _ => return None,
            },
            sender_mac: mac(8),
            sender: Ipv4Addr::from_bits(be32(bytes, 14)),
            target_mac: mac(18),
            target: Ipv4Addr::from_bits(be32(bytes, 24)),
        })
    }

    pub fn emit(&self, into: &mut [u8; BYTES]) {
        let operation = if self.is_request { REQUEST } else { REPLY };
        into[..6].copy_from_slice(&ETHERNET_IPV4);
        into[6..8].copy_from_slice(&operation.to_be_bytes());
        into[8..14].copy_from_slice(&self.sender_mac.0);
        into[14..18].copy_from_slice(&self.sender.octets());
        into[18..24].copy_from_slice(&self.target_mac.0);
        into[24..28].copy_from_slice(&self.target.octets());
    }

    /// Announces its sender: a request or reply for the sender's own address (RFC 5227, 3).
    #[must_use]
    pub fn is_gratuitous(&self) -> bool {
        self.sender == self.target
    }
}
