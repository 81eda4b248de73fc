//! IPv6's header and its extension headers (RFC 8200).
use super::{Malformed, be16, be32};
use std::net::Ipv6Addr;

pub const HEADER_BYTES: usize = 40;
/// The least MTU of a link (RFC 8200, 5).
pub const MIN_MTU: u16 = 1280;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub const FRAGMENT: u8 = 44;
const NO_NEXT_HEADER: u8 = 59;
const DESTINATION_OPTIONS: u8 = 60;

/// Extension headers of one packet. RFC 8504, 5.3 allows a limit; RFC 8200, 4.1 has no use for more than six.
const MAX_EXTENSIONS: usize = 8;
/// Options of one extension header, padding apart (RFC 8504, 5.3).
const MAX_OPTIONS: usize = 8;

/// Codes of ICMPv6 Parameter Problem (RFC 4443, 3.4).
const ERRONEOUS_FIELD: u8 = 0;
const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
const UNRECOGNIZED_OPTION: u8 = 2;

/// What a fragment header says (RFC 8200, 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment {
    pub identification: u32,
    /// In bytes.
    pub offset: u16,
    pub more: bool,
}

/// A received packet whose extension headers were walked.
#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub hop_limit: u8,
    pub traffic_class: u8,
    /// What `payload` is. After a fragment header that is no whole packet, its next header.
    pub protocol: u8,
    /// The offset of the field in the packet that says what `payload` is.
    pub protocol_at: u32,
    pub fragment: Option<Fragment>,
    /// After the extension headers.
    pub payload: &'a [u8],
    /// Up to the payload's end: what padding followed is cut off.
    pub bytes: &'a [u8],
}

impl<'a> Packet<'a> {
    /// # Errors
    /// Truncated, a version or length that is wrong, or an extension header whose sender has to be told
    /// ([`Malformed::Parameter`]).
    pub fn parse(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let mut packet = Packet::parse_fixed(bytes)?;
        packet.walk()?;
        Ok(packet)
    }

    /// Without a look at extension headers: those of packets for others say nothing to us.
    ///
    /// # Errors
    /// Truncated, Version.
    pub fn parse_fixed(bytes: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let fixed: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(Malformed::Truncated)?;
        if fixed[0] >> 4 != 6 {
            return Err(Malformed::Version);
        }
        let total = HEADER_BYTES + usize::from(be16(fixed, 4));
        let bytes = bytes.get(..total).ok_or(Malformed::Truncated)?;
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&fixed[at..at + 16]);
            Ipv6Addr::from(octets)
        };
        Ok(Packet {
            source: address(8),
            destination: address(24),
            hop_limit: fixed[7],
            traffic_class: fixed[0] << 4 | fixed[1] >> 4,
            protocol: fixed[6],
            protocol_at: 6,
            fragment: None,
            payload: &bytes[HEADER_BYTES..],
            bytes,
        })
    }

    /// Takes extension headers off the payload, up to a header that is none, or the payload of a fragment.
    ///
    /// # Errors
    /// As [`Packet::parse`].
    pub fn walk(&mut self) -> Result<(), Malformed> {
        for _ in 0..MAX_EXTENSIONS {
            let at = (self.bytes.len() - self.payload.len()) as u32;
            match self.protocol {
                HOP_BY_HOP if at as usize != HEADER_BYTES => {
                    return Err(Malformed::Parameter {
                        code: UNRECOGNIZED_NEXT_HEADER,
                        pointer: self.protocol_at,
                    });
                }
                HOP_BY_HOP | DESTINATION_OPTIONS => {
                    let header = self.take_extension(at)?;
                    options(header, at, self.destination.is_multicast())?;
                }
                ROUTING => {
                    let header = self.take_extension(at)?;
                    // RFC 8200, 4.4: no type is known here; with segments left the packet is not for this host.
                    if header[3] != 0 {
                        return Err(Malformed::Parameter {
                            code: ERRONEOUS_FIELD,
                            pointer: at + 2,
                        });
                    }
                }
                FRAGMENT => {
                    let fragment = self.take_fragment(at)?;
                    // RFC 6946: an atomic fragment is a whole packet.
                    if fragment.more || fragment.offset != 0 {
                        self.fragment = Some(fragment);
                        return Ok(());
                    }
                }
                _ => return Ok(()),
            }
        }
        match self.protocol {
            HOP_BY_HOP | DESTINATION_OPTIONS | ROUTING | FRAGMENT => Err(Malformed::Length),
            _ => Ok(()),
        }
    }

    /// A header with its length in units of 8 bytes, the first apart.
    fn take_extension(&mut self, at: u32) -> Result<&'a [u8], Malformed> {
        let units = *self.payload.get(1).ok_or(Malformed::Truncated)?;
        let len = (usize::from(units) + 1) * 8;
        let (header, rest) = self
            .payload
            .split_at_checked(len)
            .ok_or(Malformed::Truncated)?;
        self.go_on(header[0], at, rest);
        Ok(header)
    }

    fn take_fragment(&mut self, at: u32) -> Result<Fragment, Malformed> {
        let (header, rest) = self
            .payload
            .split_first_chunk::<8>()
            .ok_or(Malformed::Truncated)?;
        let place = be16(header, 2);
        self.go_on(header[0], at, rest);
        Ok(Fragment {
            identification: be32(header, 4),
            offset: place & !7,
            more: place & 1 != 0,
        })
    }

    fn go_on(&mut self, protocol: u8, at: u32, rest: &'a [u8]) {
        self.protocol = protocol;
        self.protocol_at = at;
        self.payload = rest;
    }

    /// RFC 8200, 4.7.
    #[must_use]
    pub fn has_no_payload(&self) -> bool {
        self.protocol == NO_NEXT_HEADER
    }
}

/// The options of a hop-by-hop or destination options header that begins at `at` (RFC 8200, 4.2). None but padding is
/// known here; the two highest bits of an unknown one say what to do.
fn options(header: &[u8], at: u32, multicast: bool) -> Result<(), Malformed> {
    let mut offset = 2;
    let mut seen = 0;
    while let Some(&kind) = header.get(offset) {
        let Some(&len) = header.get(offset + 1) else {
            // The last byte of the header: only Pad1 fits.
            return if kind == 0 {
                Ok(())
            } else {
                Err(Malformed::Length)
            };
        };
        let problem = Malformed::Parameter {
            code: UNRECOGNIZED_OPTION,
            pointer: at + offset as u32,
        };
        offset += match kind {
            0 => 1,
            _ => 2 + usize::from(len),
        };
        if kind > 1 {
            seen += 1;
            match kind >> 6 {
                _ if seen > MAX_OPTIONS => return Err(Malformed::Length),
                0 => {}
                1 => return Err(Malformed::Length),
                3 if multicast => return Err(Malformed::Length),
                _ => return Err(problem),
            }
        }
    }
    if offset > header.len() {
        return Err(Malformed::Length);
    }
    Ok(())
}

/// A header to be sent, without extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    pub protocol: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
    pub payload_bytes: u16,
}

impl Header {
    pub fn emit(&self, into: &mut [u8; HEADER_BYTES]) {
        let first = 6u32 << 28 | u32::from(self.traffic_class) << 20;
        into[0..4].copy_from_slice(&first.to_be_bytes());
        into[4..6].copy_from_slice(&self.payload_bytes.to_be_bytes());
        into[6] = self.protocol;
        into[7] = self.hop_limit;
        into[8..24].copy_from_slice(&self.source.octets());
        into[24..40].copy_from_slice(&self.destination.octets());
    }
}
