//! The Internet checksum (RFC 1071), as partial sums that are added up late (RFC 1624): a template
//! brings its sum, a flow brings its own, and a frame needs one addition for both.

/// Sum of 16-bit big-endian words, not folded; an odd last byte counts as if a zero followed.
pub fn sum(bytes: &[u8]) -> u64 {
    // Four bytes at a time in memory order: the sum is the same up to a swap of its bytes
    // (RFC 1071, 2(B)), and this loop becomes vector code.
    let (words, rest) = bytes.as_chunks::<4>();
    let mut total: u64 = words
        .iter()
        .map(|w| u64::from(u32::from_le_bytes(*w)))
        .sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    total += u64::from(u32::from_le_bytes(last));
    u64::from(fold(total).swap_bytes())
}

/// Carries added back in until 16 bits are left.
#[inline]
pub fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// What is written into a header whose other words have this sum.
#[inline]
pub fn finish(sum: u64) -> [u8; 2] {
    (!fold(sum)).to_be_bytes()
}

/// As [`finish`], for UDP: zero would say "no checksum" (RFC 768).
#[inline]
pub fn finish_udp(sum: u64) -> [u8; 2] {
    match !fold(sum) {
        0 => [0xff, 0xff],
        checksum => checksum.to_be_bytes(),
    }
}

/// Whether a checksummed range, its checksum included, is intact.
#[inline]
pub fn holds(sum: u64) -> bool {
    fold(sum) == 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Word by word, as RFC 1071 says it.
    fn slow(bytes: &[u8]) -> u16 {
        let mut total = 0u32;
        for pair in bytes.chunks(2) {
            total += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            total = (total & 0xffff) + (total >> 16);
        }
        total as u16
    }

    #[test]
    fn example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes)), 0xddf2);
    }

    proptest! {
        #[test]
        fn equals_the_sum_word_by_word(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            // 0 and 0xffff are the same number in ones' complement; only all-zero bytes sum to 0.
            prop_assert_eq!(fold(sum(&bytes)) % 0xffff, slow(&bytes) % 0xffff);
            prop_assert_eq!(fold(sum(&bytes)) == 0, bytes.iter().all(|b| *b == 0));
        }

        #[test]
        fn parts_add_up(
            front in proptest::collection::vec(any::<[u8; 2]>(), 0..50),
            back in proptest::collection::vec(any::<u8>(), 1..50),
        ) {
            let front = front.concat();
            let whole = [front.clone(), back.clone()].concat();
            prop_assert_eq!(fold(sum(&whole)), fold(sum(&front) + sum(&back)));
        }
    }
}
