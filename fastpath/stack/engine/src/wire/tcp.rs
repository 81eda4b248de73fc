//! TCP's header (RFC 9293, 3.1).
use super::tcp_options::TcpOptions;
use super::{Malformed, be16, be32};

pub const HEADER_BYTES: usize = 20;
/// With 40 bytes of options.
pub const MAX_HEADER_BYTES: usize = 60;
/// Where the checksum is in the header.
pub const CHECKSUM_OFFSET: u16 = 16;

/// The control bits, as in the header's 14th byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Flags(pub u8);

impl Flags {
    pub const FIN: Flags = Flags(0x01);
    pub const SYN: Flags = Flags(0x02);
    pub const RST: Flags = Flags(0x04);
    pub const PSH: Flags = Flags(0x08);
    pub const ACK: Flags = Flags(0x10);
    pub const URG: Flags = Flags(0x20);
    pub const ECE: Flags = Flags(0x40);
    pub const CWR: Flags = Flags(0x80);

    #[must_use]
    pub const fn and(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// All of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub const fn syn(self) -> bool {
        self.has(Flags::SYN)
    }

    #[must_use]
    pub const fn ack(self) -> bool {
        self.has(Flags::ACK)
    }

    #[must_use]
    pub const fn fin(self) -> bool {
        self.has(Flags::FIN)
    }

    #[must_use]
    pub const fn rst(self) -> bool {
        self.has(Flags::RST)
    }
}

/// A received segment: lengths are checked, the checksum is not.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    /// As it is in the header, not scaled.
    pub window: u16,
    pub urgent: u16,
    /// 0 to 40 bytes.
    pub options: &'a [u8],
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Of an IP packet's payload.
    ///
    /// # Errors
    /// Truncated, or a data offset of less than the header or more than `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Segment<'a>, Malformed> {
        let (header, rest) = bytes
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(Malformed::Truncated)?;
        let offset = usize::from(header[12] >> 4) * 4;
        let options = offset.checked_sub(HEADER_BYTES).ok_or(Malformed::Length)?;
        let (options, payload) = rest.split_at_checked(options).ok_or(Malformed::Length)?;
        Ok(Segment {
            source_port: be16(header, 0),
            destination_port: be16(header, 2),
            seq: be32(header, 4),
            ack: be32(header, 8),
            flags: Flags(header[13]),
            window: be16(header, 14),
            urgent: be16(header, 18),
            options,
            payload,
        })
    }
}

/// A header to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    pub source_port: u16,
    pub destination_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: Flags,
    pub window: u16,
    pub urgent: u16,
    pub options: TcpOptions,
}

impl Header {
    /// 20 to 60: a multiple of 4.
    #[must_use]
    #[allow(clippy::len_without_is_empty, reason = "no header is empty")]
    pub fn len(&self) -> usize {
        HEADER_BYTES + self.options.len()
    }

    /// Writes it to the start of `into`, with a checksum field of 0, and returns its length. `into` must hold
    /// [`MAX_HEADER_BYTES`], or `len()` of them; else nothing is written and the length is 0.
    pub fn emit(&self, into: &mut [u8]) -> usize {
        let len = self.len();
        let Some(into) = into.get_mut(..len) else {
            return 0;
        };
        into[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        into[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        into[4..8].copy_from_slice(&self.seq.to_be_bytes());
        into[8..12].copy_from_slice(&self.ack.to_be_bytes());
        into[12] = (len as u8 / 4) << 4;
        into[13] = self.flags.0;
        into[14..16].copy_from_slice(&self.window.to_be_bytes());
        into[16..18].fill(0);
        into[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        self.options.emit(&mut into[HEADER_BYTES..]);
        len
    }
}

/// Writes `field`, [`super::checksum::Sum::field`] or `partial`, into an emitted header.
pub fn set_checksum(header: &mut [u8], field: u16) {
    if let Some(place) = header.get_mut(16..18) {
        place.copy_from_slice(&field.to_be_bytes());
    }
}

#[cfg(test)]
pub(super) mod tests;
