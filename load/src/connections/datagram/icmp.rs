//! Echo requests and replies: RFC 792 and RFC 4443, section 4. Type, code 0, checksum, identifier,
//! sequence number, each big-endian; then the payload.

pub(super) const HEADER: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

impl Version {
    fn request(self) -> u8 {
        match self {
            Version::V4 => 8,
            Version::V6 => 128,
        }
    }

    fn reply(self) -> u8 {
        match self {
            Version::V4 => 0,
            Version::V6 => 129,
        }
    }
}

/// Puts the header before the payload, which begins at byte 8 of the message.
pub(super) fn finish(message: &mut [u8], version: Version, identifier: u16, sequence: u16) {
    message[0] = version.request();
    message[1] = 0;
    message[2..4].fill(0);
    message[4..6].copy_from_slice(&identifier.to_be_bytes());
    message[6..8].copy_from_slice(&sequence.to_be_bytes());
    // For ICMPv6 the kernel computes it: it covers addresses that only the kernel knows.
    if version == Version::V4 {
        let sum = checksum(message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The payload of a reply to us. A raw IPv4 socket gets the IP header too, and everybody's replies;
/// a ping socket (`identifier` is `None`) only its own.
pub(super) fn payload(received: &[u8], version: Version, identifier: Option<u16>) -> Option<&[u8]> {
    let skip = match (version, identifier) {
        (Version::V4, Some(_)) => usize::from(received.first()? & 0xf) * 4,
        _ => 0,
    };
    let message = received
        .get(skip..)
        .filter(|message| message.len() >= HEADER)?;
    let theirs = u16::from_be_bytes([message[4], message[5]]);
    let ours = identifier.is_none_or(|identifier| identifier == theirs);
    (message[0] == version.reply() && ours).then_some(&message[HEADER..])
}

/// RFC 1071.
fn checksum(bytes: &[u8]) -> u16 {
    let mut pairs = bytes.chunks_exact(2);
    let mut sum: u32 = pairs
        .by_ref()
        .map(|p| u32::from(u16::from_be_bytes([p[0], p[1]])))
        .sum();
    if let [last] = pairs.remainder() {
        sum += u32::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_its_checksum_sums_to_zero() {
        for length in [8, 9, 64, 1001] {
            let mut message = vec![0x5a; length];
            finish(&mut message, Version::V4, 0x1234, 7);
            assert_eq!(checksum(&message), 0, "{length} bytes");
            assert_eq!(message[..2], [8, 0]);
        }
    }

    #[test]
    fn replies_of_others_are_not_ours() {
        let mut raw = vec![0x45; 20];
        raw.extend([0, 0, 0, 0, 0x12, 0x34, 0, 1, 9, 9]);
        assert_eq!(payload(&raw, Version::V4, Some(0x1234)), Some(&[9, 9][..]));
        assert_eq!(payload(&raw, Version::V4, Some(0x1235)), None);
        assert_eq!(payload(&raw[20..], Version::V4, None), Some(&[9, 9][..]));
        raw[20] = 8;
        assert_eq!(
            payload(&raw, Version::V4, Some(0x1234)),
            None,
            "our own request"
        );
        assert_eq!(
            payload(&raw[..24], Version::V4, Some(0x1234)),
            None,
            "cut off"
        );
    }
}
