//! IPv4's header (RFC 791).
use super::checksum::Sum;
use super::{Malformed, be16, be32};
use std::net::Ipv4Addr;

pub const HEADER_BYTES: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;

/// A received packet: version, lengths and header checksum are right; options are skipped.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: u8,
    pub ttl: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub more_fragments: bool,
    /// In bytes.
    pub fragment_offset: u16,
    /// With options.
    pub header: &'a [u8],
    /// Up to the total length: what Ethernet padded is cut off.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// # Errors
    /// Truncated, or a version, length or header checksum that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let fixed: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(Malformed::Version);
        }
        let header_len = usize::from(fixed[0] & 15) * 4;
        let total = usize::from(be16(fixed, 2));
        if header_len < HEADER_BYTES || total < header_len {
            return Err(Malformed::Length);
        }
        let packet = bytes.get(..total).ok_or(Malformed::Truncated)?;
        let (header, payload) = packet.split_at(header_len);
        if !Sum::of(header).is_valid() {
            return Err(Malformed::Checksum);
        }
        let fragment = be16(fixed, 6);
        Ok(Packet {
            source: Ipv4Addr::from_bits(be32(fixed, 12)),
            destination: Ipv4Addr::from_bits(be32(fixed, 16)),
            protocol: fixed[9],
            ttl: fixed[8],
            traffic_class: fixed[1],
            identification: be16(fixed, 4),
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            more_fragments: fragment & MORE_FRAGMENTS != 0,
            fragment_offset: (fragment & 0x1fff) * 8,
            header,
            payload,
        })
    }

    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments || self.fragment_offset != 0
    }
}

/// A header to be sent, without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub source: Ipv4Addr,
    pub destination: Ipv4Addr,
    pub protocol: u8,
    pub ttl: u8,
    pub traffic_class: u8,
    pub identification: u16,
    pub dont_fragment: bool,
    pub more_fragments: bool,
    /// In bytes, a multiple of 8.
    pub fragment_offset: u16,
    /// After the header.
    pub payload_bytes: u16,
}

impl Header {
    /// Writes it with its checksum. The total length must fit 16 bits.
    pub fn emit(&self, into: &mut [u8; HEADER_BYTES]) {
        let total = self.payload_bytes.saturating_add(HEADER_BYTES as u16);
        let flag = |set: bool, flag: u16| if set { flag } else { 0 };
        let fragment = (self.fragment_offset / 8)
            | flag(self.dont_fragment, DONT_FRAGMENT)
            | flag(self.more_fragments, MORE_FRAGMENTS);
        into[0] = 0x45;
        into[1] = self.traffic_class;
        into[2..4].copy_from_slice(&total.to_be_bytes());
        into[4..6].copy_from_slice(&self.identification.to_be_bytes());
        into[6..8].copy_from_slice(&fragment.to_be_bytes());
        into[8] = self.ttl;
        into[9] = self.protocol;
        into[10..12].fill(0);
        into[12..16].copy_from_slice(&self.source.octets());
        into[16..20].copy_from_slice(&self.destination.octets());
        let field = Sum::of(into).field();
        into[10..12].copy_from_slice(&field.to_be_bytes());
    }
}
