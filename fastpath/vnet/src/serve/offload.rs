//! Offloads requested by a packet's header: checked against the negotiated features; checksums are completed.
use super::counts::Drop;
use crate::common::Negotiated;
use crate::common::header::NEEDS_CSUM;
use hopscope_netio::Offload;

const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// Beside a kind of segments: they carry congestion marks.
const GSO_ECN: u8 = 0x80;

/// Whether the offloads that a driver's packet needs were negotiated: a checksum to be finished, segments.
pub(super) fn check_transmit(
    offload: Offload,
    len: usize,
    negotiated: Negotiated,
) -> Result<(), Drop> {
    let (v4, v6) = negotiated.host_tso();
    let segments = match offload.gso_type & !GSO_ECN {
        GSO_NONE => offload.gso_type == GSO_NONE,
        GSO_TCPV4 => v4,
        GSO_TCPV6 => v6,
        _ => false,
    };
    let checksum = offload.flags & NEEDS_CSUM == 0 || negotiated.host_checksums();
    if !segments || !checksum {
        return Err(Drop::Unfinished);
    }
    if offload.flags & NEEDS_CSUM != 0 && checksum_at(offload, len).is_none() {
        return Err(Drop::Header);
    }
    Ok(())
}

/// Whether the driver negotiated the segments of a packet that it is to receive.
pub(super) fn check_receive(offload: Offload, negotiated: Negotiated) -> Result<(), Drop> {
    let (v4, v6) = negotiated.guest_tso();
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
pub(super) fn finish_checksum(frame: &mut [u8], offload: &mut Offload) -> Result<(), Drop> {
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
        finish_checksum(&mut frame, &mut offload).expect("within the frame");
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
        let none = Negotiated(1 << 32);
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
        assert_eq!(check_transmit(Offload::default(), 60, none), Ok(()));
        assert_eq!(check_transmit(checksum, 60, none), Err(Drop::Unfinished));
        assert_eq!(check_transmit(checksum, 60, Negotiated(1)), Ok(()));
        assert_eq!(
            check_transmit(checksum, 41, Negotiated(1)),
            Err(Drop::Header)
        );
        assert_eq!(
            check_transmit(segments(1), 60, Negotiated(1)),
            Err(Drop::Unfinished)
        );
        assert_eq!(check_transmit(segments(1), 60, Negotiated(1 << 11)), Ok(()));
        assert_eq!(
            check_transmit(segments(4), 60, Negotiated(1 << 11)),
            Err(Drop::Unfinished)
        );
        assert_eq!(
            check_transmit(segments(GSO_ECN), 60, Negotiated(!0)),
            Err(Drop::Unfinished)
        );
        assert_eq!(
            check_transmit(segments(3), 60, Negotiated(!0)),
            Err(Drop::Unfinished)
        );
        assert_eq!(check_receive(segments(1), none), Err(Drop::Unfinished));
        assert_eq!(check_receive(segments(1), Negotiated(1 << 7)), Ok(()));
    }
}
