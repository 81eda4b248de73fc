//! Bytes that can be told apart: every message of a run is a piece of one seeded random text, at a
//! place that follows from its connection and number. A byte flipped, lost, doubled or taken from
//! another message is seen.
use hopscope_openloop::random::{SplitMix64, mix};

/// A prime, so that no power of two in a message size meets the same bytes again.
const PERIOD: usize = 262_139;

#[derive(Debug)]
pub struct Pattern {
    seed: u64,
    /// One period, and its beginning again as far as the longest message reaches.
    text: Vec<u8>,
}

impl Pattern {
    pub fn new(seed: u64, longest: usize) -> Pattern {
        let mut random = SplitMix64::new(seed);
        let mut text: Vec<u8> = (0..PERIOD / 8 + 1)
            .flat_map(|_| random.next_u64().to_le_bytes())
            .take(PERIOD)
            .collect();
        for at in 0..longest {
            text.push(text[at]);
        }
        Pattern { seed, text }
    }

    /// The bytes of one request.
    #[inline]
    pub fn message(&self, connection: u64, number: u64, length: usize) -> &[u8] {
        let key = (connection << 40) ^ number ^ self.seed.rotate_left(20);
        let at = mix(key.wrapping_add(1)) as usize % PERIOD;
        &self.text[at..at + length]
    }

    /// The bytes of a stream from `offset` on.
    #[inline]
    pub fn stream(&self, offset: u64, length: usize) -> &[u8] {
        let at = (offset % PERIOD as u64) as usize;
        &self.text[at..at + length]
    }
}

/// The first byte of `got`, which begins at byte `from` of an answer, that differs from the request
/// repeated: its place in the answer, what was there, what should have been.
#[inline]
pub fn first_wrong(request: &[u8], from: usize, got: &[u8]) -> Option<(usize, u8, u8)> {
    // The whole answer within the request is the common case, and one memcmp.
    if let Some(expected) = request.get(from..from + got.len())
        && expected == got
    {
        return None;
    }
    let expected = request.iter().cycle().skip(from % request.len());
    let mut pairs = got.iter().zip(expected).enumerate();
    pairs
        .find(|(_, (got, expected))| got != expected)
        .map(|(at, (got, expected))| (from + at, *got, *expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_run_differ_and_repeat_with_the_seed() {
        let (one, two) = (Pattern::new(1, 4096), Pattern::new(1, 4096));
        assert_eq!(one.message(3, 7, 4096), two.message(3, 7, 4096));
        assert_ne!(one.message(3, 7, 64), one.message(3, 8, 64));
        assert_ne!(one.message(3, 7, 64), one.message(4, 7, 64));
        assert_ne!(one.message(3, 7, 64), Pattern::new(2, 64).message(3, 7, 64));
    }

    #[test]
    fn a_stream_goes_on_across_the_period() {
        let pattern = Pattern::new(1, 100);
        let at = PERIOD as u64 - 50;
        assert_eq!(&pattern.stream(at, 100)[50..], pattern.stream(at + 50, 50));
    }

    #[test]
    fn the_first_wrong_byte_is_found() {
        let request = b"abcdef";
        assert_eq!(first_wrong(request, 2, b"cde"), None);
        assert_eq!(first_wrong(request, 4, b"efab"), None);
        assert_eq!(first_wrong(request, 2, b"cDe"), Some((3, b'D', b'd')));
        assert_eq!(first_wrong(request, 7, b"bx"), Some((8, b'x', b'c')));
    }
}
