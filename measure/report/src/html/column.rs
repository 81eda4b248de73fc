//! Numbers for the page's script: a column is a list of integers, each as its difference to the
//! one before, folded (0, −1, 1, −2 … become 0, 1, 2, 3 …), in as few bytes as it needs (LEB128),
//! all of it deflated (zlib format) and in base64. 1,000,000 calls take some 4 MB so.
use base64::prelude::{BASE64_STANDARD, Engine};
use miniz_oxide::deflate::compress_to_vec_zlib;

const LEVEL: u8 = 6;

pub(crate) fn encode(numbers: impl IntoIterator<Item = i64>) -> String {
    let mut bytes = Vec::new();
    let mut previous = 0i64;
    for number in numbers {
        let step = number.wrapping_sub(previous);
        previous = number;
        let mut rest = (step << 1 ^ step >> 63) as u64;
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    BASE64_STANDARD.encode(compress_to_vec_zlib(&bytes, LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_steps_take_next_to_nothing() {
        let text = encode((0..100_000).map(|n| n * 2_600));
        assert!(text.len() < 1_000, "{}", text.len());
    }
}
