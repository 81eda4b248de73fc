//! UDP's header (RFC 768; RFC 8200, 8.1).
use super::{Malformed, be16};

pub const HEADER_BYTES: usize = 8;
/// Where the checksum is in the header.
pub const CHECKSUM_OFFSET: u16 = 6;
/// Payload of a datagram over IPv4 and over IPv6 without jumbograms.
pub const MAX_PAYLOAD_V4: usize = 65_507;
pub const MAX_PAYLOAD_V6: usize = 65_527;

#[derive(Debug, Clone, Copy)]
pub struct Datagram<'a> {
    pub source_port: u16,
    pub destination_port: u16,
    /// False: the sender computed none (RFC 768), which only IPv4 allows.
    pub has_checksum: bool,
    /// Header and payload, as far as the checksum covers it.
    pub bytes: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Of an IP packet's payload, which may be longer.
    ///
    /// # Errors
    /// Truncated, or a length below 8 or beyond `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Datagram<'a>, Malformed> {
        if bytes.len() < HEADER_BYTES {
            return Err(Malformed::Truncated);
        }
        let len = usize::from(be16(bytes, 4));
        if len < HEADER_BYTES {
            return Err(Malformed::Length);
        }
        Ok(Datagram {
            source_port: be16(bytes, 0),
            destination_port: be16(bytes, 2),
            has_checksum: be16(bytes, 6) != 0,
            bytes: bytes.get(..len).ok_or(Malformed::Length)?,
        })
    }

    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub source_port: u16,
    pub destination_port: u16,
    /// Of header and payload.
    pub len: u16,
}

impl Header {
    /// With a checksum field of 0.
    pub fn emit(&self, into: &mut [u8; HEADER_BYTES]) {
        into[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        into[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        into[4..6].copy_from_slice(&self.len.to_be_bytes());
        into[6..8].fill(0);
    }
}

/// The field for a computed checksum: 0 would mean that there is none, so it is sent as its other form, all ones.
#[must_use]
pub fn nonzero(field: u16) -> u16 {
    if field == 0 { 0xffff } else { field }
}
