//! Numbers for the page's script: a column is a list of integers, each as its difference to the
//! one before, folded (0, −1, 1, −2 … become 0, 1, 2, 3 …), in as few bytes as it needs (LEB128),
//! all of it deflated (zlib format) and in base64. 1,000,000 calls take some 4 MB so.
use miniz_oxide::deflate::compress_to_vec_zlib;

const LEVEL: u8 = 6;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
    base64(&compress_to_vec_zlib(&bytes, LEVEL))
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let six = (word >> (18 - 6 * place) & 63) as usize;
            text.push(if place <= group.len() {
                ALPHABET[six] as char
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_rfc_4648() {
        let texts = ["", "f", "fo", "foo", "foob", "fooba", "foobar"];
        let expected = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(texts.map(|t| base64(t.as_bytes())), expected);
    }

    #[test]
    fn regular_steps_take_next_to_nothing() {
        let text = encode((0..100_000).map(|n| n * 2_600));
        assert!(text.len() < 1_000, "{}", text.len());
    }
}
