//! The Internet checksum (RFC 1071): ones' complement sum of 16-bit words.
use std::net::IpAddr;

/// A ones' complement sum of bytes, of which more can be added in any order (RFC 1071, 2): the parts of a packet
/// are summed where they are touched anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum(u16);

/// Eight lanes of 32 bits each: what the compiler turns into vector additions.
const BLOCK: usize = 32;

impl Sum {
    /// Of `bytes` that begin at an even offset. An odd last byte counts as the high byte of a word.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Sum {
        let mut lanes = [0u64; BLOCK / 4];
        let blocks = bytes.chunks_exact(BLOCK);
        let rest = blocks.remainder();
        for block in blocks {
            add_block(&mut lanes, block);
        }
        finish(lanes, rest)
    }

    /// The same while copying `from` to `into`, which have one length: one pass over memory instead of two.
    #[must_use]
    pub fn of_copy(into: &mut [u8], from: &[u8]) -> Sum {
        let len = into.len().min(from.len());
        let (into, from) = (&mut into[..len], &from[..len]);
        let mut lanes = [0u64; BLOCK / 4];
        let mut targets = into.chunks_exact_mut(BLOCK);
        let blocks = from.chunks_exact(BLOCK);
        let rest = blocks.remainder();
        for (target, block) in targets.by_ref().zip(blocks) {
            target.copy_from_slice(block);
            add_block(&mut lanes, block);
        }
        targets.into_remainder().copy_from_slice(rest);
        finish(lanes, rest)
    }

    /// Of a pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1). `len`: of the transport's header and payload.
    #[must_use]
    pub fn of_pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: u32) -> Sum {
        let addresses = match (source, destination) {
            (IpAddr::V4(a), IpAddr::V4(b)) => Sum::of(&a.octets()).and(Sum::of(&b.octets())),
            (a, b) => Sum::of(&v6_octets(a)).and(Sum::of(&v6_octets(b))),
        };
        addresses
            .and_word(u16::from(protocol))
            .and_word((len >> 16) as u16)
            .and_word(len as u16)
    }

    /// This sum and that of other bytes at an even offset.
    #[must_use]
    pub fn and(self, other: Sum) -> Sum {
        let (sum, carry) = self.0.overflowing_add(other.0);
        Sum(sum + u16::from(carry))
    }

    #[must_use]
    pub fn and_word(self, word: u16) -> Sum {
        self.and(Sum(word))
    }

    /// This sum and that of bytes which come after `before` others: at an odd offset their bytes change places.
    #[must_use]
    pub fn and_at(self, before: usize, other: Sum) -> Sum {
        if before.is_multiple_of(2) {
            self.and(other)
        } else {
            self.and(Sum(other.0.swap_bytes()))
        }
    }

    /// What a checksum field has to hold, big-endian, when it counted as 0 in the sum.
    #[must_use]
    pub fn field(self) -> u16 {
        !self.0
    }

    /// What the field holds when the device completes it: the sum of the pseudo-header, not complemented.
    #[must_use]
    pub fn partial(self) -> u16 {
        self.0
    }

    /// Whether a sum over everything, the field included, is that of an undamaged packet.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.0 == 0xffff
    }
}

fn v6_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Words are added in the machine's order; the sum is swapped once at the end (RFC 1071, 2 (B)).
fn add_block(lanes: &mut [u64; BLOCK / 4], block: &[u8]) {
    for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
        *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
}

fn finish(lanes: [u64; BLOCK / 4], rest: &[u8]) -> Sum {
    let mut sum = lanes.iter().sum::<u64>();
    let words = rest.chunks_exact(2);
    if let [last] = words.remainder() {
        sum += u64::from(u16::from_ne_bytes([*last, 0]));
    }
    for word in words {
        sum += u64::from(u16::from_ne_bytes([word[0], word[1]]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    Sum(u16::from_be(sum as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071, 4.1, word by word.
    fn by_the_book(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn rfc1071_3_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&bytes).partial(), 0xddf2);
    }

    proptest! {
        #[test]
        fn rfc1071_2_sums_of_parts(bytes: Vec<u8>, at: prop::sample::Index) {
            let at = at.index(bytes.len() + 1);
            let (a, b) = bytes.split_at(at);
            prop_assert_eq!(Sum::of(a).and_at(at, Sum::of(b)).partial(), by_the_book(&bytes));
        }

        #[test]
        fn copies(bytes: Vec<u8>) {
            let mut copy = vec![0; bytes.len()];
            prop_assert_eq!(Sum::of_copy(&mut copy, &bytes), Sum::of(&bytes));
            prop_assert_eq!(copy, bytes);
        }

        #[test]
        fn a_filled_field_is_valid(mut bytes in prop::collection::vec(any::<u8>(), 2..100)) {
            (bytes[0], bytes[1]) = (0, 0);
            let field = Sum::of(&bytes).field().to_be_bytes();
            bytes[..2].copy_from_slice(&field);
            prop_assert!(Sum::of(&bytes).is_valid());
        }
    }
}
