//! Frames of our own: UDP datagrams in which every byte is known from two numbers.
//!
//! ```text
//! Ethernet 14 | IPv4 20 | UDP 8 | "hops" | le16 pattern | le16 len | le64 sequence number | bytes of the pattern
//! ```
//! 198.18.0.1 to 198.18.0.2 (RFC 2544), port 9, without a checksum; addresses are locally administered.
use hopscope_openloop::random::mix;

/// Without the FCS: 64 bytes on a cable.
pub const SHORTEST: usize = 60;
pub const LONGEST: usize = 1514;
const IP: usize = 14;
const UDP: usize = IP + 20;
const MAGIC: usize = UDP + 8;
/// Of the sequence number: the one thing that is written for each frame.
pub(super) const NUMBER: usize = MAGIC + 8;

/// The frame of one pattern, with a sequence number of 0.
pub(super) fn build(pattern: u16, len: usize) -> Vec<u8> {
    let byte = |at| mix(u64::from(pattern) << 32 | at as u64) as u8;
    let mut frame: Vec<u8> = (0..len).map(byte).collect();
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
    frame[12..IP].copy_from_slice(&[8, 0]);
    let ip_len = ((len - IP) as u16).to_be_bytes();
    frame[IP..UDP].copy_from_slice(&[
        0x45, 0, ip_len[0], ip_len[1], 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2,
    ]);
    let sum: u32 = frame[IP..UDP]
        .chunks(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    let udp_len = ((len - UDP) as u16).to_be_bytes();
    frame[UDP..MAGIC].copy_from_slice(&[0, 9, 0, 9, udp_len[0], udp_len[1], 0, 0]);
    frame[MAGIC..MAGIC + 4].copy_from_slice(b"hops");
    frame[MAGIC + 4..MAGIC + 6].copy_from_slice(&pattern.to_le_bytes());
    frame[MAGIC + 6..NUMBER].copy_from_slice(&(len as u16).to_le_bytes());
    frame[NUMBER..NUMBER + 8].fill(0);
    frame
}

/// Of the frames of one pattern; the same for each of them.
pub(super) fn len_of(pattern: u16, shortest: usize, longest: usize) -> usize {
    shortest + (mix(pattern.into()) % (longest - shortest + 1) as u64) as usize
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Own {
        number: u64,
    },
    /// One of ours, with other bytes.
    Wrong,
    Other,
}

/// Compares frames with what they have to be.
#[derive(Default)]
pub(super) struct Checker {
    known: Vec<Vec<u8>>,
}

impl Checker {
    pub(super) fn check(&mut self, frame: &[u8]) -> Found {
        if frame.len() < SHORTEST || frame[MAGIC..MAGIC + 4] != *b"hops" {
            return Found::Other;
        }
        let pattern = u16::from_le_bytes([frame[MAGIC + 4], frame[MAGIC + 5]]);
        let at = usize::from(pattern);
        if self.known.len() <= at {
            self.known.resize(at + 1, Vec::new());
        }
        let known = &mut self.known[at];
        if known.len() != frame.len() {
            *known = build(pattern, frame.len());
        }
        let behind = NUMBER + 8;
        if known[..NUMBER] != frame[..NUMBER] || known[behind..] != frame[behind..] {
            return Found::Wrong;
        }
        let mut number = [0; 8];
        number.copy_from_slice(&frame[NUMBER..behind]);
        Found::Own {
            number: u64::from_le_bytes(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_known() {
        let mut checker = Checker::default();
        let frame = build(7, 90);
        assert_eq!(checker.check(&frame), Found::Own { number: 0 });
        for at in 0..90 {
            let mut other = frame.clone();
            other[at] ^= 1;
            let found = checker.check(&other);
            match at {
                MAGIC..=45 => assert_eq!(found, Found::Other, "{at}"),
                NUMBER..=57 => assert!(matches!(found, Found::Own { .. }), "{at}"),
                _ => assert_eq!(found, Found::Wrong, "{at}"),
            }
        }
        assert_eq!(checker.check(&frame[..89]), Found::Wrong, "cut");
        assert_eq!(checker.check(&frame[..59]), Found::Other, "too short");
    }

    #[test]
    fn the_ip_header_is_right() {
        let frame = build(0, SHORTEST);
        let words = frame[IP..UDP].chunks(2);
        let sum: u32 = words
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }
}
