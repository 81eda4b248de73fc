//! ICMP (RFC 792) and ICMPv6 (RFC 4443): both have the same first eight bytes.
use super::{be16, be32};

pub const HEADER_BYTES: usize = 8;

/// Types and codes of ICMP.
pub mod v4 {
    pub const ECHO_REPLY: u8 = 0;
    pub const UNREACHABLE: u8 = 3;
    pub const ECHO: u8 = 8;
    pub const TIME_EXCEEDED: u8 = 11;
    pub const PARAMETER_PROBLEM: u8 = 12;

    pub const NET: u8 = 0;
    pub const HOST: u8 = 1;
    pub const PROTOCOL: u8 = 2;
    pub const PORT: u8 = 3;
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    pub const REASSEMBLY: u8 = 1;
}

/// Types and codes of ICMPv6.
pub mod v6 {
    pub const UNREACHABLE: u8 = 1;
    pub const PACKET_TOO_BIG: u8 = 2;
    pub const TIME_EXCEEDED: u8 = 3;
    pub const PARAMETER_PROBLEM: u8 = 4;
    pub const ECHO: u8 = 128;
    pub const ECHO_REPLY: u8 = 129;
    pub const ROUTER_SOLICITATION: u8 = 133;
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    pub const NEIGHBOR_SOLICITATION: u8 = 135;
    pub const NEIGHBOR_ADVERTISEMENT: u8 = 136;
    pub const REDIRECT: u8 = 137;

    pub const NO_ROUTE: u8 = 0;
    pub const PROHIBITED: u8 = 1;
    pub const PORT: u8 = 4;
    pub const REASSEMBLY: u8 = 1;
    pub const ERRONEOUS_FIELD: u8 = 0;
    pub const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
    pub const INCOMPLETE_HEADER_CHAIN: u8 = 3;
}

/// A received message; its checksum is not verified.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    pub kind: u8,
    pub code: u8,
    /// Bytes 4 to 7: identifier and sequence of an echo, the MTU of Packet Too Big, a pointer.
    pub word: u32,
    /// After the first eight bytes: an echo's data, or the packet that an error is about.
    pub body: &'a [u8],
    pub bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// `None`: shorter than eight bytes.
    #[must_use]
    pub fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        let (header, body) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        Some(Message {
            kind: header[0],
            code: header[1],
            word: be32(header, 4),
            body,
            bytes,
        })
    }

    /// The next hop's MTU in an ICMP Fragmentation Needed (RFC 1191, 4).
    #[must_use]
    pub fn next_hop_mtu(&self) -> u16 {
        be16(self.bytes, 6)
    }
}

/// Writes the first eight bytes with a checksum field of 0.
pub fn emit(into: &mut [u8; HEADER_BYTES], kind: u8, code: u8, word: u32) {
    [into[0], into[1], into[2], into[3]] = [kind, code, 0, 0];
    into[4..].copy_from_slice(&word.to_be_bytes());
}

/// Of a message that was sent.
pub fn set_checksum(message: &mut [u8], field: u16) {
    if let Some(place) = message.get_mut(2..4) {
        place.copy_from_slice(&field.to_be_bytes());
    }
}
