//! The header before each packet, `struct virtio_net_hdr` (virtio 1.3, 5.1.6), little-endian, and what it may ask.
use super::counts::Drop;
use super::feature::Taken;
use hopscope_netio::Offload;

pub(crate) const LONGEST: usize = 12;
const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Beside a kind of segments: they carry congestion marks.
const GSO_ECN: u8 = 0x80;

/// Bytes 0 to 9; what is behind them says nothing when a driver sends.
pub(crate) fn decode(bytes: &[u8; LONGEST]) -> Offload {
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    Offload {
        flags: bytes[0] & NEEDS_CSUM,
        gso_type: bytes[1],
        hdr_len: half(2),
        gso_size: half(4),
        csum_start: half(6),
        csum_offset: half(8),
    }
}

pub(crate) fn encode(offload: Offload, chains: u16) -> [u8; LONGEST] {
    let mut bytes = [0; LONGEST];
    bytes[0] = offload.flags;
    bytes[1] = offload.gso_type;
    bytes[2..4].copy_from_slice(&offload.hdr_len.to_le_bytes());
    bytes[4..6].copy_from_slice(&offload.gso_size.to_le_bytes());
    bytes[6..8].copy_from_slice(&offload.csum_start.to_le_bytes());
    bytes[8..10].copy_from_slice(&offload.csum_offset.to_le_bytes());
    bytes[10..12].copy_from_slice(&chains.to_le_bytes());
    bytes
}

/// What a driver leaves to be done of a packet, against what it said it would.
pub(super) fn may_leave(offload: Offload, len: usize, taken: Taken) -> Result<(), Drop> {
    let (v4, v6) = taken.leaves_segments();
    let segments = match offload.gso_type & !GSO_ECN {
        GSO_NONE => offload.gso_type == GSO_NONE,
        GSO_TCPV4 => v4,
        GSO_TCPV6 => v6,
        _ => false,
    };
    let checksum = offload.flags & NEEDS_CSUM == 0 || taken.leaves_checksums();
    if !segments || !checksum {
        return Err(Drop::Unfinished);
    }
    match offload.flags & NEEDS_CSUM == 0 || checksum_at(offload, len).is_some() {
        true => Ok(()),
        false => Err(Drop::Header),
    }
}

/// Whether the driver takes a packet in as many pieces as it has.
pub(super) fn may_give(offload: Offload, taken: Taken) -> Result<(), Drop> {
    let (v4, v6) = taken.takes_segments();
    let fair = match offload.gso_type & !GSO_ECN {
        GSO_NONE => true,
        GSO_TCPV4 => v4,
        GSO_TCPV6 => v6,
        _ => false,
    };
    if fair { Ok(()) } else { Err(Drop::Unfinished) }
}

fn checksum_at(offload: Offload, len: usize) -> Option<(usize, usize)> {
    let start = usize::from(offload.csum_start);
    let at = start + usize::from(offload.csum_offset);
    (at + 2 <= len).then_some((start, at))
}

/// A checksum that the driver will not finish, finished here (RFC 1071): the field holds the sum of the
/// pseudo header, and all from `csum_start` on is summed up.
pub(super) fn finish(frame: &mut [u8], offload: &mut Offload) -> Result<(), Drop> {
    if offload.flags & NEEDS_CSUM == 0 {
        return Ok(());
    }
    let (start, at) = checksum_at(*offload, frame.len()).ok_or(Drop::Header)?;
    let words = frame[start..].chunks(2);
    let sum: u64 = words
        .map(|w| u64::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)])))
        .sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // All ones and all zeros are the same number; UDP means "none" by zeros.
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        other => other,
    };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    *offload = Offload::default();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP datagram of RFC 768 whose checksum, by hand, is 0x1d18.
    #[test]
    fn a_checksum_is_finished() {
        // Pseudo header: 10.0.0.1, 10.0.0.2, 17, length 12.
        let words: [u32; 6] = [0x0a00, 0x0001, 0x0a00, 0x0002, 17, 12];
        let pseudo = words.iter().sum::<u32>() as u16;
        let mut frame = vec![0xee; 34];
        frame.extend([0x04, 0xd2, 0x16, 0x2e, 0, 12]);
        frame.extend(pseudo.to_be_bytes());
        frame.extend(*b"abcd");
        let mut offload = Offload {
            flags: NEEDS_CSUM,
            csum_start: 34,
            csum_offset: 6,
            ..Offload::default()
        };
        finish(&mut frame, &mut offload).expect("within the frame");
        assert_eq!(offload, Offload::default());
        let all: u32 = frame[34..]
            .chunks(2)
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .chain(words)
            .sum();
        assert_eq!((all & 0xffff) + (all >> 16), 0xffff, "right sums are ones");
    }

    #[test]
    fn what_was_not_negotiated_is_refused() {
        let none = Taken(1 << 32);
        let checksum = Offload {
            flags: NEEDS_CSUM,
            csum_start: 34,
            csum_offset: 6,
            ..Offload::default()
        };
        let segments = |gso_type| Offload {
            gso_type,
            gso_size: 1448,
            ..Offload::default()
        };
        assert_eq!(may_leave(Offload::default(), 60, none), Ok(()));
        assert_eq!(may_leave(checksum, 60, none), Err(Drop::Unfinished));
        assert_eq!(may_leave(checksum, 60, Taken(1)), Ok(()));
        assert_eq!(may_leave(checksum, 41, Taken(1)), Err(Drop::Header));
        assert_eq!(may_leave(segments(1), 60, Taken(1)), Err(Drop::Unfinished));
        assert_eq!(may_leave(segments(1), 60, Taken(1 << 11)), Ok(()));
        assert_eq!(
            may_leave(segments(4), 60, Taken(1 << 11)),
            Err(Drop::Unfinished)
        );
        assert_eq!(
            may_leave(segments(GSO_ECN), 60, Taken(!0)),
            Err(Drop::Unfinished)
        );
        assert_eq!(may_leave(segments(3), 60, Taken(!0)), Err(Drop::Unfinished));
        assert_eq!(may_give(segments(1), none), Err(Drop::Unfinished));
        assert_eq!(may_give(segments(1), Taken(1 << 7)), Ok(()));
    }
}
