//! SipHash-2-4 (Aumasson, Bernstein, 2012): a keyed hash whose results tell nothing of the key. For initial sequence
//! numbers, cookies, ports and tables that peers choose the keys of.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SipKey {
    pub k0: u64,
    pub k1: u64,
}

impl SipKey {
    /// One of the independent keys that `seed` gives; callers number them by `purpose`.
    #[must_use]
    pub fn derived(seed: &[u8; 32], purpose: u8) -> SipKey {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&seed[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        let (low, high) = (
            SipKey {
                k0: word(0),
                k1: word(8),
            },
            SipKey {
                k0: word(16),
                k1: word(24),
            },
        );
        SipKey {
            k0: low.hash(&[purpose, 0]) ^ high.hash(&[purpose, 1]),
            k1: low.hash(&[purpose, 2]) ^ high.hash(&[purpose, 3]),
        }
    }

    #[must_use]
    pub fn hash(self, bytes: &[u8]) -> u64 {
        let words = bytes.chunks_exact(8);
        let rest = words.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        last[7] = bytes.len() as u8;
        let word = |b: &[u8]| u64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
        self.rounds(words.map(word), u64::from_le_bytes(last))
    }

    /// The same of little-endian words, without the detour by bytes.
    #[must_use]
    pub fn hash_words<const N: usize>(self, words: [u64; N]) -> u64 {
        self.rounds(words.into_iter(), (N as u64 * 8) << 56)
    }

    fn rounds(self, words: impl Iterator<Item = u64>, last: u64) -> u64 {
        let mut v = [
            self.k0 ^ 0x736f_6d65_7073_6575,
            self.k1 ^ 0x646f_7261_6e64_6f6d,
            self.k0 ^ 0x6c79_6765_6e65_7261,
            self.k1 ^ 0x7465_6462_7974_6573,
        ];
        for word in words.chain([last]) {
            v[3] ^= word;
            round(&mut v);
            round(&mut v);
            v[0] ^= word;
        }
        v[2] ^= 0xff;
        for _ in 0..4 {
            round(&mut v);
        }
        v[0] ^ v[1] ^ v[2] ^ v[3]
    }
}

fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32).wrapping_add(v[3]);
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SipKey = SipKey {
        k0: 0x0706_0504_0302_0100,
        k1: 0x0f0e_0d0c_0b0a_0908,
    };

    #[test]
    fn the_papers_vectors() {
        // Appendix A: 15 bytes. The other two are of the authors' list.
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(KEY.hash(&bytes), 0xa129_ca61_49be_45e5);
        assert_eq!(KEY.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(KEY.hash(&bytes[..8]), 0x93f5_f579_9a93_2462);
    }

    #[test]
    #[expect(deprecated, reason = "an independent implementation")]
    fn the_standard_librarys_results() {
        use std::hash::{Hasher, SipHasher};
        for len in 0..64u8 {
            let bytes: Vec<u8> = (0..len).map(|b| b.wrapping_mul(167)).collect();
            let mut other = SipHasher::new_with_keys(KEY.k0, KEY.k1);
            other.write(&bytes);
            assert_eq!(KEY.hash(&bytes), other.finish(), "{len}");
        }
    }

    #[test]
    fn words_as_bytes() {
        let words = [0x1234_5678_9abc_def0u64, 3];
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(KEY.hash_words(words), KEY.hash(&bytes));
    }
}
